// SPDX-License-Identifier: Apache-2.0
// Formats: the Go distribution's src/runtime/symtab.go (funcfile, funcline1, pcdatavalue),
// symtabinl.go (inlinedCall) and runtime2.go (_func), in the versions that the formats are called
// after.
#include "binary/go_source_lines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "binary/segments.h"

namespace pyrometer {
namespace {

using Format = GoFunctionTable::Format;

constexpr uint64_t kMostValues = uint64_t{32} << 20;
// Some 20 times what the largest programs have: a damaged table may be read again and again.
constexpr uint64_t kMostSteps = 32'000'000;
// Some ten times what the largest functions have.
constexpr size_t kMostRows = 200'000;
constexpr uint32_t kMostCalls = 20'000;
constexpr uint32_t kNoOffset = ~uint32_t{0};

// Where the numbers of a function's record are, in bytes.
struct RecordShape {
  uint64_t files;
  uint64_t lines;
  uint64_t value_count;
  std::optional<uint64_t> unit;
  std::optional<uint64_t> start_line;
  uint64_t data_count;  // one byte
  uint64_t size;        // what follows are as many offsets of values, and then the data
  uint64_t inlined;     // which of the data are its inlined calls
  uint64_t call_size;
};

RecordShape ShapeOf(Format format) {
  switch (format) {
    case Format::kGo2:
      return {24, 28, 32, std::nullopt, std::nullopt, 39, 40, 4, 20};
    case Format::kGo16:
      return {24, 28, 32, 36, std::nullopt, 43, 44, 3, 20};
    case Format::kGo18:
      return {20, 24, 28, 32, std::nullopt, 39, 40, 3, 20};
    case Format::kGo20:
      break;
  }
  return {20, 24, 28, 32, 36, 43, 44, 3, 16};
}

constexpr uint64_t kInlinedValue = 2;  // of the values: which inlined call it is

uint32_t NumberAt(std::span<const std::byte> bytes, uint64_t at) {
  uint32_t number = 0;
  if (at + sizeof(number) <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// The one that has `pc`; null if none has.
const GoSourceRow* RowAt(std::span<const GoSourceRow> rows, uint64_t pc) {
  const auto next = std::ranges::upper_bound(rows, pc, {}, &GoSourceRow::begin);
  if (next == rows.begin()) return nullptr;
  const GoSourceRow& row = *std::prev(next);
  return pc < row.end ? &row : nullptr;
}

// Values that are there or not, in step with other ones.
class Stepping {
 public:
  explicit Stepping(const GoPcValues& values) : values_(values) { has_one_ = values_.Next(); }

  // The value at `pc`, which must not go back; and until where it, or that there is none, holds.
  std::optional<int32_t> At(uint64_t pc) {
    while (has_one_ && values_.end() <= pc) has_one_ = values_.Next();
    return has_one_ ? std::optional(values_.value()) : std::nullopt;
  }
  uint64_t end() const { return has_one_ ? values_.end() : ~uint64_t{0}; }
  bool is_over() const { return !has_one_; }

 private:
  GoPcValues values_;
  bool has_one_ = false;
};

}  // namespace

Result<GoSourceLines> GoSourceLines::Open(const ElfFile& elf, const SectionTable& sections,
                                          const GoFunctionTable& table) {
  GoSourceLines lines(elf, table);
  const uint64_t size = elf.bytes().size();
  const uint64_t room = size - std::min(size, table.values.value());
  const uint64_t wanted = std::min({table.values_size, room, kMostValues});
  ASSIGN_OR_RETURN(lines.values_, ReadArray<std::byte>(elf.bytes(), table.values.value(), wanted));
  if (const auto data = FindGoFunctionData(elf, sections, table)) {
    lines.function_data_ = data->value();
  }
  return lines;
}

GoPcValues GoSourceLines::Values(uint32_t at) const {
  const bool is_there = at != 0 && at < values_.size();
  return GoPcValues(is_there ? std::span(values_).subspan(at) : std::span<const std::byte>(),
                    table_.unit);
}

Result<GoSourceLines::Record> GoSourceLines::RecordOf(const GoFunction& function) {
  const RecordShape shape = ShapeOf(table_.format);
  ASSIGN_OR_RETURN(const auto head, records_.At(function.record.value(), shape.size));
  if (head.size() < shape.size) return Fail(ErrorCode::kMalformed, "a cut record of Go");
  Record record;
  record.files = NumberAt(head, shape.files);
  record.lines = NumberAt(head, shape.lines);
  if (shape.unit) record.unit = NumberAt(head, *shape.unit);
  if (shape.start_line) record.start_line = NumberAt(head, *shape.start_line);
  const uint64_t value_count = NumberAt(head, shape.value_count);
  const auto data_count = std::to_integer<uint64_t>(head[shape.data_count]);
  if (value_count <= kInlinedValue || data_count <= shape.inlined || value_count > 256) {
    return record;
  }
  const bool has_pointers = table_.format == Format::kGo2 || table_.format == Format::kGo16;
  const uint64_t pointer_size = has_pointers ? sizeof(uint64_t) : sizeof(uint32_t);
  uint64_t data_at = shape.size + value_count * sizeof(uint32_t);
  data_at = (data_at + pointer_size - 1) / pointer_size * pointer_size;
  const uint64_t pointer_at = data_at + shape.inlined * pointer_size;
  ASSIGN_OR_RETURN(const auto all, records_.At(function.record.value(), pointer_at + pointer_size));
  if (all.size() < pointer_at + pointer_size) return record;
  record.inlined = NumberAt(all, shape.size + kInlinedValue * sizeof(uint32_t));
  uint64_t address = 0;
  std::memcpy(&address, all.data() + pointer_at, pointer_size);
  if (!has_pointers) {
    if (address == kNoOffset || !function_data_) return record;
    address += *function_data_;
  }
  if (address == 0) return record;
  if (const auto at = ToFileOffset(elf_.segments(), ElfAddress(address))) {
    record.calls = at->value();
  }
  return record;
}

Result<std::optional<uint32_t>> GoSourceLines::FileOf(const Record& record, int32_t number) {
  if (number < 0) return std::optional<uint32_t>();
  const uint64_t at =
      table_.units.value() + (record.unit + static_cast<uint64_t>(number)) * sizeof(uint32_t);
  if (!Within(at, sizeof(uint32_t), table_.end.value())) return std::optional<uint32_t>();
  ASSIGN_OR_RETURN(const auto bytes, units_.At(at, sizeof(uint32_t)));
  const bool is_there = bytes.size() >= sizeof(uint32_t) && NumberAt(bytes, 0) != kNoOffset;
  return is_there ? std::optional(NumberAt(bytes, 0)) : std::nullopt;
}

Result<std::vector<GoSourceRow>> GoSourceLines::Rows(const Record& record, uint64_t size) {
  Stepping lines(Values(record.lines));
  Stepping files(Values(record.files));
  Stepping inlined(Values(record.calls ? record.inlined : 0));
  std::vector<GoSourceRow> rows;
  std::optional<int32_t> last_number;
  std::optional<uint32_t> file;
  for (uint64_t pc = 0; pc < size && rows.size() < kMostRows;) {
    if (++steps_ > kMostSteps) return Fail(ErrorCode::kExhausted, "sources of Go take too long");
    const std::optional<int32_t> line = lines.At(pc);
    const std::optional<int32_t> number = files.At(pc);
    const std::optional<int32_t> call = inlined.At(pc);
    if (!line && !number) break;
    if (number != last_number) {
      ASSIGN_OR_RETURN(file, FileOf(record, number.value_or(-1)));
      last_number = number;
    }
    GoSourceRow row{.begin = pc, .end = std::min({lines.end(), files.end(), inlined.end(), size})};
    row.place = {.file = file, .line = static_cast<uint32_t>(std::max(line.value_or(0), 0))};
    if (call && *call >= 0) row.inlined = static_cast<uint32_t>(*call);
    pc = row.end;
    const bool is_same =
        !rows.empty() && rows.back().place == row.place && rows.back().inlined == row.inlined;
    if (is_same) {
      rows.back().end = row.end;
    } else {
      rows.push_back(row);
    }
  }
  return rows;
}

Result<void> GoSourceLines::AddCalls(const Record& record, uint64_t size, GoSource& source) {
  uint32_t count = 0;
  for (const GoSourceRow& row : source.rows) {
    if (row.inlined) count = std::max(count, *row.inlined + 1);
  }
  const uint64_t call_size = ShapeOf(table_.format).call_size;
  const bool is_new = table_.format == Format::kGo20;
  // None is of less than a byte.
  const uint64_t most = std::min<uint64_t>(kMostCalls, size);
  for (uint32_t i = 0; i < std::min<uint64_t>(count, most); ++i) {
    ++steps_;
    ASSIGN_OR_RETURN(const auto bytes, calls_.At(*record.calls + i * call_size, call_size));
    if (bytes.size() < call_size) break;
    GoInlinedCall call{.name = NumberAt(bytes, is_new ? 4 : 12),
                       .start_line = is_new ? NumberAt(bytes, 12) : 0,
                       .call = {},
                       .within = {}};
    const uint32_t from = NumberAt(bytes, is_new ? 8 : 16);
    const GoSourceRow* const row = RowAt(source.rows, from);
    if (row != nullptr) {
      call.call = row->place;
      if (row->inlined != i) call.within = row->inlined;
    }
    source.inlined.push_back(call);
  }
  for (GoSourceRow& row : source.rows) {
    if (row.inlined && *row.inlined >= source.inlined.size()) row.inlined.reset();
  }
  // What is called within a call that is not there is called by the function, as far as is known.
  for (GoInlinedCall& call : source.inlined) {
    if (call.within && *call.within >= source.inlined.size()) call.within.reset();
  }
  return {};
}

Result<GoSource> GoSourceLines::Of(const GoFunction& function) {
  ASSIGN_OR_RETURN(const Record record, RecordOf(function));
  GoSource source{.start_line = record.start_line, .inlined = {}, .rows = {}};
  const uint64_t size = function.end.value() - function.begin.value();
  ASSIGN_OR_RETURN(source.rows, Rows(record, size));
  if (record.calls) RETURN_IF_ERROR(AddCalls(record, size, source));
  return source;
}

}  // namespace pyrometer
