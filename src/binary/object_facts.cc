// SPDX-License-Identifier: Apache-2.0
#include "binary/object_facts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_hash.h"
#include "binary/notes.h"
#include "binary/sections.h"

namespace pyrometer {
namespace {

// Empty if it cannot be read whole.
FileHash HashOfFile(const ByteSource& file) {
  const uint64_t size = file.size();
  std::vector<std::byte> head(std::min<uint64_t>(size, kHashedPart));
  std::vector<std::byte> tail(head.size());
  if (!file.Read(0, head) || !file.Read(size - tail.size(), tail)) return {};
  return HashOf(head, tail, size);
}

bool TellsSources(const Section& section) {
  constexpr std::array<std::string_view, 5> kTelling = {".debug_info", ".zdebug_info", ".gopclntab",
                                                        ".data.rel.ro.gopclntab", ".go.buildinfo"};
  return std::ranges::find(kTelling, section.name) != kTelling.end();
}

bool HasSymbols(const Section& section) {
  return section.header.sh_type == SHT_SYMTAB || section.name == ".gnu_debugdata";
}

}  // namespace

ObjectFacts FactsOf(const ElfFile& elf) {
  BuildIds ids = ReadBuildIds(elf);
  const SectionTable table = SectionTable::Read(elf).value_or(SectionTable());
  const bool has_symbols = std::ranges::any_of(table.all(), HasSymbols);
  const bool tells_sources = std::ranges::any_of(table.all(), TellsSources);
  const bool may_tell_sources = tells_sources || table.all().empty();
  return {.build_id = ids.gnu,
          .segments = elf.segments(),
          .hash = ids.gnu.empty() ? HashOfFile(elf.bytes()) : FileHash(),
          .go_build_id = std::move(ids.go),
          .tells_names = has_symbols || tells_sources,
          .may_tell_sources = may_tell_sources,
          .named_by_sources = may_tell_sources && !has_symbols};
}

}  // namespace pyrometer
