// SPDX-License-Identifier: Apache-2.0
#include "binary/debug_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/dwarf_cursor.h"
#include "binary/notes.h"

namespace pyrometer {
namespace {

constexpr std::string_view kDebugRoot = "/usr/lib/debug";
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

constexpr const char* kGnuLink = ".gnu_debugaltlink";
constexpr const char* kSupplement = ".debug_sup";
constexpr size_t kMostOfId = 64;
constexpr size_t kMostOfLink = AlternateLink::kMostName + kMostOfId + 16;

// .debug_sup: DWARF 5, section 7.3.6.
struct Supplement {
  bool is_alternate = false;  // else it is of a file that refers to one
  std::string name;           // of that
  BuildId id;
};

Error Damaged() {
  return Fail(ErrorCode::kMalformed, "the link to an alternate file is damaged");
}

bool IsId(std::span<const std::byte> bytes) {
  return !bytes.empty() && bytes.size() <= kMostOfId;
}

Result<AlternateLink> ReadGnuLink(const ElfFile& elf, const Section& section) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadSection(elf, section, kMostOfLink));
  DwarfCursor cursor(bytes);
  const std::string_view name = cursor.String(AlternateLink::kMostName + 1);
  const std::span<const std::byte> id = cursor.Bytes(cursor.remaining());
  if (!cursor.ok() || name.empty() || !IsId(id)) return Damaged();
  return AlternateLink{.name = std::string(name), .build_id = BuildId(id)};
}

Result<Supplement> ReadSupplement(const ElfFile& elf, const Section& section) {
  constexpr uint16_t kVersion = 5;
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadSection(elf, section, kMostOfLink));
  DwarfCursor cursor(bytes);
  const auto version = cursor.Fixed<uint16_t>();
  const auto is_alternate = cursor.Fixed<uint8_t>();
  const std::string_view name = cursor.String(AlternateLink::kMostName + 1);
  const uint64_t size = cursor.Uleb();
  const std::span<const std::byte> id = cursor.Bytes(size);
  if (!cursor.ok() || version != kVersion || is_alternate > 1 || !IsId(id)) return Damaged();
  return Supplement{
      .is_alternate = is_alternate == 1, .name = std::string(name), .id = BuildId(id)};
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
  return std::string(kDebugRoot) + "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) +
         ".debug";
}

Result<DebugLinks> ReadDebugLinks(const ElfFile& elf) {
  constexpr size_t kMostOfDebugLink = DebugLink::kMostName + 1 + kAlignment + sizeof(uint32_t);
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  DebugLinks links;
  const Section* const info = sections.Find(".debug_info");
  links.has_debug_info = info != nullptr && info->header.sh_type != SHT_NOBITS;
  if (const Section* const link = sections.Find(".gnu_debuglink")) {
    const auto bytes = ReadSection(elf, *link, kMostOfDebugLink);
    if (bytes) links.debug_file = LinkIn(*bytes);
  }
  if (Result<AlternateLink> alternate = ReadAlternateLink(elf, sections)) {
    links.alternate = *std::move(alternate);
  }
  links.as_alternate = ReadAlternateId(elf, sections);
  return links;
}

Result<AlternateLink> ReadAlternateLink(const ElfFile& elf, const SectionTable& sections) {
  if (const Section* const gnu = sections.Find(kGnuLink)) return ReadGnuLink(elf, *gnu);
  const Section* const section = sections.Find(kSupplement);
  if (section == nullptr) return Fail(ErrorCode::kNotFound, "no link to an alternate file");
  ASSIGN_OR_RETURN(Supplement read, ReadSupplement(elf, *section));
  if (read.is_alternate) return Fail(ErrorCode::kNotFound, "this is an alternate file itself");
  if (read.name.empty()) return Damaged();
  return AlternateLink{.name = std::move(read.name), .build_id = read.id};
}

BuildId ReadAlternateId(const ElfFile& elf, const SectionTable& sections) {
  const BuildId id = ReadBuildId(elf);
  const Section* const section = sections.Find(kSupplement);
  if (!id.empty() || section == nullptr) return id;
  const Result<Supplement> read = ReadSupplement(elf, *section);
  return read && read->is_alternate ? read->id : BuildId();
}

bool IsDebugPath(std::string_view path) {
  const std::filesystem::path whole(path);
  return path.starts_with(std::string(kDebugRoot) + "/") && whole.lexically_normal() == whole;
}

std::vector<std::string> AlternatePaths(std::string_view path, const AlternateLink& link) {
  std::vector<std::string> paths;
  if (std::string by_build_id = DebugFilePath(link.build_id); !by_build_id.empty()) {
    paths.push_back(std::move(by_build_id));
  }
  const std::filesystem::path from(path.substr(0, path.rfind('/') + 1));
  std::string by_name = (from / link.name).lexically_normal().string();
  if (IsDebugPath(by_name)) paths.push_back(std::move(by_name));
  return paths;
}

std::vector<std::string> DebugLinkPaths(std::string_view path, std::string_view name) {
  if (!path.starts_with('/')) return {};
  const std::string directory(path.substr(0, path.rfind('/') + 1));
  const std::string file(name);
  std::vector<std::string> paths;
  if (path != directory + file) paths.push_back(directory + file);  // a file is not its own
  paths.push_back(directory + ".debug/" + file);
  paths.push_back(std::string(kDebugRoot) + directory + file);
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
