// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_links.h"

#include <climits>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/sections.h"

namespace pyrometer {
namespace {

constexpr size_t kMostOfLink = PATH_MAX + 64;

// A NUL-terminated string, and what follows it.
struct Link {
  std::string text;
  std::vector<std::byte> rest;
};

Link ReadLink(const ElfFile& elf, const SectionTable& sections, std::string_view name) {
  const Section* const section = sections.Find(name);
  if (section == nullptr) return {};
  const Result<std::vector<std::byte>> bytes = ReadSection(elf, *section, kMostOfLink);
  if (!bytes || bytes->empty()) return {};
  const auto* const text = reinterpret_cast<const char*>(bytes->data());
  const size_t size = ::strnlen(text, bytes->size());
  if (size == bytes->size() || size >= PATH_MAX) return {};
  return {.text = {text, size},
          .rest = {bytes->begin() + static_cast<ptrdiff_t>(size) + 1, bytes->end()}};
}

}  // namespace

Result<DebugLinks> ReadDebugLinks(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  DebugLinks links;
  // The checksum is aligned to four bytes of the section.
  Link debug = ReadLink(elf, sections, ".gnu_debuglink");
  const size_t padding = 3 - debug.text.size() % 4;
  if (debug.rest.size() >= padding + sizeof(links.checksum)) {
    std::memcpy(&links.checksum, debug.rest.data() + padding, sizeof(links.checksum));
    links.name = std::move(debug.text);
  }
  Link supplement = ReadLink(elf, sections, ".gnu_debugaltlink");
  links.supplement = std::move(supplement.text);
  links.supplement_id = BuildId(std::move(supplement.rest));
  links.may_be_split = sections.Find(".debug_addr") != nullptr;
  return links;
}

}  // namespace pyrometer
