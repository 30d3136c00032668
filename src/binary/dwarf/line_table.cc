// SPDX-License-Identifier: Apache-2.0
#include "binary/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace pyrometer {
namespace {

constexpr uint64_t kMostOfLineProgram = uint64_t{16} << 20;  // of one program
constexpr size_t kMostLineRows = size_t{1} << 20;            // 16 MiB
constexpr size_t kMostLineNames = size_t{1} << 18;           // of files, or of directories
constexpr size_t kMostPathPart = 4096;

std::string Joined(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path += name;
}

}  // namespace

struct DwarfLineTable::Head {
  DwarfUnit unit{};   // what the forms of names depend on
  uint64_t base = 0;  // where `bytes` begin in the section
  std::vector<std::byte> bytes;
  size_t names = 0;        // where they begin in `bytes`
  size_t program = 0;      // likewise
  uint8_t least_step = 1;  // bytes of an instruction
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t first_special = 1;
  std::vector<uint8_t> operands;  // of standard opcodes, from 1 on
};

Result<DwarfLineTable::Head> DwarfLineTable::ReadHead(DwarfSections& sections, uint64_t offset) {
  constexpr size_t kMostOfSize = 12;
  DwarfCursor start(sections.lines.At(offset, kMostOfSize));
  Head head;
  const uint64_t size = TakeDwarfLength(start, head.unit.offset_size);
  if (!start.ok()) return Fail(ErrorCode::kMalformed, "no line program");
  if (size > kMostOfLineProgram)
    return Fail(ErrorCode::kExhausted, "a line program of {} bytes", size);
  head.base = offset + start.position();
  RETURN_IF_ERROR(sections.lines.Read(head.base, size, head.bytes));
  DwarfCursor cursor(head.bytes);
  head.unit.version = cursor.Fixed<uint16_t>();
  if (head.unit.version < 2 || head.unit.version > 5) {
    return Fail(ErrorCode::kUnsupported, "a line program of version {}", head.unit.version);
  }
  if (head.unit.version >= 5) {
    head.unit.address_size = cursor.Fixed<uint8_t>();
    cursor.Fixed<uint8_t>();  // of a segment's number
  }
  const uint64_t length =
      head.unit.offset_size == 8 ? cursor.Fixed<uint64_t>() : cursor.Fixed<uint32_t>();
  if (length > cursor.remaining()) return Fail(ErrorCode::kMalformed, "a line program ends early");
  head.program = cursor.position() + length;
  head.least_step = cursor.Fixed<uint8_t>();
  if (head.unit.version >= 4) cursor.Fixed<uint8_t>();  // of VLIW machines
  cursor.Fixed<uint8_t>();                              // whether rows are statements
  head.line_base = cursor.Fixed<int8_t>();
  head.line_range = cursor.Fixed<uint8_t>();
  head.first_special = cursor.Fixed<uint8_t>();
  for (unsigned i = 1; i < head.first_special; ++i) {
    head.operands.push_back(cursor.Fixed<uint8_t>());
  }
  if (!cursor.ok() || head.line_range == 0 || head.first_special == 0) {
    return Fail(ErrorCode::kMalformed, "the head of a line program is damaged");
  }
  head.names = cursor.position();
  return head;
}

// Before version 5.
Result<void> DwarfLineTable::ReadOldNames(DwarfSections& sections, DwarfCursor& cursor,
                                          const Head& head) {
  const auto next = [&](std::string_view& text) {
    const Text at{&sections.lines, head.base + cursor.position()};
    text = cursor.String(kMostPathPart);
    return at;
  };
  std::string_view text;
  directories_.push_back(directory_);
  for (Text at = next(text); !text.empty(); at = next(text)) {
    directories_.push_back(at);
    if (directories_.size() > kMostLineNames)
      return Fail(ErrorCode::kExhausted, "many directories");
  }
  files_.emplace_back();  // they are counted from 1
  for (Text at = next(text); !text.empty(); at = next(text)) {
    files_.push_back({.name = at, .directory = cursor.Uleb()});
    cursor.SkipLeb();  // when it was changed
    cursor.SkipLeb();  // its size
    if (files_.size() > kMostLineNames) return Fail(ErrorCode::kExhausted, "many files");
  }
  if (!cursor.ok()) return Fail(ErrorCode::kMalformed, "the names of a line program are damaged");
  return {};
}

Result<void> DwarfLineTable::ReadNames(DwarfSections& sections, DwarfCursor& cursor,
                                       const Head& head) {
  if (head.unit.version < 5) return ReadOldNames(sections, cursor, head);
  const auto text_of = [&](const DwarfValue& value) -> Text {
    switch (value.kind) {
      case DwarfClass::kText:
        return {&sections.lines, value.number};
      case DwarfClass::kString:
        return {&sections.strings, value.number};
      case DwarfClass::kLineString:
        return {&sections.line_strings, value.number};
      case DwarfClass::kAlternateString:
        if (sections.alternate == nullptr) return {};
        return {&sections.alternate->strings, value.number};
      default:
        return {};
    }
  };
  const auto read = [&](const auto& add) -> Result<void> {
    std::vector<std::pair<uint64_t, uint64_t>> forms(cursor.Fixed<uint8_t>());
    for (auto& [content, form] : forms) {
      content = cursor.Uleb();
      form = cursor.Uleb();
    }
    const uint64_t count = cursor.Uleb();
    if (count > kMostLineNames) return Fail(ErrorCode::kExhausted, "many files");
    for (uint64_t i = 0; i < count && cursor.ok(); ++i) {
      File file;
      for (const auto& [content, form] : forms) {
        const DwarfValue value = TakeDwarfValue(cursor, form, head.unit, head.base);
        if (content == DW_LNCT_path) file.name = text_of(value);
        if (content == DW_LNCT_directory_index) file.directory = value.number;
      }
      add(file);
    }
    if (!cursor.ok()) return Fail(ErrorCode::kMalformed, "the names of a line program are damaged");
    return {};
  };
  RETURN_IF_ERROR(read([&](const File& file) { directories_.push_back(file.name); }));
  return read([&](const File& file) { files_.push_back(file); });
}

// Runs a program.
class DwarfLineTable::Program {
 public:
  Program(const Head& head, const std::function<bool(ElfAddress)>& is_code, DwarfLineTable& table)
      : head_(head), is_code_(is_code), table_(table) {}

  Result<void> Run() {
    DwarfCursor cursor(head_.bytes, head_.program);
    while (!cursor.AtEnd() && cursor.ok()) {
      if (table_.rows_.size() > kMostLineRows) {
        return Fail(ErrorCode::kExhausted, "a line program with many rows");
      }
      Step(cursor);
    }
    // What has no end is not known to be whole.
    table_.rows_.resize(begin_);
    return {};
  }

 private:
  void Step(DwarfCursor& cursor) {
    const auto opcode = cursor.Fixed<uint8_t>();
    if (opcode >= head_.first_special) {
      const unsigned special = opcode - head_.first_special;
      Advance(special / head_.line_range);
      AdvanceLine(head_.line_base + static_cast<int>(special % head_.line_range));
      return AddRow();
    }
    switch (opcode) {
      case 0:
        return Extended(cursor);
      case DW_LNS_copy:
        return AddRow();
      case DW_LNS_advance_pc:
        return Advance(cursor.Uleb());
      case DW_LNS_advance_line:
        return AdvanceLine(cursor.Sleb());
      case DW_LNS_set_file:
        row_.file = ToNumber(cursor.Uleb());
        return;
      case DW_LNS_const_add_pc:
        return Advance((255U - head_.first_special) / head_.line_range);
      case DW_LNS_fixed_advance_pc:
        row_.address += cursor.Fixed<uint16_t>();
        return;
      default:
        for (unsigned i = 0; i < head_.operands[opcode - 1U]; ++i) cursor.SkipLeb();
    }
  }

  void Extended(DwarfCursor& cursor) {
    const uint64_t size = cursor.Uleb();
    DwarfCursor inner(cursor.Bytes(size));
    switch (inner.Fixed<uint8_t>()) {
      case DW_LNE_end_sequence:
        return EndSequence();
      case DW_LNE_set_address:
        row_.address = inner.remaining() == 4 ? inner.Fixed<uint32_t>() : inner.Fixed<uint64_t>();
        return;
      default:  // what it does not know it skips
        return;
    }
  }

  void EndSequence() {
    std::vector<Row>& rows = table_.rows_;
    const bool is_code = rows.size() > begin_ && is_code_(ElfAddress(rows[begin_].address)) &&
                         row_.address > rows[begin_].address && is_ascending_;
    if (is_code) {
      rows.push_back({.address = row_.address, .file = kNoFile, .line = 0});
      table_.ends_.push_back(rows.size());
    } else {
      rows.resize(begin_);
    }
    begin_ = rows.size();
    row_ = kFirst;
    is_ascending_ = true;
  }

  void Advance(uint64_t instructions) { row_.address += instructions * head_.least_step; }
  void AdvanceLine(int64_t by) { row_.line = ToNumber(row_.line + static_cast<uint64_t>(by)); }
  static uint32_t ToNumber(uint64_t number) {
    return number < kNoFile ? static_cast<uint32_t>(number) : 0;
  }

  // Of several rows for an address the last one counts.
  void AddRow() {
    std::vector<Row>& rows = table_.rows_;
    if (rows.size() > begin_) {
      Row& last = rows.back();
      is_ascending_ &= last.address <= row_.address;
      if (last.address == row_.address) {
        last = row_;
        return;
      }
      if (last.file == row_.file && last.line == row_.line) return;
    }
    rows.push_back(row_);
  }

  static constexpr Row kFirst{.address = 0, .file = 1, .line = 1};

  const Head& head_;
  const std::function<bool(ElfAddress)>& is_code_;
  DwarfLineTable& table_;
  Row row_ = kFirst;
  size_t begin_ = 0;  // of the sequence, among all rows
  bool is_ascending_ = true;
};

Result<DwarfLineTable> DwarfLineTable::Read(DwarfSections& sections, uint64_t offset,
                                            Text directory,
                                            const std::function<bool(ElfAddress)>& is_code) {
  ASSIGN_OR_RETURN(const Head head, ReadHead(sections, offset));
  DwarfLineTable table;
  table.directory_ = directory;
  DwarfCursor names(std::span(head.bytes).first(head.program), head.names);
  RETURN_IF_ERROR(table.ReadNames(sections, names, head));
  RETURN_IF_ERROR(Program(head, is_code, table).Run());
  table.Sort();
  return table;
}

// Sequences by where they begin. One that begins within another is left out.
void DwarfLineTable::Sort() {
  std::vector<std::pair<size_t, size_t>> sequences;
  size_t begin = 0;
  bool sorted = true;
  for (const size_t end : ends_) {
    sorted &= begin == 0 || rows_[begin - 1].address <= rows_[begin].address;
    sequences.emplace_back(begin, end);
    begin = end;
  }
  ends_ = {};
  if (sorted) return;
  std::ranges::stable_sort(sequences, {}, [&](const auto& s) { return rows_[s.first].address; });
  std::vector<Row> all;
  all.reserve(rows_.size());
  for (const auto& [first, last] : sequences) {
    if (!all.empty() && rows_[first].address < all.back().address) continue;
    all.insert(all.end(), rows_.begin() + static_cast<ptrdiff_t>(first),
               rows_.begin() + static_cast<ptrdiff_t>(last));
  }
  rows_ = std::move(all);
}

std::string DwarfLineTable::StringOf(Text text) {
  return text.section == nullptr ? std::string() : std::string(text.section->TextAt(text.offset));
}

// In version 5 directory 0 is that of the compilation, of which the unit tells, too: both may be
// relative to nobody knows what, and then the same.
std::string DwarfLineTable::PathOf(uint32_t file) const {
  if (file >= files_.size()) return {};
  const auto& [name, number] = files_[file];
  std::string path = StringOf(name);
  if (path.empty() || path.starts_with('/')) return path;
  std::string outer = StringOf(directory_);
  if (outer.empty() && !directories_.empty()) outer = StringOf(directories_[0]);
  const bool has_inner = number != 0 && number < directories_.size();
  const std::string inner = has_inner ? StringOf(directories_[number]) : std::string();
  return Joined(inner.empty() ? outer : Joined(outer, inner), path);
}

}  // namespace pyrometer
