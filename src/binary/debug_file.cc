// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace pyrometer {
namespace {

constexpr std::string_view kRoot = "/usr/lib/debug";
constexpr size_t kAlignment = 4;  // of the checksum behind the name and its zero

std::optional<DebugLink> LinkIn(std::span<const std::byte> section) {
  const auto end = std::ranges::find(section, std::byte{0});
  const auto length = static_cast<size_t>(end - section.begin());
  const size_t checksum_at = (length + kAlignment) / kAlignment * kAlignment;
  DebugLink link;
  if (checksum_at + sizeof(link.checksum) > section.size()) return std::nullopt;
  link.name.assign(reinterpret_cast<const char*>(section.data()), length);
  std::memcpy(&link.checksum, section.data() + checksum_at, sizeof(link.checksum));
  return link.is_valid() ? std::optional(std::move(link)) : std::nullopt;
}

}  // namespace

bool DebugLink::is_valid() const {
  const bool leads_elsewhere = name == "." || name == ".." || name.find('/') != std::string::npos ||
                               name.find('\0') != std::string::npos;
  return !name.empty() && name.size() <= kMostName && !leads_elsewhere;
}

bool AlternateLink::is_valid() const {
  return !name.empty() && name.size() <= kMostName && name.find('\0') == std::string::npos &&
         !build_id.empty();
}

std::string DebugFilePath(const BuildId& build_id) {
  const std::string hex = build_id.ToHex();
  if (hex.size() < 4) return {};
  return std::string(kRoot) + "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
}

Result<DebugLinks> ReadDebugLinks(const ElfFile& elf) {
  constexpr size_t kMostOfLink = DebugLink::kMostName + 1 + kAlignment + sizeof(uint32_t);
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  DebugLinks links;
  const Section* const info = sections.Find(".debug_info");
  links.has_debug_info = info != nullptr && info->header.sh_type != SHT_NOBITS;
  if (const Section* const link = sections.Find(".gnu_debuglink")) {
    const auto bytes = ReadSection(elf, *link, kMostOfLink);
    if (bytes) links.debug_file = LinkIn(*bytes);
  }
  if (Result<AlternateLink> alternate = ReadAlternateLink(elf, sections)) {
    links.alternate = *std::move(alternate);
  }
  return links;
}

Result<AlternateLink> ReadAlternateLink(const ElfFile& elf, const SectionTable& sections) {
  constexpr size_t kMostOfLink = AlternateLink::kMostName + 1 + BuildId::kMaxSize;
  const Section* const section = sections.Find(".gnu_debugaltlink");
  if (section == nullptr) return Fail(ErrorCode::kNotFound, "no .gnu_debugaltlink");
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadSection(elf, *section, kMostOfLink));
  const auto end = std::ranges::find(bytes, std::byte{0});
  AlternateLink link;
  link.name.assign(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<size_t>(end - bytes.begin()));
  const size_t of_build_id = end == bytes.end() ? 0 : static_cast<size_t>(bytes.end() - end) - 1;
  if (of_build_id <= BuildId::kMaxSize) {
    link.build_id = BuildId(std::span(bytes).last(of_build_id));
  }
  if (!link.is_valid()) return Fail(ErrorCode::kMalformed, "a .gnu_debugaltlink that is none");
  return link;
}

std::vector<std::string> AlternatePaths(std::string_view path, const AlternateLink& link) {
  std::vector<std::string> paths;
  if (std::string by_build_id = DebugFilePath(link.build_id); !by_build_id.empty()) {
    paths.push_back(std::move(by_build_id));
  }
  if (link.name.starts_with('/')) {
    paths.push_back(link.name);
  } else if (path.starts_with('/')) {
    paths.push_back(std::string(path.substr(0, path.rfind('/') + 1)) + link.name);
  }
  return paths;
}

std::vector<std::string> DebugLinkPaths(std::string_view path, std::string_view name) {
  if (!path.starts_with('/')) return {};
  const std::string directory(path.substr(0, path.rfind('/') + 1));
  const std::string file(name);
  std::vector<std::string> paths;
  if (path != directory + file) paths.push_back(directory + file);  // a file is not its own
  paths.push_back(directory + ".debug/" + file);
  paths.push_back(std::string(kRoot) + directory + file);
  return paths;
}

Result<uint32_t> ChecksumOf(const ByteSource& file) {
  constexpr size_t kPiece = size_t{64} << 10;
  std::vector<std::byte> piece(static_cast<size_t>(std::min<uint64_t>(kPiece, file.size())));
  uLong checksum = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kPiece, file.size() - at)));
    RETURN_IF_ERROR(file.Read(at, piece));
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()),
                       static_cast<uInt>(piece.size()));
  }
  return static_cast<uint32_t>(checksum);
}

}  // namespace pyrometer
