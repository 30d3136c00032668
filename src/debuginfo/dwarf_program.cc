// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_program.h"

#include <memory>
#include <utility>

#include "binary/sections.h"
#include "debuginfo/dwarf_file.h"
#include "debuginfo/dwarf_team.h"
#include "debuginfo/dwarf_unit_reader.h"

namespace pyrometer {
namespace {

Result<std::unique_ptr<DwarfFile>> OpenDwarf(const ElfFile& elf, const DwarfFile::Others& others) {
  ASSIGN_OR_RETURN(const SectionTable table, SectionTable::Read(elf));
  ASSIGN_OR_RETURN(DwarfSections sections, DwarfSections::Open(elf, table));
  return std::make_unique<DwarfFile>(std::move(sections), others);
}

// Below that a second thread is not worth its while.
constexpr uint64_t kPartsForTwo = 4;

DwarfCounts ReadUnits(DwarfFile& file, const DwarfFiles& files, const DwarfOptions& options,
                      SourceSink& sink) {
  const std::span<const Segment> segments = files.object.segments();
  const uint64_t size = file.sections().Of(DwarfSection::kInfo).size();
  if (options.helper != nullptr && files.splits.empty() && size / options.part >= kPartsForTwo) {
    return DwarfTeam({file, segments, sink, *options.helper}, options).ReadAll();
  }
  DwarfUnitReader reader({.file = file, .segments = segments, .sink = sink}, options);
  // One that cannot be read is as good as missing, which is counted.
  for (const ElfFile& split : files.splits) reader.AddSplit(split).has_value();
  return reader.Read(0, size);
}

}  // namespace

Result<DwarfCounts> ReadDwarf(const DwarfFiles& files, const DwarfOptions& options,
                              SourceSink& sink) {
  DwarfFile::Others others;
  std::unique_ptr<DwarfFile> supplement;
  if (files.supplement != nullptr) {
    // Without it some functions have no name.
    if (auto opened = OpenDwarf(*files.supplement, {})) {
      supplement = *std::move(opened);
      others.supplement = supplement.get();
    }
  }
  Result<std::unique_ptr<DwarfFile>> file = OpenDwarf(files.object, others);
  if (!file && file.error().code() == ErrorCode::kNotFound && files.debug != nullptr) {
    file = OpenDwarf(*files.debug, others);
  }
  if (!file) return std::move(file).error();
  return ReadUnits(**file, files, options, sink);
}

}  // namespace pyrometer
