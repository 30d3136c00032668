// SPDX-License-Identifier: Apache-2.0
#include "binary/relocations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "binary/dynamic_section.h"
#include "binary/segments.h"

namespace pyrometer {
namespace {

// More that name a symbol no executable has. A sparse file may claim any number.
constexpr uint64_t kMaxRelocations = uint64_t{4} << 20;

// Without the first `skipped`.
std::optional<RelocationRange> RelocationsAt(const ElfFile& elf, std::optional<ElfAddress> address,
                                             uint64_t size, uint64_t skipped) {
  const uint64_t count = size / sizeof(Elf64_Rela);
  if (!address || skipped >= count) return std::nullopt;
  const std::optional<FileOffset> offset = ToFileOffset(elf.segments(), *address);
  if (!offset || count > elf.bytes().size() / sizeof(Elf64_Rela)) return std::nullopt;
  return RelocationRange{.begin = FileOffset(offset->value() + skipped * sizeof(Elf64_Rela)),
                         .count = count - skipped};
}

std::vector<RelocationRange> RelocationSections(const SectionTable& sections) {
  std::vector<RelocationRange> ranges;
  for (const Section& section : sections.all()) {
    if (section.header.sh_type != SHT_RELA || (section.header.sh_flags & SHF_ALLOC) == 0) continue;
    ranges.push_back({.begin = FileOffset(section.header.sh_offset),
                      .count = section.header.sh_size / sizeof(Elf64_Rela)});
  }
  return ranges;
}

// However many there are, and however often they name the same place.
std::vector<RelocationRange> BoundedRanges(std::vector<RelocationRange> ranges) {
  uint64_t left = kMaxRelocations;
  for (RelocationRange& range : ranges) {
    range.count = std::min(range.count, left);
    left -= range.count;
  }
  return ranges;
}

}  // namespace

std::vector<RelocationRange> FindRelocations(const ElfFile& elf, const SectionTable& sections) {
  const Result<DynamicSection> dynamic = DynamicSection::Read(elf);
  if (!dynamic) return BoundedRanges(RelocationSections(sections));
  std::vector<RelocationRange> ranges;
  for (const auto& range :
       {RelocationsAt(elf, dynamic->plt_relocations, dynamic->plt_relocations_size, 0),
        RelocationsAt(elf, dynamic->relocations, dynamic->relocations_size,
                      dynamic->relative_relocations)}) {
    if (range) ranges.push_back(*range);
  }
  return BoundedRanges(std::move(ranges));
}

Result<void> ForEachRelocation(const ElfFile& elf, const RelocationRange& range,
                               const std::function<bool(const Elf64_Rela&)>& visit) {
  constexpr uint64_t kBatch = ReadAhead::kDefaultStep / sizeof(Elf64_Rela);
  std::vector<Elf64_Rela> batch;
  for (uint64_t done = 0; done < range.count; done += batch.size()) {
    const uint64_t at = range.begin.value() + done * sizeof(Elf64_Rela);
    const uint64_t count = std::min(kBatch, range.count - done);
    ASSIGN_OR_RETURN(batch, ReadArray<Elf64_Rela>(elf.bytes(), at, count));
    for (const Elf64_Rela& relocation : batch) {
      if (!visit(relocation)) return {};
    }
  }
  return {};
}

}  // namespace pyrometer
