// SPDX-License-Identifier: Apache-2.0
// Format of .eh_frame_hdr: Linux Standard Base Core 5.0, section 10.6.2.
#include "unwind/cfi_sections.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "binary/byte_source.h"
#include "binary/dwarf_cursor.h"
#include "binary/segments.h"
#include "unwind/encoded_pointer.h"

namespace pyrometer {
namespace {

// Twelve times what the largest of a Debian machine have (libLLVM). A small file may claim any
// size, by compression or by a hole. Positions fit into 32 bits.
constexpr size_t kMaxSection = size_t{64} << 20;

constexpr std::string_view kEhFrame = ".eh_frame";

Result<CfiSection> ReadByName(const ElfFile& elf, const SectionTable& sections,
                              std::string_view name, CfiSection::Format format) {
  const Section* const section = sections.Find(name);
  if (section == nullptr || section->header.sh_type == SHT_NOBITS) {
    return Fail(ErrorCode::kNotFound, "no {}", name);
  }
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadSection(elf, *section, kMaxSection));
  return CfiSection{.format = format,
                    .ends_at_terminator = false,
                    .address = section->header.sh_addr,
                    .bytes = std::move(bytes)};
}

// A part of a file as it is loaded.
struct Loaded {
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// What is loaded from `address` on, to the end of its segment or of the file.
std::optional<Loaded> LoadedFrom(const ElfFile& elf, uint64_t address) {
  for (const Segment& s : elf.segments()) {
    if (!HoldsInFile(s, ElfAddress(address))) continue;
    const uint64_t skipped = address - s.address.value();
    const uint64_t offset = s.offset.value() + skipped;
    if (offset >= elf.bytes().size()) return std::nullopt;
    return Loaded{.address = address,
                  .offset = offset,
                  .size = std::min(s.file_size - skipped, elf.bytes().size() - offset)};
  }
  return std::nullopt;
}

// .eh_frame_hdr: where .eh_frame begins, and a table of its FDEs for binary search.
struct EhFrameHeader {
  uint64_t eh_frame = 0;
  std::optional<uint64_t> last_fde;  // the one that lies last in .eh_frame, if there is a table
};

std::optional<uint64_t> FindLastFde(DwarfCursor& cursor, uint8_t count_encoding,
                                    uint8_t table_encoding, const PointerBases& bases) {
  const std::optional<uint64_t> count = ReadEncodedPointer(cursor, count_encoding, bases);
  std::optional<uint64_t> last;
  for (uint64_t i = 0; count && i < *count; ++i) {
    const std::optional<uint64_t> function = ReadEncodedPointer(cursor, table_encoding, bases);
    const std::optional<uint64_t> fde = ReadEncodedPointer(cursor, table_encoding, bases);
    if (!function || !fde) return std::nullopt;
    last = std::max(last.value_or(0), *fde);
  }
  return last;
}

Result<EhFrameHeader> ReadEhFrameHeader(const ElfFile& elf) {
  const auto header =
      std::ranges::find(elf.program_headers(), uint32_t{PT_GNU_EH_FRAME}, &Elf64_Phdr::p_type);
  if (header == elf.program_headers().end()) {
    return Fail(ErrorCode::kNotFound, "no .eh_frame, and no PT_GNU_EH_FRAME");
  }
  if (header->p_filesz > kMaxSection) {
    return Fail(ErrorCode::kExhausted, ".eh_frame_hdr of {} bytes", header->p_filesz);
  }
  ASSIGN_OR_RETURN(const auto bytes,
                   ReadArray<std::byte>(elf.bytes(), header->p_offset, header->p_filesz));
  DwarfCursor cursor(bytes);
  const auto version = cursor.Fixed<uint8_t>();
  const auto pointer_encoding = cursor.Fixed<uint8_t>();
  const auto count_encoding = cursor.Fixed<uint8_t>();
  const auto table_encoding = cursor.Fixed<uint8_t>();
  const PointerBases bases = {.section = header->p_vaddr, .data = header->p_vaddr};
  const std::optional<uint64_t> eh_frame = ReadEncodedPointer(cursor, pointer_encoding, bases);
  if (version != 1 || !eh_frame) {
    return Fail(ErrorCode::kMalformed, ".eh_frame_hdr of version {} does not lead to .eh_frame",
                version);
  }
  return EhFrameHeader{.eh_frame = *eh_frame,
                       .last_fde = FindLastFde(cursor, count_encoding, table_encoding, bases)};
}

// How far .eh_frame reaches, if the FDE at `last` is its last record.
std::optional<uint64_t> SizeWithLastFde(const ElfFile& elf, const Loaded& loaded, uint64_t last) {
  if (last < loaded.address || last - loaded.address >= loaded.size) return std::nullopt;
  const uint64_t before = last - loaded.address;
  const Result<uint32_t> length = ReadObject<uint32_t>(elf.bytes(), loaded.offset + before);
  if (!length || *length == std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const uint64_t size = before + sizeof(*length) + *length;
  if (size > loaded.size) return std::nullopt;
  return size;
}

Result<CfiSection> ReadByProgramHeader(const ElfFile& elf) {
  ASSIGN_OR_RETURN(const EhFrameHeader header, ReadEhFrameHeader(elf));
  const std::optional<Loaded> loaded = LoadedFrom(elf, header.eh_frame);
  if (!loaded) {
    return Fail(ErrorCode::kMalformed, ".eh_frame at {:#x} is not in the file", header.eh_frame);
  }
  const std::optional<uint64_t> size =
      header.last_fde ? SizeWithLastFde(elf, *loaded, *header.last_fde) : std::nullopt;
  ASSIGN_OR_RETURN(
      std::vector<std::byte> bytes,
      ReadArray<std::byte>(elf.bytes(), loaded->offset,
                           std::min<uint64_t>(size.value_or(loaded->size), kMaxSection)));
  return CfiSection{.format = CfiSection::Format::kEhFrame,
                    .ends_at_terminator = !size,
                    .address = header.eh_frame,
                    .bytes = std::move(bytes)};
}

}  // namespace

Result<CfiSection> ReadEhFrame(const ElfFile& elf, const Result<SectionTable>& sections) {
  if (!sections || sections->Find(kEhFrame) == nullptr) return ReadByProgramHeader(elf);
  return ReadByName(elf, *sections, kEhFrame, CfiSection::Format::kEhFrame);
}

Result<CfiSection> ReadDebugFrame(const ElfFile& elf, const Result<SectionTable>& sections) {
  if (!sections) return sections.error();
  return ReadByName(elf, *sections, ".debug_frame", CfiSection::Format::kDebugFrame);
}

}  // namespace pyrometer
