// SPDX-License-Identifier: Apache-2.0
// ELF files that have stubs of hand-written code, and nothing else.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "binary/elf_file.h"
#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {

struct MadeStubs {
  static constexpr uint64_t kCode = 0x401000;
  static constexpr uint64_t kSlots = 0x404000;
  enum SectionNumber : uint32_t { kNone, kPlt, kRelocations, kSymbols, kNames, kSectionNames };

  struct Relocation {
    uint64_t slot = 0;  // by number
    uint32_t symbol = 0;
    uint32_t type = R_X86_64_JUMP_SLOT;
  };

  int machine = EM_X86_64;
  std::string section = ".plt";
  DwarfBytes code = {};
  std::vector<std::string> names = {"one", "two"};  // of the symbols 1, 2...
  std::vector<Relocation> relocations = {{0, 1}, {1, 2}};

  static uint64_t Slot(uint64_t number) { return kSlots + number * sizeof(uint64_t); }

  // jmp *slot(%rip), the next instruction of `code`.
  MadeStubs& X86Jump(uint64_t slot) {
    const uint64_t end = kCode + code.size() + 6;
    code.Append({0xff, 0x25}).U32(Slot(slot) - end);
    return *this;
  }
  MadeStubs& Bytes(const DwarfBytes& bytes) {
    code.Append(bytes);
    return *this;
  }
  // nop, as far as to a multiple of `size`.
  MadeStubs& FillUpTo(uint64_t size) {
    while (code.size() % size != 0) code.U8(0x90);
    return *this;
  }

  // adrp x16, page; ldr x17, [x16, #offset]
  MadeStubs& Arm64Load(uint64_t slot) {
    const uint64_t pages = (Slot(slot) >> 12) - ((kCode + code.size()) >> 12);
    code.U32(0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5);
    code.U32(0xf9400211 | ((Slot(slot) & 0xfff) / sizeof(uint64_t)) << 10);
    return *this;
  }
  MadeStubs& Arm64(std::initializer_list<uint32_t> instructions) {
    for (const uint32_t instruction : instructions) code.U32(instruction);
    return *this;
  }

  // The offset in the image.
  static size_t HeaderOf(SectionNumber number) {
    return sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + number * sizeof(Elf64_Shdr);
  }

  std::vector<std::byte> Image() const {
    DwarfBytes symbols;
    symbols.Fixed(Elf64_Sym{});
    DwarfBytes strings = {0};
    for (const std::string& name : names) {
      Elf64_Sym symbol{};
      symbol.st_name = name.empty() ? 0 : static_cast<Elf64_Word>(strings.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbols.Fixed(symbol);
      if (!name.empty()) strings.String(name);
    }
    DwarfBytes entries;
    for (const Relocation& r : relocations) {
      entries.U64(Slot(r.slot)).U64(ELF64_R_INFO(uint64_t{r.symbol}, r.type)).U64(0);
    }
    DwarfBytes section_names = {0};
    section_names.String(section);

    DwarfBytes contents;
    uint64_t at = HeaderOf(SectionNumber{kSectionNames + 1});
    std::vector<Elf64_Shdr> headers(1);
    const auto add = [&](const DwarfBytes& bytes, uint32_t type) -> Elf64_Shdr& {
      Elf64_Shdr& header = headers.emplace_back();
      header.sh_type = type;
      header.sh_offset = at;
      header.sh_size = bytes.size();
      contents.Append(bytes);
      at += bytes.size();
      return header;
    };
    const uint64_t code_at = at;
    Elf64_Shdr& plt = add(code, SHT_PROGBITS);
    plt.sh_name = 1;
    plt.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    plt.sh_addr = kCode;
    Elf64_Shdr& rela = add(entries, SHT_RELA);
    rela.sh_link = kSymbols;
    rela.sh_entsize = sizeof(Elf64_Rela);
    Elf64_Shdr& dynsym = add(symbols, SHT_DYNSYM);
    dynsym.sh_link = kNames;
    dynsym.sh_entsize = sizeof(Elf64_Sym);
    add(strings, SHT_STRTAB);
    add(section_names, SHT_STRTAB);

    DwarfBytes image;
    image.Fixed(Header()).Fixed(CodeSegment(code_at));
    for (const Elf64_Shdr& header : headers) image.Fixed(header);
    return image.Append(contents).bytes();
  }

  ElfFile Open() const { return *ElfFile::FromBytes(Image()); }

 private:
  Elf64_Ehdr Header() const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = static_cast<Elf64_Half>(machine);
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof(header);
    header.e_ehsize = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    header.e_shoff = HeaderOf(kNone);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSectionNames + 1;
    header.e_shstrndx = kSectionNames;
    return header;
  }
  Elf64_Phdr CodeSegment(uint64_t offset) const {
    return {.p_type = PT_LOAD,
            .p_flags = PF_R | PF_X,
            .p_offset = offset,
            .p_vaddr = kCode,
            .p_paddr = kCode,
            .p_filesz = code.size(),
            .p_memsz = code.size(),
            .p_align = 1};
  }
};

}  // namespace pyrometer
