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
#include "binary/notes.h"
#include "binary/vdso.h"
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
  object->hash = description.hash;
  object->go_build_id = Printable(description.go_build_id, kMaxNameLength);
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

BuildId VdsoBuildId() {
  static const BuildId id = [] {
    const Result<ElfFile> vdso = OpenVdso();
    return vdso ? ReadBuildIds(*vdso).gnu : BuildId();
  }();
  return id;
}

// Template names have some KB, and 64 calls may be inlined into one another: a stack of such frames
// would take as much memory as all else.
constexpr size_t kMostOfLocation = size_t{64} << 10;
constexpr size_t kShortName = 512;

void LimitBytes(std::vector<Line>& lines) {
  size_t bytes = 0;
  for (const Line& line : lines) {
    bytes += line.function.size() + line.system_name.size() + line.file.size();
  }
  if (bytes <= kMostOfLocation) return;
  for (Line& line : lines) {
    for (std::string* const text : {&line.function, &line.system_name, &line.file}) {
      if (text->size() > kShortName) *text = Printable(*text, kShortName);
    }
  }
}

// "libfoo.so+0x1234": the beginning of the function, or the address if not even that is known
std::string MadeUpName(std::string_view path, ElfAddress address) {
  path = WithoutDeleted(path);
  const std::string_view base = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("{}+{:#x}", base.empty() ? path : base, address.value());
}

}  // namespace

ObjectNamer::ObjectNamer(ObjectSource& source, SymbolTableCache::Budget budget,
                         const Naming& naming, SymbolizerCounts& counts)
    : source_(source), tables_(source, budget), naming_(naming), counts_(counts) {}

std::vector<FrameRange> ObjectNamer::BeginWindow(uint32_t window) {
  window_ = window;
  last_object_ = ObjectId(0);  // its table may be another by now
  std::vector<FrameRange> again;
  for (const ObjectId object : source_.TakeImproved()) {
    tables_.Drop(object);
    awaited_.insert(object);
    if (const auto node = unnamed_.extract(object)) unnamed_count_ -= node.mapped().size();
  }
  for (const ObjectId object : tables_.BeginWindow(window)) {
    if (const auto node = unnamed_.extract(object)) {
      unnamed_count_ -= node.mapped().size();
      std::ranges::copy(node.mapped(), std::back_inserter(again));
    }
    ForgetIfWithoutFunctions(object);
  }
  for (const ObjectId object : awaited_) {
    ForgetIfWithoutFunctions(object);
    again.push_back({Frame::Object(object, ElfAddress(0)),
                     Frame::Object(object, ElfAddress(PYRO_FRAME_OFFSET_MASK))});
  }
  awaited_.clear();
  return again;
}

// It may turn out to have some.
void ObjectNamer::ForgetIfWithoutFunctions(ObjectId object) {
  const auto known = objects_.find(object);
  if (known != objects_.end() && !known->second.code->has_functions) objects_.erase(known);
}

LocationRef ObjectNamer::Name(Frame frame, const FrameOwner& /*owner*/, uint32_t window) {
  const ElfAddress address = frame.offset();
  KnownObject* const object = Find(frame.object(), window);
  if (object == nullptr) {
    counts_.Add(Unresolved::kUnmapped);
    return UnknownLocation(address.value());
  }
  const SymbolTableCache::Answer symbols = tables_.Get(frame.object(), object->description, window);
  const std::optional<Symbol> symbol =
      symbols.table == nullptr ? std::nullopt : symbols.table->Find(address);
  const SourceAnswer& sources = SourcesIn(frame.object(), *object);
  const std::vector<SourceFrame> frames =
      sources.map == nullptr ? std::vector<SourceFrame>() : sources.map->Find(address);
  if (std::vector<Line> lines = LinesFor(frame.object(), symbol, frames); !lines.empty()) {
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

ObjectNamer::KnownObject* ObjectNamer::Find(ObjectId id, uint32_t window) {
  if (const auto known = objects_.find(id); known != objects_.end()) return &known->second;
  std::optional<ObjectDescription> description = source_.Describe(id);
  if (!description) return nullptr;
  const SymbolTableCache::Answer symbols = tables_.Get(id, *description, window);
  const bool has_functions =
      symbols.table == nullptr ? MayHaveFunctions(symbols.reason) : symbols.table->has_names();
  KnownObject object{.description = *std::move(description), .code = nullptr};
  if (object.description.is_vdso) object.description.build_id = VdsoBuildId();
  const SourceAnswer& sources = SourcesIn(id, object);
  const bool has_sources = sources.map == nullptr ? sources.is_coming : !sources.map->empty();
  object.code = MakeCodeObject(object.description, has_functions || has_sources);
  return &(objects_[id] = std::move(object));
}

// What there is in this window.
const SourceAnswer& ObjectNamer::SourcesIn(ObjectId id, KnownObject& object) {
  if (!object.sources) {
    object.sources = object.description.is_vdso ? SourceAnswer() : source_.Sources(id);
    if (object.sources->is_coming) awaited_.insert(id);
  }
  return *object.sources;
}

// Innermost first; empty if the function has no name. Its name is that of the symbol if there is
// one, as where no lines are known: debug information may have another of the same code.
std::vector<Line> ObjectNamer::LinesFor(ObjectId id, const std::optional<Symbol>& symbol,
                                        const std::vector<SourceFrame>& frames) {
  const bool has_symbol = symbol && !symbol->name.empty();
  if (!has_symbol && (frames.empty() || frames.back().name.empty())) return {};
  std::vector<Line> lines;
  for (const SourceFrame& frame : frames) {
    const bool is_function = &frame == &frames.back();
    if (!is_function && !naming_.inlines) continue;
    Line& line = lines.emplace_back();
    if (!is_function || !has_symbol) line = SymbolLine(frame.name, naming_.form);
    line.file = Printable(frame.path, kMaxNameLength);
    line.line = frame.line;
  }
  if (lines.empty()) lines.emplace_back();
  if (has_symbol) {
    const Line& function = LineFor(id, *symbol);
    lines.back().function = function.function;
    lines.back().system_name = function.system_name;
  }
  LimitBytes(lines);
  return lines;
}

// Neighbouring frames are often of one function, which is demangled once.
const Line& ObjectNamer::LineFor(ObjectId id, const Symbol& symbol) {
  if (id != last_object_ || symbol.start != last_start_ || symbol.size != last_size_) {
    last_object_ = id;
    last_start_ = symbol.start;
    last_size_ = symbol.size;
    last_line_ = SymbolLine(symbol.name, naming_.form);
  }
  return last_line_;
}

void ObjectNamer::EndWindow(uint32_t unused_since) {
  tables_.EndWindow(window_, unused_since);
  counts_.tables_read = tables_.tables_read();
  counts_.tables_dropped_in_use = tables_.dropped_in_use();
  counts_.symbol_table_bytes = tables_.bytes();
  counts_.symbol_spilled_bytes = tables_.spilled_bytes();
  absl::erase_if(objects_, [](const auto& o) { return o.second.code.use_count() == 1; });
  for (auto& [id, object] : objects_) object.sources.reset();
}

}  // namespace pyrometer
