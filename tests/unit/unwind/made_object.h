// SPDX-License-Identifier: Apache-2.0
// ELF files made of hand-written call frame information.
#pragma once

#include <dwarf.h>
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "binary/elf_file.h"
#include "tests/unit/unwind/dwarf_bytes.h"
#include "unwind/call_frame_info.h"

namespace pyrometer {

// Where its code and its sections are, in its own address space.
inline constexpr uint64_t kText = 0x1000000;
inline constexpr uint64_t kTextSize = 0x200000;
inline constexpr uint64_t kEhFrame = 0x2000000;
inline constexpr uint64_t kEhFrameHeader = 0x3000000;

// What every compiler says of a function's first instruction: CFA = RSP + 8, RIP at CFA - 8.
inline DwarfBytes UsualInitial() {
  return {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};
}

struct CieSpec {
  int version = 1;
  std::string augmentation = "zR";
  DwarfBytes additions = {DW_EH_PE_absptr};
  uint64_t code_alignment = 1;
  int64_t data_alignment = -8;
  uint64_t return_address = 16;
  DwarfBytes instructions = UsualInitial();
};

// Writes the records of .eh_frame or .debug_frame (of 32 bits unless told otherwise).
class CfiWriter {
 public:
  explicit CfiWriter(CfiSection::Format format = CfiSection::Format::kEhFrame, bool wide = false)
      : format_(format), wide_(wide) {}

  // Its position in the section.
  uint64_t AddCie(const CieSpec& spec = {}) {
    const uint64_t position = bytes_.size();
    DwarfBytes body;
    Id(body, InEhFrame() ? 0 : ~uint64_t{0});
    body.U8(static_cast<uint64_t>(spec.version)).String(spec.augmentation);
    if (spec.version == 4) body.U8(8).U8(0);
    body.Uleb(spec.code_alignment).Sleb(spec.data_alignment);
    if (spec.version == 1) {
      body.U8(spec.return_address);
    } else {
      body.Uleb(spec.return_address);
    }
    if (spec.augmentation.starts_with('z')) body.Block(spec.additions);
    AddRecord(body.Append(spec.instructions));
    return position;
  }

  void AddFde(uint64_t cie, uint64_t begin, uint64_t size, const DwarfBytes& instructions = {}) {
    DwarfBytes rest = DwarfBytes().U64(begin).U64(size);
    if (InEhFrame()) rest.Uleb(0);  // nothing is added to it
    AddRawFde(cie, rest.Append(instructions));
  }

  // All that follows the pointer to the CIE.
  void AddRawFde(uint64_t cie, const DwarfBytes& rest) {
    DwarfBytes body;
    Id(body, InEhFrame() ? bytes_.size() + IdPosition() - cie : cie);
    AddRecord(body.Append(rest));
  }

  void AddRecord(const DwarfBytes& body) {
    if (wide_) bytes_.U32(0xffffffff).U64(body.size());
    if (!wide_) bytes_.U32(body.size());
    bytes_.Append(body);
  }

  DwarfBytes& bytes() { return bytes_; }
  const DwarfBytes& bytes() const { return bytes_; }

 private:
  bool InEhFrame() const { return format_ == CfiSection::Format::kEhFrame; }
  uint64_t IdPosition() const { return wide_ ? 12 : 4; }
  void Id(DwarfBytes& body, uint64_t id) const {
    if (wide_ && !InEhFrame()) {
      body.U64(id);
    } else {
      body.U32(id);
    }
  }

  CfiSection::Format format_;
  bool wide_;
  DwarfBytes bytes_;
};

// An ELF file with code. Sections are as given; both parts may be left empty.
struct MadeObject {
  int machine = EM_X86_64;
  DwarfBytes eh_frame = {};
  DwarfBytes eh_frame_header = {};  // becomes PT_GNU_EH_FRAME, with .eh_frame in a segment
  DwarfBytes debug_frame = {};
  bool has_sections = true;
  uint64_t entry = 0;              // address of the entry point
  uint64_t text = kText;           // address of the code,
  uint64_t text_size = kTextSize;  // and its size, in memory and as if it were in the file

  std::vector<std::byte> Image() const {
    const std::vector<Elf64_Phdr> program_headers = ProgramHeaders();
    DwarfBytes image;
    image.Fixed(Header(program_headers.size()));
    for (const Elf64_Phdr& p : program_headers) image.Fixed(p);
    image.Append(eh_frame).Append(eh_frame_header).Append(debug_frame);
    image.Append(Names());
    for (const Elf64_Shdr& s : SectionHeaders()) image.Fixed(s);
    return image.bytes();
  }
  ElfFile Open() const { return *ElfFile::FromBytes(Image()); }

 private:
  static DwarfBytes Names() {
    return DwarfBytes().String("").String(".eh_frame").String(".debug_frame").String(".names");
  }
  size_t Segments() const { return eh_frame_header.size() == 0 ? 1 : 3; }
  uint64_t EhFrameOffset() const { return sizeof(Elf64_Ehdr) + Segments() * sizeof(Elf64_Phdr); }
  uint64_t HeaderOffset() const { return EhFrameOffset() + eh_frame.size(); }
  uint64_t DebugFrameOffset() const { return HeaderOffset() + eh_frame_header.size(); }
  uint64_t NamesOffset() const { return DebugFrameOffset() + debug_frame.size(); }

  Elf64_Ehdr Header(size_t segments) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = static_cast<Elf64_Half>(machine);
    header.e_entry = entry;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(segments);
    if (!has_sections) return header;
    header.e_shoff = NamesOffset() + Names().size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 4;
    header.e_shstrndx = 3;
    return header;
  }

  std::vector<Elf64_Phdr> ProgramHeaders() const {
    const auto segment = [](uint32_t type, uint32_t flags, uint64_t offset, uint64_t address,
                            uint64_t size) {
      return Elf64_Phdr{.p_type = type,
                        .p_flags = flags,
                        .p_offset = offset,
                        .p_vaddr = address,
                        .p_paddr = address,
                        .p_filesz = size,
                        .p_memsz = size,
                        .p_align = 4096};
    };
    const Elf64_Phdr code = segment(PT_LOAD, PF_R | PF_X, 0, text, text_size);
    if (Segments() == 1) return {code};
    return {code, segment(PT_LOAD, PF_R, EhFrameOffset(), kEhFrame, eh_frame.size()),
            segment(PT_GNU_EH_FRAME, PF_R, HeaderOffset(), kEhFrameHeader, eh_frame_header.size())};
  }

  std::vector<Elf64_Shdr> SectionHeaders() const {
    const auto section = [](uint32_t name, uint32_t type, uint64_t address, uint64_t offset,
                            uint64_t size) {
      Elf64_Shdr s{};
      s.sh_name = name;
      s.sh_type = type;
      s.sh_addr = address;
      s.sh_offset = offset;
      s.sh_size = size;
      return s;
    };
    return {section(0, SHT_NULL, 0, 0, 0),
            section(1, SHT_PROGBITS, kEhFrame, EhFrameOffset(), eh_frame.size()),
            section(11, SHT_PROGBITS, 0, DebugFrameOffset(), debug_frame.size()),
            section(24, SHT_STRTAB, 0, NamesOffset(), Names().size())};
  }
};

// An object with one function of `size` bytes at kText, described by `instructions`.
inline MadeObject OneFunction(const DwarfBytes& instructions, uint64_t size = 0x100,
                              const CieSpec& cie = {}) {
  CfiWriter eh_frame;
  eh_frame.AddFde(eh_frame.AddCie(cie), kText, size, instructions);
  MadeObject object;
  object.eh_frame = eh_frame.bytes();
  return object;
}

}  // namespace pyrometer
