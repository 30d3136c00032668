// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_split_paths.h"

#include <dwarf.h>

#include <climits>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "binary/sections.h"
#include "debuginfo/dwarf_file.h"

namespace pyrometer {
namespace {

// A skeleton has one entry, of some numbers and strings.
constexpr uint64_t kMostOfSkeleton = 4096;

bool MayBeSkeleton(const DwarfUnitHeader& header) {
  return header.end - header.offset <= kMostOfSkeleton &&
         (header.type == DW_UT_skeleton || header.type == DW_UT_compile);
}

// "" if it is not known.
std::string PathOf(const DwarfUnit& skeleton) {
  const std::string& name = skeleton.dwo_name;
  if (name.empty()) return {};
  std::string path = name.starts_with('/') ? name : skeleton.directory + '/' + name;
  return path.starts_with('/') && path.size() < PATH_MAX ? path : std::string();
}

}  // namespace

std::vector<std::string> ReadSplitPaths(const ElfFile& elf, size_t most) {
  const Result<SectionTable> table = SectionTable::Read(elf);
  if (!table) return {};
  Result<DwarfSections> sections = DwarfSections::Open(elf, *table);
  if (!sections) return {};
  const uint64_t size = sections->Of(DwarfSection::kInfo).size();
  DwarfFile file(*std::move(sections));
  std::vector<std::string> paths;
  absl::flat_hash_set<std::string> known;
  DwarfUnitHeader header;
  for (uint64_t at = 0; at < size && paths.size() < most; at = header.end) {
    const Result<void> read = file.ReadHeader(at, header);
    if (!read && read.error().code() != ErrorCode::kUnsupported) break;
    if (!read || !MayBeSkeleton(header)) continue;
    const Result<DwarfUnit> unit = file.OpenUnit(header);
    if (!unit || !unit->dwo_id) continue;
    std::string path = PathOf(*unit);
    if (!path.empty() && known.insert(path).second) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace pyrometer
