// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_unit_reader.h"

#include <dwarf.h>

#include <optional>
#include <utility>

#include "binary/sections.h"

namespace pyrometer {

DwarfUnitReader::DwarfUnitReader(const Parts& parts, const DwarfOptions& options)
    : parts_(parts),
      options_(options),
      functions_(parts.file, parts.segments, parts.sink),
      lines_(parts.segments, parts.sink) {}

Result<void> DwarfUnitReader::AddSplit(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const SectionTable table, SectionTable::Read(elf));
  ASSIGN_OR_RETURN(DwarfSections sections, DwarfSections::Open(elf, table, ".dwo"));
  auto file = std::make_unique<DwarfFile>(std::move(sections),
                                          DwarfFile::Others{.skeletons = &parts_.file});
  ASSIGN_OR_RETURN(DwarfPackage package, DwarfPackage::Read(elf, table, *file));
  auto functions = std::make_unique<DwarfFunctions>(*file, parts_.segments, parts_.sink);
  splits_.push_back(
      {.file = std::move(file), .package = std::move(package), .functions = std::move(functions)});
  return {};
}

DwarfCounts DwarfUnitReader::Read(uint64_t begin, uint64_t end) {
  counts_ = {};
  DwarfUnitHeader header;
  for (uint64_t at = begin; at < end && !counts_.is_cut; at = header.end) {
    Result<void> read = parts_.file.ReadHeader(at, header);
    if (!read && read.error().code() != ErrorCode::kUnsupported) {
      ++counts_.malformed;  // nobody knows where the next unit is
      break;
    }
    if (read) read = ReadUnit(header);
    ++counts_.units;
    if (!read) {
      const bool is_malformed = read.error().code() == ErrorCode::kMalformed;
      ++(is_malformed ? counts_.malformed : counts_.unsupported);
    }
    counts_.is_cut = parts_.sink.is_full();
  }
  Count(functions_.TakeCounts());
  for (const SplitUnits& split : splits_) Count(split.functions->TakeCounts());
  counts_.rows = lines_.TakeRows();
  return counts_;
}

void DwarfUnitReader::Count(const DwarfFunctions::Counts& functions) {
  counts_.functions += functions.functions;
  counts_.inlined_calls += functions.inlined_calls;
  counts_.malformed += functions.malformed;
}

bool DwarfUnitReader::HasCode(const DwarfUnit& unit) const {
  if (unit.tag != DW_TAG_compile_unit && unit.tag != DW_TAG_skeleton_unit) return false;
  return !options_.without_go || unit.language != DW_LANG_Go;
}

Result<void> DwarfUnitReader::ReadUnit(const DwarfUnitHeader& header) {
  if (header.type != DW_UT_compile && header.type != DW_UT_skeleton) return {};
  ASSIGN_OR_RETURN(const auto bytes, parts_.file.ReadUnit(header));
  ASSIGN_OR_RETURN(const DwarfUnit unit, parts_.file.OpenUnit(header, bytes));
  if (!HasCode(unit)) return {};
  std::optional<DwarfSourceFiles> files;
  if (unit.lines) {
    if (Result<DwarfSourceFiles> read = DwarfSourceFiles::Read(parts_.file, unit)) {
      files = *std::move(read);
    } else {
      ++counts_.malformed;
    }
  }
  DwarfSourceFiles* const of_calls = files ? &*files : nullptr;
  const bool is_whole = functions_.ReadAll(unit, bytes, of_calls);
  Result<void> split = unit.dwo_id ? ReadSplit(unit, of_calls) : Result<void>();
  if (files) ReadLines(unit, *files);
  if (is_whole) return split;
  return Fail(ErrorCode::kMalformed, "the entries of the unit at {:#x} are cut", header.offset);
}

void DwarfUnitReader::ReadLines(const DwarfUnit& unit, DwarfSourceFiles& files) {
  if (!lines_read_.insert(*unit.lines).second) return;
  if (parts_.listener != nullptr) parts_.listener->BeginProgram(*unit.lines);
  if (lines_.Run(files)) return;
  if (parts_.listener != nullptr) {
    parts_.listener->NoteMalformedProgram();
  } else {
    ++counts_.malformed;
  }
}

// The entries of a skeleton's unit.
Result<void> DwarfUnitReader::ReadSplit(const DwarfUnit& skeleton, DwarfSourceFiles* files) {
  if (!splits_read_.insert(*skeleton.dwo_id).second) return {};
  for (auto split = splits_.begin(); split != splits_.end(); ++split) {
    const DwarfContribution* const place = split->package.Find(*skeleton.dwo_id);
    if (place == nullptr) continue;
    Result<void> read = ReadSplit(skeleton, *place, *split, files);
    // Of a file for each unit there may be many, which need not be kept.
    if (split->package.size() == 1) {
      Count(split->functions->TakeCounts());
      splits_.erase(split);
    }
    return read;
  }
  ++counts_.missing;
  return {};
}

Result<void> DwarfUnitReader::ReadSplit(const DwarfUnit& skeleton, const DwarfContribution& place,
                                        SplitUnits& split, DwarfSourceFiles* files) {
  DwarfUnitHeader header;
  RETURN_IF_ERROR(split.file->ReadHeader(place.info, header));
  ASSIGN_OR_RETURN(const auto bytes, split.file->ReadUnit(header));
  const DwarfFile::Split of_skeleton{.skeleton = skeleton,
                                     .abbrevs = place.abbrevs,
                                     .string_offsets = place.string_offsets,
                                     .range_lists = place.range_lists};
  ASSIGN_OR_RETURN(const DwarfUnit unit, split.file->OpenUnit(header, bytes, &of_skeleton));
  if (split.functions->ReadAll(unit, bytes, files)) return {};
  return Fail(ErrorCode::kMalformed, "the entries of the split unit at {:#x} are cut",
              header.offset);
}

}  // namespace pyrometer
