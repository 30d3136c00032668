// SPDX-License-Identifier: Apache-2.0
#include "symbolize/object_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "symbolize/demangle.h"
#include "symbolize/named_location.h"

namespace pyrometer {
namespace {

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

// "libfoo.so+0x1234"
std::string MadeUpName(std::string_view path, ElfAddress address) {
  path = WithoutDeleted(path);
  const std::string_view base = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("{}+{:#x}", base.empty() ? path : base, address.value());
}

}  // namespace

ObjectNamer::ObjectNamer(ObjectSource& source, size_t symbol_table_bytes, SymbolizerCounts& counts)
    : source_(source), tables_(source, symbol_table_bytes), counts_(counts) {}

LocationRef ObjectNamer::Name(Frame frame, ProcessKey /*process*/, uint32_t window) {
  const ElfAddress address = frame.offset();
  const KnownObject* const object = Find(frame.object(), window);
  if (object == nullptr) {
    counts_.Add(Unresolved::kUnmapped);
    return UnknownLocation(address.value());
  }
  const SymbolTableCache::Answer symbols = tables_.Get(frame.object(), object->description, window);
  counts_.tables_read = tables_.tables_read();
  const std::optional<Symbol> symbol =
      symbols.table == nullptr ? std::nullopt : symbols.table->Find(address);
  if (symbol) {
    return MakeLocation(CodeOrigin::kUser, object->code, address.value(),
                        LineFor(frame.object(), *symbol));
  }
  counts_.Add(symbols.reason);
  return MadeUpLocation(CodeOrigin::kUser, object->code, address.value(),
                        MadeUpName(object->code->path, address));
}

const ObjectNamer::KnownObject* ObjectNamer::Find(ObjectId id, uint32_t window) {
  if (const auto known = objects_.find(id); known != objects_.end()) return &known->second;
  std::optional<ObjectDescription> description = source_.Describe(id);
  if (!description) return nullptr;
  const SymbolTable* const table = tables_.Get(id, *description, window).table;
  KnownObject object{.description = *std::move(description), .code = nullptr};
  object.code = MakeCodeObject(object.description, table != nullptr && !table->empty());
  return &(objects_[id] = std::move(object));
}

// Neighbouring frames are often of one function, which is demangled once.
const Line& ObjectNamer::LineFor(ObjectId id, const Symbol& symbol) {
  if (id != last_object_ || symbol.start != last_start_ || symbol.size != last_size_) {
    last_object_ = id;
    last_start_ = symbol.start;
    last_size_ = symbol.size;
    last_line_ = SameName(Printable(symbol.name, kMaxNameLength));
    last_line_.function = Demangle(symbol.name);
  }
  return last_line_;
}

void ObjectNamer::EndWindow(uint32_t unused_since) {
  tables_.EndWindow(unused_since);
  absl::erase_if(objects_, [](const auto& o) { return o.second.code.use_count() == 1; });
}

}  // namespace pyrometer
