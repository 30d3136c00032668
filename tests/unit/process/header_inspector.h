// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/file.h"
#include "process/object_inspector.h"

namespace pyrometer {

// Reads the program headers and nothing else.
class HeaderInspector : public ObjectInspector {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    Elf64_Ehdr header{};
    if (!ReadAt(fd, 0, std::as_writable_bytes(std::span(&header, 1)))) return ObjectFacts{};
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return ObjectFacts{};
    ObjectFacts facts;
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr phdr{};
      RETURN_IF_ERROR(ReadAt(fd, header.e_phoff + i * sizeof(phdr),
                             std::as_writable_bytes(std::span(&phdr, 1))));
      if (phdr.p_type == PT_LOAD) {
        facts.segments.push_back({FileOffset(phdr.p_offset), ElfAddress(phdr.p_vaddr),
                                  phdr.p_filesz, phdr.p_memsz, (phdr.p_flags & PF_X) != 0});
      } else if (phdr.p_type == PT_NOTE && facts.build_id.empty()) {
        facts.build_id = FindBuildId(fd, phdr);
      }
    }
    return facts;
  }

 private:
  static BuildId FindBuildId(int fd, const Elf64_Phdr& segment) {
    std::vector<std::byte> notes(std::min<uint64_t>(segment.p_filesz, 65536));
    if (!ReadAt(fd, segment.p_offset, notes)) return {};
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data() + at, sizeof(note));
      const size_t name = at + sizeof(note);
      const size_t content = name + (note.n_namesz + 3) / 4 * 4;
      if (content + note.n_descsz > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
        return BuildId(std::span(notes).subspan(content, note.n_descsz));
      }
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
    return {};
  }
};

}  // namespace pyrometer
