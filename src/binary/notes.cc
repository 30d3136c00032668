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

// Go's own are of 83 characters.
constexpr size_t kMaxGoBuildId = 256;

constexpr std::string_view kGnu("GNU\0", 4);
constexpr std::string_view kGo("Go\0\0", 4);
constexpr uint32_t kGoBuildIdType = 4;  // cmd/internal/buildid, elfGoNoteTag

using Bytes = std::span<const std::byte>;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// What the first such note holds; empty if there is none.
Bytes FindNote(Bytes notes, uint64_t alignment, std::string_view wanted, uint32_t type) {
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
    if (header.n_type == type && name == wanted && header.n_descsz > 0) {
      return notes.subspan(content, header.n_descsz);
    }
    notes = notes.subspan(std::min<uint64_t>(next, notes.size()));
  }
  return {};
}

std::string FindGoBuildId(Bytes notes, uint64_t alignment) {
  const Bytes id = FindNote(notes, alignment, kGo, kGoBuildIdType);
  const std::string_view text(reinterpret_cast<const char*>(id.data()), id.size());
  const bool is_one = text.size() <= kMaxGoBuildId &&
                      std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  return is_one ? std::string(text) : std::string();
}

void ReadNotes(const ElfFile& elf, uint64_t offset, uint64_t size, uint64_t alignment,
               BuildIds& found) {
  const auto notes = ReadArray<std::byte>(elf.bytes(), offset, std::min(size, kMaxNoteBytes));
  if (!notes) return;
  if (found.gnu.empty()) found.gnu = FindBuildId(*notes, alignment);
  if (found.go.empty()) found.go = FindGoBuildId(*notes, alignment);
}

}  // namespace

BuildId FindBuildId(Bytes notes, uint64_t alignment) {
  return BuildId(FindNote(notes, alignment, kGnu, NT_GNU_BUILD_ID));
}

BuildIds ReadBuildIds(const ElfFile& elf) {
  BuildIds found;
  int ranges = 0;
  for (const Elf64_Phdr& p : elf.program_headers()) {
    if (p.p_type != PT_NOTE || ++ranges > kMaxNoteRanges) continue;
    ReadNotes(elf, p.p_offset, p.p_filesz, p.p_align, found);
  }
  if (!found.gnu.empty()) return found;
  const Result<SectionTable> sections = SectionTable::Read(elf);
  if (!sections) return found;
  ranges = 0;
  for (const Section& s : sections->all()) {
    if (s.header.sh_type != SHT_NOTE || ++ranges > kMaxNoteRanges) continue;
    ReadNotes(elf, s.header.sh_offset, s.header.sh_size, s.header.sh_addralign, found);
    if (!found.gnu.empty()) break;
  }
  return found;
}

}  // namespace pyrometer
