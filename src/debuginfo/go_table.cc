// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_table.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "binary/byte_source.h"

namespace pyrometer {
namespace {

constexpr uint32_t kMagicGo12 = 0xfffffffb;
constexpr uint32_t kMagicGo116 = 0xfffffffa;
constexpr uint32_t kMagicGo118 = 0xfffffff0;
constexpr uint32_t kMagicGo120 = 0xfffffff1;
constexpr uint64_t kPointerSize = 8;
constexpr uint64_t kNoFile = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kNoFuncData = std::numeric_limits<uint32_t>::max();

template <typename T>
std::optional<T> ObjectAt(std::span<const std::byte> bytes, uint64_t position) {
  if (!Within(position, sizeof(T), bytes.size())) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof(T));
  return value;
}

std::optional<GoHeader::Format> FormatOf(uint32_t magic) {
  switch (magic) {
    case kMagicGo12:
      return GoHeader::Format::kGo12;
    case kMagicGo116:
      return GoHeader::Format::kGo116;
    case kMagicGo118:
      return GoHeader::Format::kGo118;
    case kMagicGo120:
      return GoHeader::Format::kGo120;
    default:
      return std::nullopt;
  }
}

// Of functab.
uint64_t EntrySize(GoHeader::Format format) {
  return format >= GoHeader::Format::kGo118 ? 2 * sizeof(uint32_t) : 2 * kPointerSize;
}

// The parts of the table lie in the order in which the header names them.
bool ReadParts(std::span<const std::byte> bytes, uint64_t table_size, GoHeader& header) {
  uint64_t at = header.format >= GoHeader::Format::kGo118 ? 32 : 24;
  uint64_t end = 0;
  for (uint64_t* part : {&header.names, &header.unit_files, &header.files, &header.pc_values,
                         &header.function_table}) {
    const auto offset = ObjectAt<uint64_t>(bytes, at);
    if (!offset || *offset <= end || *offset > table_size) return false;
    *part = end = *offset;
    at += sizeof(uint64_t);
  }
  header.function_records = header.function_table;
  return true;
}

// What is common to all records, behind the entry. Offsets from there.
constexpr uint64_t kPcSp = 12;
constexpr uint64_t kPcFile = 16;
constexpr uint64_t kPcLine = 20;
constexpr uint64_t kPcDataCount = 24;
constexpr uint64_t kUnit = 28;

// Where a record's fixed part ends; its last byte is the count of FUNCDATA.
uint64_t FixedSize(GoHeader::Format format) {
  switch (format) {
    case GoHeader::Format::kGo12:
      return 32;
    case GoHeader::Format::kGo116:
    case GoHeader::Format::kGo118:
      return 36;
    case GoHeader::Format::kGo120:
      return 40;
  }
  return 0;
}

std::optional<std::string_view> UpToZero(std::string_view text) {
  const size_t length = text.find('\0');
  if (length == 0 || length == std::string_view::npos) return std::nullopt;
  return text.substr(0, length);
}

}  // namespace

std::optional<GoHeader> GoHeader::Read(std::span<const std::byte> bytes, uint64_t table_size) {
  const auto format = FormatOf(ObjectAt<uint32_t>(bytes, 0).value_or(0));
  const auto padding = ObjectAt<uint16_t>(bytes, 4);
  const auto quantum = ObjectAt<uint8_t>(bytes, 6).value_or(uint8_t{0});
  const auto functions = ObjectAt<uint64_t>(bytes, 8);
  if (!format || padding != 0 || (quantum != 1 && quantum != 4) || !functions) return std::nullopt;
  if (ObjectAt<uint8_t>(bytes, 7) != kPointerSize) return std::nullopt;

  GoHeader header{.format = *format, .quantum = quantum, .functions = *functions};
  if (header.format == Format::kGo12) {
    header.function_table = 8 + kPointerSize;
  } else if (!ReadParts(bytes, table_size, header)) {
    return std::nullopt;
  }
  if (header.format >= Format::kGo118) header.text = ObjectAt<uint64_t>(bytes, 24).value_or(0);
  // Each has an entry, one more tells the end.
  if (header.function_table > table_size) return std::nullopt;
  const uint64_t room = (table_size - header.function_table) / EntrySize(*format);
  if (header.functions == 0 || header.functions > room) return std::nullopt;
  return header;
}

Result<GoTable> GoTable::Make(std::vector<std::byte> bytes) {
  std::optional<GoHeader> header = GoHeader::Read(bytes, bytes.size());
  if (!header) return Fail(ErrorCode::kMalformed, "not a Go table of functions");
  if (header->format == GoHeader::Format::kGo12) {
    const uint64_t end = header->function_table + header->functions * EntrySize(header->format);
    const auto files = ObjectAt<uint32_t>(bytes, end + kPointerSize);
    if (!files) return Fail(ErrorCode::kMalformed, "the Go table of functions is cut");
    header->files = *files;
  }
  return GoTable(std::move(bytes), *header);
}

template <typename T>
std::optional<T> GoTable::At(uint64_t position) const {
  return ObjectAt<T>(bytes_, position);
}

std::optional<uint64_t> GoTable::RawAddress(uint64_t position) const {
  if (is_relative()) return At<uint32_t>(position);
  return At<uint64_t>(position);
}

std::optional<uint64_t> GoTable::RawEntry(uint64_t index) const {
  return RawAddress(header_.function_table + index * EntrySize(header_.format));
}

std::optional<uint64_t> GoTable::Entry(uint64_t index) const {
  const auto raw = RawEntry(index);
  if (!raw) return std::nullopt;
  return text_ + *raw;  // text_ is 0 where entries are addresses
}

std::optional<uint32_t> GoTable::RecordAt(uint64_t index) const {
  const uint64_t at = header_.function_table + index * EntrySize(header_.format);
  return is_relative() ? At<uint32_t>(at + sizeof(uint32_t)) : At<uint32_t>(at + kPointerSize);
}

std::optional<GoFunction> GoTable::Function(uint64_t index) const {
  const auto begin = Entry(index);
  const auto next = Entry(index + 1);
  const auto record_at = RecordAt(index);
  if (!begin || !next || !record_at || *begin >= *next) return std::nullopt;

  const uint64_t record = header_.function_records + *record_at;
  const uint64_t fields = record + (is_relative() ? sizeof(uint32_t) : kPointerSize);
  const uint64_t end = fields + FixedSize(header_.format);
  if (end > bytes_.size()) return std::nullopt;
  if (RawAddress(record) != RawEntry(index)) return std::nullopt;
  const bool has_units = header_.format != GoHeader::Format::kGo12;
  return GoFunction{
      .begin = *begin,
      .next = *next,
      .name = At<uint32_t>(fields).value_or(0),
      .unit = has_units ? At<uint32_t>(fields + kUnit).value_or(0) : 0,
      .stack_at = At<uint32_t>(fields + kPcSp).value_or(0),
      .files_at = At<uint32_t>(fields + kPcFile).value_or(0),
      .lines_at = At<uint32_t>(fields + kPcLine).value_or(0),
      .arrays = end,
      .pc_data_count = At<uint32_t>(fields + kPcDataCount).value_or(0),
      .func_data_count = At<uint8_t>(end - 1).value_or(0),
  };
}

uint32_t GoTable::PcDataAt(const GoFunction& function, uint32_t which) const {
  if (which >= function.pc_data_count) return 0;
  return At<uint32_t>(function.arrays + uint64_t{which} * sizeof(uint32_t)).value_or(0);
}

std::optional<uint64_t> GoTable::FuncData(const GoFunction& function, uint32_t which) const {
  if (which >= function.func_data_count) return std::nullopt;
  uint64_t at = function.arrays + uint64_t{function.pc_data_count} * sizeof(uint32_t);
  if (is_relative()) {
    const auto offset = At<uint32_t>(at + uint64_t{which} * sizeof(uint32_t));
    if (!offset || *offset == kNoFuncData) return std::nullopt;
    return *offset;
  }
  at = (at + kPointerSize - 1) / kPointerSize * kPointerSize;  // the table itself is aligned
  const auto address = At<uint64_t>(at + which * kPointerSize);
  if (address == 0) return std::nullopt;
  return address;
}

std::span<const std::byte> GoTable::PcValues(uint32_t at) const {
  const uint64_t position = header_.pc_values + at;
  if (at == 0 || position >= bytes_.size()) return {};
  return std::span(bytes_).subspan(position);
}

// What lies at [at, end), up to a zero byte or kMaxString.
std::string_view GoTable::Text(uint64_t begin, uint64_t at, uint64_t end) const {
  if (at >= end || end > bytes_.size()) return {};
  // Where strings follow each other, one begins behind the end of another.
  const bool is_string_table = header_.format != GoHeader::Format::kGo12;
  if (is_string_table && at > begin && bytes_[at - 1] != std::byte{0}) return {};
  return {reinterpret_cast<const char*>(bytes_.data() + at),
          std::min<uint64_t>(end - at, kMaxString + 1)};
}

std::string_view GoTable::TextOfName(uint32_t at) const {
  // At 0 is the name of the first function. Go's runtime takes that for none.
  if (header_.format != GoHeader::Format::kGo12) {
    return Text(header_.names, header_.names + at, header_.unit_files);
  }
  return at == 0 ? std::string_view() : Text(0, at, bytes_.size());
}

std::optional<std::string_view> GoTable::Name(uint32_t at) const {
  return UpToZero(TextOfName(at));
}

bool GoTable::LooksLikeName(uint32_t at) const {
  constexpr size_t kEnough = 16;
  std::string_view text = TextOfName(at).substr(0, kEnough);
  text = text.substr(0, text.find('\0'));
  constexpr auto kLastControl = 0x1f;
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) <= kLastControl;
  });
}

bool GoTable::IsName(uint32_t at, std::string_view name) const {
  const std::string_view text = TextOfName(at);
  return text.starts_with(name) && text.size() > name.size() && text[name.size()] == '\0';
}

std::optional<uint32_t> GoTable::PathAt(uint32_t unit, int32_t file) const {
  if (file < 0) return std::nullopt;
  const auto number = static_cast<uint32_t>(file);
  if (header_.format == GoHeader::Format::kGo12) {
    // Counted from 1: the first word is how many there are.
    if (number == 0 || number >= At<uint32_t>(header_.files).value_or(0)) return std::nullopt;
    return At<uint32_t>(header_.files + uint64_t{number} * sizeof(uint32_t));
  }
  const uint64_t at = header_.unit_files + (uint64_t{unit} + number) * sizeof(uint32_t);
  if (at >= header_.files) return std::nullopt;
  const auto path = At<uint32_t>(at);
  if (!path || *path == kNoFile) return std::nullopt;
  return path;
}

std::optional<std::string_view> GoTable::Path(uint32_t at) const {
  if (header_.format == GoHeader::Format::kGo12) return UpToZero(Text(0, at, bytes_.size()));
  return UpToZero(Text(header_.files, header_.files + at, header_.pc_values));
}

}  // namespace pyrometer
