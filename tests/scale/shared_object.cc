// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/shared_object.h"

#include <elf.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "tests/unit/unwind/made_object.h"

namespace pyrometer::scale {
namespace {

#ifdef __aarch64__
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_X86_64;
#endif

enum Section : uint8_t { kNone, kText, kEhFrame, kSymbols, kStrings, kNames, kSections };

CieSpec UsualCie() {
  if (kMachine == EM_X86_64) return {};
  return {.return_address = 30, .instructions = {DW_CFA_def_cfa, 31, 0}};
}

DwarfBytes EhFrame() {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie(UsualCie());
  for (uint32_t i = 0; i < Layout::kFunctions; ++i) {
    writer.AddFde(cie, Layout::kAddress + i * Layout::kFunctionBytes, Layout::kFunctionBytes,
                  {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16});
  }
  return writer.bytes();
}

DwarfBytes Note(const BuildId& build_id) {
  DwarfBytes note;
  if (build_id.empty()) return note;
  note.U32(4).U32(build_id.bytes().size()).U32(NT_GNU_BUILD_ID).String("GNU");
  for (const std::byte b : build_id.bytes()) note.U8(std::to_integer<uint8_t>(b));
  return note;
}

struct Symbols {
  DwarfBytes entries;
  DwarfBytes names;
};

Symbols SymbolsOf(const std::string& text) {
  Symbols symbols;
  symbols.entries.Fixed(Elf64_Sym{});
  symbols.names.U8(0);
  for (uint32_t i = 0; i < Layout::kFunctions; ++i) {
    symbols.entries.Fixed(Elf64_Sym{.st_name = static_cast<Elf64_Word>(symbols.names.size()),
                                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                    .st_other = 0,
                                    .st_shndx = kText,
                                    .st_value = Layout::kAddress + i * Layout::kFunctionBytes,
                                    .st_size = Layout::kFunctionBytes});
    symbols.names.String(fmt::format("{}.{}", text, i));
  }
  return symbols;
}

Elf64_Ehdr Header(uint64_t sections_at) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = sections_at;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;
  return header;
}

Elf64_Shdr SectionHeader(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset,
                         uint64_t size) {
  Elf64_Shdr section{};
  section.sh_name = name;
  section.sh_type = type;
  section.sh_flags = flags;
  section.sh_offset = offset;
  section.sh_size = size;
  section.sh_addralign = 1;
  return section;
}

}  // namespace

std::vector<std::byte> SharedObject(const std::string& text, const BuildId& build_id) {
  const DwarfBytes note = Note(build_id);
  const DwarfBytes eh_frame = EhFrame();
  const Symbols symbols = SymbolsOf(text);
  DwarfBytes names;
  names.String("").String(".text").String(".eh_frame").String(".symtab").String(".strtab");

  const uint64_t note_at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const uint64_t eh_frame_at = note_at + note.size();
  const uint64_t symbols_at = eh_frame_at + eh_frame.size();
  const uint64_t strings_at = symbols_at + symbols.entries.size();
  const uint64_t names_at = strings_at + symbols.names.size();
  std::array<Elf64_Shdr, kSections> sections{};
  sections[kText] =
      SectionHeader(1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, Layout::kOffset, Layout::kBytes);
  sections[kText].sh_addr = Layout::kAddress;
  sections[kEhFrame] = SectionHeader(7, SHT_PROGBITS, SHF_ALLOC, eh_frame_at, eh_frame.size());
  sections[kEhFrame].sh_addr = 0x10000;
  sections[kSymbols] = SectionHeader(17, SHT_SYMTAB, 0, symbols_at, symbols.entries.size());
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  sections[kStrings] = SectionHeader(25, SHT_STRTAB, 0, strings_at, symbols.names.size());
  sections[kNames] = SectionHeader(0, SHT_STRTAB, 0, names_at, names.size());

  DwarfBytes image;
  image.Fixed(Header(names_at + names.size()));
  image.Fixed(Elf64_Phdr{.p_type = PT_LOAD,
                         .p_flags = PF_R | PF_X,
                         .p_offset = Layout::kOffset,
                         .p_vaddr = Layout::kAddress,
                         .p_paddr = Layout::kAddress,
                         .p_filesz = Layout::kBytes,
                         .p_memsz = Layout::kBytes,
                         .p_align = 0x1000});
  image.Fixed(Elf64_Phdr{.p_type = PT_NOTE,
                         .p_flags = PF_R,
                         .p_offset = note_at,
                         .p_vaddr = note_at,
                         .p_paddr = note_at,
                         .p_filesz = note.size(),
                         .p_memsz = note.size(),
                         .p_align = 4});
  image.Append(note).Append(eh_frame).Append(symbols.entries).Append(symbols.names).Append(names);
  for (const Elf64_Shdr& section : sections) image.Fixed(section);
  return image.bytes();
}

}  // namespace pyrometer::scale
