// SPDX-License-Identifier: Apache-2.0
#include "symbolize/object_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "symbolize/demangle.h"
#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

// 1 MiB of them.
constexpr size_t kMaxUnnamed = 65536;

// False where the object's symbols, which were read, do not cover an address.
bool MayBeNamedLater(Unresolved reason) {
  return reason != Unresolved::kNoSymbols;
}

// Of an object whose symbols are not there now.
bool MayHaveFunctions(Unresolved reason) {
  return reason == Unresolved::kNoRoom || reason == Unresolved::kNotReady;
}

std::shared_ptr<const CodeObject> MakeCodeObject(const ObjectDescription& description,
                                                 bool has_functions) {
  auto object = std::make_shared<CodeObject>();
  object->path = Printable(description.path, kMaxNameLength);
  object->build_id = description.build_id;
  object->has_functions = has_functions;
  for (const Segment& s : description.segments) {
    if (!s.executable) continue;
    const uint64_t start = s.address.value();
    if (object->limit == 0 || start < object->start) {
      object->start = start;
      object->file_offset = s.offset.value();
    }
    object->limit = std::max(object->limit, start + s.memory_size);
  }
  return object;
}

// "libfoo.so+0x1234": the beginning of the function, or the address if not even that is known
std::string MadeUpName(std::string_view path, ElfAddress address) {
  path = WithoutDeleted(path);
  const std::string_view base = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("{}+{:#x}", base.empty() ? path : base, address.value());
}

}  // namespace

ObjectNamer::ObjectNamer(ObjectSource& source, SymbolTableCache::Budget budget,
                         const Options& options, SymbolizerCounts& counts)
    : source_(source), tables_(source, budget), options_(options), counts_(counts) {}

std::vector<FrameRange> ObjectNamer::BeginWindow(uint32_t window, MonotonicTime /*end*/) {
  window_ = window;
  std::vector<FrameRange> again;
  const SymbolTableCache::Changed changed = tables_.BeginWindow(window);
  for (const ObjectId object : changed.better) {
    again.push_back({Frame::Object(object, ElfAddress(0)),
                     Frame::Object(object, ElfAddress(PYRO_FRAME_OFFSET_MASK))});
  }
  for (const ObjectId object : changed.failed) {
    if (const auto node = unnamed_.extract(object)) {
      unnamed_count_ -= node.mapped().size();
      std::ranges::copy(node.mapped(), std::back_inserter(again));
    }
    const auto known = objects_.find(object);
    // It may turn out to have functions.
    if (known != objects_.end() && !known->second.code->has_functions) objects_.erase(known);
  }
  return again;
}

LocationRef ObjectNamer::Name(Frame frame, ProcessKey /*process*/, uint32_t window) {
  const ElfAddress address = frame.offset();
  const KnownObject* const object = Find(frame.object(), window);
  if (object == nullptr) {
    counts_.Add(Unresolved::kUnmapped);
    return UnknownLocation(address.value());
  }
  const SymbolTableCache::Answer symbols = tables_.Get(frame.object(), object->description, window);
  const std::optional<Symbol> symbol =
      symbols.table == nullptr ? std::nullopt : symbols.table->Find(address);
  if (symbol && !symbol->name.empty()) {
    std::vector<Line> lines = LinesFor(LineFor(frame.object(), *symbol), *symbols.table, address);
    return MakeLocation(CodeOrigin::kUser, object->code, address.value(), std::move(lines));
  }
  counts_.Add(symbols.reason);
  if (MayBeNamedLater(symbols.reason) && unnamed_count_ < kMaxUnnamed) {
    ++unnamed_count_;
    unnamed_[frame.object()].push_back({frame, frame});
  }
  return MadeUpLocation(CodeOrigin::kUser, object->code, address.value(),
                        MadeUpName(object->code->path, symbol ? symbol->start : address));
}

const ObjectNamer::KnownObject* ObjectNamer::Find(ObjectId id, uint32_t window) {
  if (const auto known = objects_.find(id); known != objects_.end()) return &known->second;
  std::optional<ObjectDescription> description = source_.Describe(id);
  if (!description) return nullptr;
  const SymbolTableCache::Answer symbols = tables_.Get(id, *description, window);
  const bool has_functions =
      symbols.table == nullptr ? MayHaveFunctions(symbols.reason) : symbols.table->has_names();
  KnownObject object{.description = *std::move(description), .code = nullptr};
  object.code = MakeCodeObject(object.description, has_functions);
  return &(objects_[id] = std::move(object));
}

// Neighbouring frames are often of one function, which is demangled once.
const Line& ObjectNamer::LineFor(ObjectId id, const Symbol& symbol) {
  if (id != last_object_ || symbol.start != last_start_ || symbol.size != last_size_) {
    last_object_ = id;
    last_start_ = symbol.start;
    last_size_ = symbol.size;
    last_line_ = SameName(Printable(symbol.name, kMaxNameLength));
    last_line_.function = Demangle(symbol.name, options_.demangling);
  }
  return last_line_;
}

// `own` is the function's; of what is inlined there, and where in the source that is, `table`
// tells.
std::vector<Line> ObjectNamer::LinesFor(const Line& own, const SymbolTable& table,
                                        ElfAddress address) const {
  std::vector<Line> lines;
  for (const SourceLine& source : table.LinesAt(address)) {
    Line& line = lines.emplace_back(own);
    if (!source.function.empty()) {
      line = SameName(Printable(source.function, kMaxNameLength));
      line.function = Demangle(source.function, options_.demangling);
    }
    line.file = Printable(source.file, kMaxNameLength);
    line.line = source.line;
    line.start_line = source.start_line;
  }
  if (lines.empty()) lines.push_back(own);
  if (!options_.inlines) lines.erase(lines.begin(), std::prev(lines.end()));
  return lines;
}

void ObjectNamer::EndWindow(uint32_t unused_since) {
  tables_.EndWindow(window_, unused_since);
  counts_.tables_read = tables_.tables_read();
  counts_.tables_dropped_in_use = tables_.dropped_in_use();
  counts_.symbol_table_bytes = tables_.bytes();
  counts_.symbol_spilled_bytes = tables_.spilled_bytes();
  absl::erase_if(objects_, [](const auto& o) { return o.second.code.use_count() == 1; });
}

}  // namespace pyrometer
