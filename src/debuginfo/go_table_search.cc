// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_table_search.h"

#include <elf.h>

#include <algorithm>
#include <optional>

#include "binary/segments.h"
#include "debuginfo/go_module.h"

namespace pyrometer {
namespace {

// The table is held in memory as a whole, since its parts refer to each other all over. Kubelet's
// has 30 MiB, the largest known ones (a few hundred MB of program) less than 150.
constexpr uint64_t kMaxTable = uint64_t{256} << 20;
// Without sections: how many headers that look right are looked behind.
constexpr size_t kMaxCandidates = 8;
constexpr uint64_t kMaxSearched = uint64_t{4} << 30;
constexpr size_t kStep = size_t{1} << 20;
constexpr size_t kAlignment = 8;

uint32_t QuantumOf(const ElfFile& elf) {
  return elf.header().e_machine == EM_AARCH64 ? 4 : 1;
}

std::optional<GoHeader> PlausibleHeader(const GoImage& image, std::span<const std::byte> bytes,
                                        uint64_t size) {
  std::optional<GoHeader> header = GoHeader::Read(bytes, size);
  if (!header || header->quantum != QuantumOf(image.elf())) return std::nullopt;
  return header;
}

// By the function at the program's entry point, if that is Go's own: with cgo it is C's.
std::optional<uint64_t> TextByEntryPoint(const GoImage& image, const GoTable& table) {
  const uint64_t entry_point = image.elf().header().e_entry;
  for (uint64_t i = 0; i < table.header().functions; ++i) {
    const std::optional<GoFunction> function = table.Function(i);
    if (!function) continue;
    if (!table.IsName(function->name, "_rt0_amd64_linux") &&
        !table.IsName(function->name, "_rt0_arm64_linux")) {
      continue;
    }
    if (function->begin > entry_point) return std::nullopt;
    return entry_point - function->begin;
  }
  return std::nullopt;
}

// All functions must lie in code that the file holds.
bool FitsCode(const GoImage& image, const GoTable& table) {
  const auto begin = table.Entry(0);
  const auto end = table.Entry(table.header().functions);
  if (!begin || !end || *begin >= *end) return false;
  const Segment* const code = ExecutableSegmentAt(image.elf().segments(), ElfAddress(*begin));
  return code != nullptr && *end - *begin <= image.SizeAt(*begin);
}

Result<FoundGoTable> ReadTable(const GoImage& image, uint64_t address, uint64_t size) {
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, image.Read(address, size));
  ASSIGN_OR_RETURN(GoTable table, GoTable::Make(std::move(bytes)));
  std::vector<uint64_t> bases = {0};
  if (table.is_relative()) {
    Result<GoModule> go_module = FindGoModule(image, table, address);
    if (go_module) {
      table.PlaceText(go_module->text);
      bases = std::move(go_module->func_data_bases);
    } else {
      bases.clear();
      const auto text =
          table.header().text != 0 ? table.header().text : TextByEntryPoint(image, table);
      if (!text) return std::move(go_module).error();
      table.PlaceText(*text);
    }
  }
  if (!FitsCode(image, table)) {
    return Fail(ErrorCode::kMalformed, "the Go table at {:#x} is not of this program's code",
                address);
  }
  return FoundGoTable{.table = std::move(table), .func_data_bases = std::move(bases)};
}

struct Candidate {
  uint64_t address = 0;
  uint64_t size = 0;
};

Result<std::vector<Candidate>> SearchSegment(const GoImage& image, const Segment& segment,
                                             uint64_t size) {
  std::vector<Candidate> candidates;
  ReadAhead bytes(image.elf().bytes(), segment.offset.value(), segment.offset.value() + size,
                  kStep);
  for (uint64_t at = -segment.address.value() % kAlignment; at < size; at += kAlignment) {
    ASSIGN_OR_RETURN(const auto here, bytes.At(segment.offset.value() + at, GoHeader::kSize));
    const uint64_t room = std::min(size - at, kMaxTable);
    if (!PlausibleHeader(image, here, room)) continue;
    candidates.push_back({.address = segment.address.value() + at, .size = room});
    if (candidates.size() == kMaxCandidates) break;
  }
  return candidates;
}

Result<FoundGoTable> SearchSegments(const GoImage& image) {
  uint64_t left = kMaxSearched;
  for (const Segment& segment : image.elf().segments()) {
    const uint64_t size = std::min(image.SizeAt(segment.address.value()), left);
    left -= size;
    ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, SearchSegment(image, segment, size));
    for (const Candidate& candidate : candidates) {
      Result<FoundGoTable> found = ReadTable(image, candidate.address, candidate.size);
      if (found) return found;
    }
  }
  return Fail(ErrorCode::kNotFound, "no Go table of functions");
}

// Go's linker names the table's section; ld, which links what has C in it, merges the one of a
// position-independent program into .data.rel.ro. Every Go program since 1.13 has this one.
bool IsGoProgram(const SectionTable& sections) {
  const Section* const section = sections.Find(".go.buildinfo");
  return section != nullptr && section->header.sh_type != SHT_NOBITS;
}

}  // namespace

Result<FoundGoTable> FindGoTable(const GoImage& image, const SectionTable& sections) {
  if (sections.all().empty()) return SearchSegments(image);
  const Section* section = sections.Find(".gopclntab");
  if (section == nullptr) section = sections.Find(".data.rel.ro.gopclntab");
  if (section == nullptr && IsGoProgram(sections)) return SearchSegments(image);
  if (section == nullptr || section->header.sh_type == SHT_NOBITS) {
    return Fail(ErrorCode::kNotFound, "no Go table of functions");
  }
  if (section->header.sh_size > kMaxTable) {
    return Fail(ErrorCode::kExhausted,
                "the Go table of functions has {} bytes, at most {} are read",
                section->header.sh_size, kMaxTable);
  }
  return ReadTable(image, section->header.sh_addr, section->header.sh_size);
}

}  // namespace pyrometer
