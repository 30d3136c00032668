// SPDX-License-Identifier: Apache-2.0
#include "binary/notes.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "binary/sections.h"

namespace pyrometer {
namespace {

// Real notes are some hundred bytes in two or three segments. Looking is cheap by these bounds,
// whatever the file says.
constexpr uint64_t kMaxNoteBytes = uint64_t{64} << 10;
constexpr int kMaxNoteRanges = 16;

constexpr std::string_view kGnu("GNU\0", 4);

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

BuildId BuildIdAt(const ElfFile& elf, uint64_t offset, uint64_t size, uint64_t alignment) {
  const auto notes = ReadArray<std::byte>(elf.bytes(), offset, std::min(size, kMaxNoteBytes));
  return notes ? FindBuildId(*notes, alignment) : BuildId();
}

}  // namespace

BuildId FindBuildId(std::span<const std::byte> notes, uint64_t alignment) {
  const uint64_t step = alignment == 8 ? 8 : 4;
  Elf64_Nhdr header;
  while (notes.size() >= sizeof(header)) {
    std::memcpy(&header, notes.data(), sizeof(header));
    // 32-bit sizes: none of these sums overflows.
    const uint64_t content = AlignUp(sizeof(header) + uint64_t{header.n_namesz}, step);
    const uint64_t next = AlignUp(content + header.n_descsz, step);
    if (content + header.n_descsz > notes.size()) break;
    const std::string_view name(reinterpret_cast<const char*>(notes.data()) + sizeof(header),
                                header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name == kGnu && header.n_descsz > 0) {
      return BuildId(notes.subspan(content, header.n_descsz));
    }
    notes = notes.subspan(std::min<uint64_t>(next, notes.size()));
  }
  return {};
}

BuildId ReadBuildId(const ElfFile& elf) {
  int ranges = 0;
  for (const Elf64_Phdr& p : elf.program_headers()) {
    if (p.p_type != PT_NOTE || ++ranges > kMaxNoteRanges) continue;
    const BuildId id = BuildIdAt(elf, p.p_offset, p.p_filesz, p.p_align);
    if (!id.empty()) return id;
  }
  const Result<SectionTable> sections = SectionTable::Read(elf);
  if (!sections) return {};
  ranges = 0;
  for (const Section& s : sections->all()) {
    if (s.header.sh_type != SHT_NOTE || ++ranges > kMaxNoteRanges) continue;
    const BuildId id = BuildIdAt(elf, s.header.sh_offset, s.header.sh_size, s.header.sh_addralign);
    if (!id.empty()) return id;
  }
  return {};
}

}  // namespace pyrometer
