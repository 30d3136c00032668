// SPDX-License-Identifier: Apache-2.0
#include "binary/dynamic_section.h"

#include <algorithm>

#include "binary/segments.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMaxDynamicEntries = 4096;

}  // namespace

void DynamicSection::Add(const Elf64_Dyn& entry) {
  const ElfAddress address(entry.d_un.d_ptr);
  const uint64_t value = entry.d_un.d_val;
  switch (entry.d_tag) {
    case DT_SYMTAB:
      symbols = address;
      break;
    case DT_STRTAB:
      names = address;
      break;
    case DT_HASH:
      hash = address;
      break;
    case DT_GNU_HASH:
      gnu_hash = address;
      break;
    case DT_STRSZ:
      names_size = value;
      break;
    case DT_SYMENT:
      symbol_size = value;
      break;
    case DT_JMPREL:
      plt_relocations = address;
      break;
    case DT_PLTRELSZ:
      plt_relocations_size = value;
      break;
    case DT_RELA:
      relocations = address;
      break;
    case DT_RELASZ:
      relocations_size = value;
      break;
    case DT_RELACOUNT:
      relative_relocations = value;
      break;
    case DT_FLAGS_1:
      is_pie = (value & DF_1_PIE) != 0;
      break;
    case DT_SONAME:
      has_soname = true;
      break;
    default:
      break;
  }
}

Result<DynamicSection> DynamicSection::Read(const ElfFile& elf) {
  const auto headers = elf.program_headers();
  const auto dynamic = std::ranges::find(headers, uint32_t{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (dynamic == headers.end()) return Fail(ErrorCode::kNotFound, "not dynamic");
  const uint64_t count = std::min(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  ASSIGN_OR_RETURN(const auto entries, ReadArray<Elf64_Dyn>(elf.bytes(), dynamic->p_offset, count));
  DynamicSection section;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    section.Add(entry);
  }
  return section;
}

Result<FileOffset> FileOffsetOf(const ElfFile& elf, ElfAddress address) {
  const std::optional<FileOffset> offset = ToFileOffset(elf.segments(), address);
  if (!offset) return Fail(ErrorCode::kMalformed, "no segment holds {:#x}", address.value());
  return *offset;
}

}  // namespace pyrometer
