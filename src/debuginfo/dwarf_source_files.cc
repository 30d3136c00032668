// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_source_files.h"

#include <dwarf.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pyrometer {
namespace {

constexpr uint64_t kMostOfProgram = uint64_t{128} << 20;
constexpr size_t kMostOfLength = 12;
constexpr size_t kMostFiles = size_t{1} << 20;  // of one program, and directories

DwarfValue Inline(std::string_view text) {
  return {.form = DW_FORM_string, .number = 0, .text = text};
}

// The columns of a table of DWARF 5.
struct Column {
  uint64_t content = 0;  // DW_LNCT_*
  uint16_t form = 0;
};

std::vector<Column> ReadColumns(DwarfCursor& in) {
  std::vector<Column> columns(in.Fixed<uint8_t>());
  for (Column& column : columns) {
    column.content = in.Uleb();
    column.form = static_cast<uint16_t>(in.Uleb());
  }
  return columns;
}

// Calls `on_row(path, directory)` for each row. False if the table is malformed.
template <typename OnRow>
bool ReadTable(const DwarfFormat& format, DwarfCursor& in, OnRow on_row) {
  const std::vector<Column> columns = ReadColumns(in);
  const uint64_t rows = in.Uleb();
  // Every row takes bytes, so that they are not more than those.
  if (!in.ok() || rows > std::min(in.remaining(), kMostFiles) || (columns.empty() && rows > 0)) {
    return false;
  }
  for (uint64_t row = 0; row < rows; ++row) {
    DwarfValue path;
    uint64_t directory = 0;
    const size_t begin = in.position();
    for (const Column& column : columns) {
      DwarfValue value;
      if (!ReadForm(column.form, 0, format, in, value)) return false;
      if (column.content == DW_LNCT_path) path = value;
      if (column.content == DW_LNCT_directory_index) directory = value.number;
    }
    if (in.position() == begin) return false;
    on_row(path, directory);
  }
  return true;
}

}  // namespace

Result<DwarfSourceFiles> DwarfSourceFiles::Read(DwarfFile& file, const DwarfUnit& unit) {
  DwarfSourceFiles files(file, unit);
  RETURN_IF_ERROR(files.ReadHeader(unit.lines.value_or(0)));
  files.whole_directories_.resize(files.directories_.size());
  return files;
}

Result<void> DwarfSourceFiles::ReadHeader(uint64_t at) {
  constexpr uint32_t k64Bit = 0xffffffff;
  const Error malformed = Fail(ErrorCode::kMalformed, "no line number program at {:#x}", at);
  DwarfFormat format;
  ASSIGN_OR_RETURN(const auto begin, file_->lines().At(at, kMostOfLength));
  DwarfCursor first(begin);
  uint64_t size = first.Fixed<uint32_t>();
  if (size == k64Bit) {
    format.offset_size = 8;
    size = first.Fixed<uint64_t>();
  }
  if (!first.ok() || size > kMostOfProgram) return malformed;
  ASSIGN_OR_RETURN(const auto bytes, file_->lines().At(at + first.position(), size));
  if (bytes.size() < size) return malformed;
  DwarfCursor in(bytes);
  version_ = format.version = in.Fixed<uint16_t>();
  if (version_ < 2 || version_ > 5) return malformed;
  if (version_ >= 5) {
    format.address_size = in.Fixed<uint8_t>();
    if (in.Fixed<uint8_t>() != 0 || format.address_size != 8) return malformed;  // segments
  }
  const uint64_t header_size = ReadOffset(format, in);
  const size_t header_at = in.position();
  if (!in.ok() || header_size > in.remaining()) return malformed;
  program_.instructions = bytes.subspan(header_at + header_size);
  program_.least_instruction = in.Fixed<uint8_t>();
  if (version_ >= 4) in.Fixed<uint8_t>();  // operations an instruction: 1 but for VLIW
  in.Fixed<uint8_t>();                     // whether rows are statements at first
  program_.line_base = in.Fixed<int8_t>();
  program_.line_range = in.Fixed<uint8_t>();
  program_.opcode_base = in.Fixed<uint8_t>();
  if (program_.line_range == 0 || program_.opcode_base == 0) return malformed;
  for (int i = 1; i < program_.opcode_base; ++i) program_.operands.push_back(in.Fixed<uint8_t>());
  const bool is_read = version_ >= 5 ? ReadTables(format, in) : ReadOldTables(in);
  if (!is_read || !in.ok()) return malformed;
  return {};
}

bool DwarfSourceFiles::ReadOldTables(DwarfCursor& in) {
  // Numbers count from 1; the unit's own directory is number 0.
  directories_.push_back(Inline(unit_->directory));
  files_.emplace_back();
  while (in.ok() && directories_.size() < kMostFiles) {
    const std::string_view directory = in.String(kLongestDwarfString);
    if (directory.empty()) break;
    directories_.push_back(Inline(directory));
  }
  while (in.ok() && files_.size() < kMostFiles) {
    const std::string_view name = in.String(kLongestDwarfString);
    if (name.empty()) break;
    files_.push_back({.name = Inline(name), .directory = in.Uleb(), .path = {}});
    in.Uleb();  // time
    in.Uleb();  // size
  }
  return in.ok() && std::max(directories_.size(), files_.size()) < kMostFiles;
}

bool DwarfSourceFiles::ReadTables(const DwarfFormat& format, DwarfCursor& in) {
  const bool has_directories = ReadTable(
      format, in, [this](const DwarfValue& path, uint64_t) { directories_.push_back(path); });
  return has_directories &&
         ReadTable(format, in, [this](const DwarfValue& path, uint64_t directory) {
           files_.push_back({.name = path, .directory = directory, .path = {}});
         });
}

const std::string& DwarfSourceFiles::Directory(uint64_t index) {
  static const std::string kNone;
  if (index >= directories_.size()) return kNone;
  std::optional<std::string>& whole = whole_directories_[index];
  if (!whole) {
    const std::string_view directory = file_->String(*unit_, directories_[index]);
    if (directory.starts_with('/') || unit_->directory.empty() || directory == unit_->directory) {
      whole = directory;
    } else {
      whole =
          directory.empty() ? unit_->directory : unit_->directory + "/" + std::string(directory);
    }
  }
  return *whole;
}

SourceSink::Text DwarfSourceFiles::PathOf(uint64_t index, SourceSink& sink) {
  if (index >= files_.size() || files_[index].name.form == 0) return SourceSink::kUnknown;
  SourceFile& file = files_[index];
  if (!file.path) {
    const std::string name(file_->String(*unit_, file.name));
    if (name.empty()) {
      file.path = SourceSink::kUnknown;
    } else {
      file.path =
          sink.AddPath(name.starts_with('/') ? std::string() : Directory(file.directory), name);
    }
  }
  return *file.path;
}

}  // namespace pyrometer
