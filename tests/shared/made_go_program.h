// SPDX-License-Identifier: Apache-2.0
// ELF files that have a table of functions (pclntab) as Go's linker writes it, and no symbols.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "binary/elf_file.h"
#include "binary/go_functions.h"
#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {

// Its functions follow each other in its text; the code is NOPs, but for what is put there.
struct MadeGoProgram {
  using Format = GoFunctionTable::Format;
  static constexpr uint64_t kText = 0x401000;
  static constexpr uint64_t kData = 0x800000;  // of what is not code: the table first
  static constexpr uint64_t kSize = 0x100;     // of each function
  // How its table says where the text begins.
  enum class Text { kWritten, kRelocated, kInModule, kInRelocatedModule, kNowhere };

  std::vector<std::string> names;
  Format format = Format::kGo20;
  Text text = Text::kWritten;
  std::string section = ".gopclntab";
  DwarfBytes before = {};  // what precedes the table in its section, a multiple of 8 bytes
  int machine = EM_X86_64;
  uint64_t entry = kText;
  std::vector<std::pair<uint64_t, DwarfBytes>> code = {};  // put at these offsets of the text
  // GoPcValues, if there are as many, of how deep the stack is in each function. Go's are not
  // empty.
  std::vector<DwarfBytes> stack_depths = {};
  // Of each function, if there are as many; then all records are whole.
  struct Source {
    DwarfBytes files = {};  // GoPcValues, as the next two
    DwarfBytes lines = {};
    DwarfBytes inlined = {};
    uint32_t start_line = 0;
    uint32_t calls = 0;  // where in `before` its inlined calls are
  };
  std::vector<Source> sources = {};
  std::vector<std::string> files = {};

  uint64_t TextSize() const { return names.size() * kSize; }
  uint64_t TableAddress() const { return kData + before.size(); }

  DwarfBytes Table() const {
    const bool has_addresses = format <= Format::kGo16;
    DwarfBytes name_bytes;
    DwarfBytes values = {0};  // so that none begins at 0
    DwarfBytes functions;     // {begin, position of the record} each, then the end
    DwarfBytes records;
    const auto number = [&](DwarfBytes& bytes, uint64_t value) {
      has_addresses ? bytes.U64(value) : bytes.U32(value);
    };
    const uint64_t base = has_addresses ? kText : 0;
    const uint64_t width = has_addresses ? 8 : 4;
    const uint64_t header = 8 + 8 * HeaderWords();
    const bool is_oldest = format == Format::kGo2;
    const uint64_t functions_size = (2 * names.size() + 1) * width + (is_oldest ? 8 : 0);
    // In the oldest format everything is counted from the table's beginning.
    const uint64_t first_record = functions_size + (format == Format::kGo2 ? header : 0);
    const uint64_t record_size = width + 16 + RestOfRecord({}, 0).size();
    const uint64_t behind_records = is_oldest ? first_record + names.size() * record_size : 0;
    const uint64_t first_value = behind_records;
    uint64_t first_name = behind_records;
    for (const DwarfBytes& depths : stack_depths) first_name += is_oldest ? depths.size() : 0;
    for (const Source& source : sources) first_name += is_oldest ? SizeOf(source) : 0;
    if (is_oldest) ++first_name;
    // What follows the functions.
    const uint64_t files_at = first_name + NamesSize();
    for (size_t i = 0; i < names.size(); ++i) {
      number(functions, base + i * kSize);
      number(functions, first_record + records.size());
      number(records, base + i * kSize);
      records.U32(first_name + name_bytes.size()).U32(0).U32(0);
      const bool has_depths = i < stack_depths.size();
      records.U32(has_depths ? first_value + values.size() : 0);
      if (has_depths) values.Append(stack_depths[i]);
      if (i < sources.size()) records.Append(RestOfRecord(sources[i], first_value + values.size()));
      if (i < sources.size()) {
        values.Append(sources[i].files).Append(sources[i].lines).Append(sources[i].inlined);
      }
      name_bytes.String(names[i]);
    }
    number(functions, base + names.size() * kSize);
    DwarfBytes units;
    DwarfBytes file_bytes;
    for (const std::string& file : files) {
      units.U32((is_oldest ? files_at : 0) + file_bytes.size());
      file_bytes.String(file);
    }
    if (is_oldest) functions.U32(files_at + file_bytes.size()).U32(0);

    DwarfBytes table;
    constexpr uint32_t kMagics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    table.U32(kMagics[static_cast<size_t>(format)]).U16(0).U8(machine == EM_X86_64 ? 1 : 4).U8(8);
    table.U64(names.size());
    if (is_oldest) {
      // Behind the functions is said where the array of files is.
      return table.Append(functions)
          .Append(records)
          .Append(values)
          .Append(name_bytes)
          .Append(file_bytes)
          .Append(units);
    }
    table.U64(files.size());
    if (!has_addresses) table.U64(text == Text::kWritten ? kText : 0);
    const uint64_t units_at = header + name_bytes.size();
    const uint64_t files_start = units_at + units.size();
    const uint64_t values_at = files_start + file_bytes.size();
    table.U64(header).U64(units_at).U64(files_start).U64(values_at);
    table.U64(values_at + values.size());
    return table.Append(name_bytes)
        .Append(units)
        .Append(file_bytes)
        .Append(values)
        .Append(functions)
        .Append(records);
  }

  std::vector<std::byte> Image() const {
    DwarfBytes padding;
    while ((before.size() + Table().size() + padding.size()) % 8 != 0) padding.U8(0);
    const DwarfBytes table = DwarfBytes(before).Append(Table()).Append(padding);
    const DwarfBytes module = Module();
    const DwarfBytes relocations = Relocations(kData + table.size());
    const uint64_t code_at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
    const uint64_t table_at = code_at + TextSize();
    const uint64_t module_at = table_at + table.size();
    const uint64_t relocations_at = module_at + module.size();
    const uint64_t names_at = relocations_at + relocations.size();
    DwarfBytes section_names;
    section_names.U8(0);
    std::vector<Elf64_Shdr> sections(1);
    const auto add = [&](const std::string& name, uint32_t type, uint64_t address, uint64_t at,
                         uint64_t size) {
      Elf64_Shdr s{};
      s.sh_name = static_cast<Elf64_Word>(section_names.size());
      s.sh_type = type;
      s.sh_addr = address;
      s.sh_offset = at;
      s.sh_size = size;
      sections.push_back(s);
      section_names.String(name);
    };
    add(section, SHT_PROGBITS, kData, table_at, table.size());
    add(".go.buildinfo", SHT_PROGBITS, kData, table_at, 0);
    if (module.size() > 0) {
      add(".go.module", SHT_PROGBITS, kData + table.size(), module_at, module.size());
    }
    if (relocations.size() > 0) {
      add(".rela.dyn", SHT_RELA, 0, relocations_at, relocations.size());
    }
    add(".shstrtab", SHT_STRTAB, 0, names_at, 0);
    sections.back().sh_size = section_names.size();

    DwarfBytes image;
    image.Fixed(Header(names_at + section_names.size(), sections.size()));
    image.Fixed(Segment(PF_R | PF_X, code_at, kText, TextSize()));
    image.Fixed(Segment(PF_R | PF_W, table_at, kData, table.size() + module.size()));
    for (uint64_t i = 0; i < TextSize(); ++i) image.U8(0x90);
    image.Append(table).Append(module).Append(relocations).Append(section_names);
    for (const Elf64_Shdr& s : sections) image.Fixed(s);
    std::vector<std::byte> bytes = image.bytes();
    for (const auto& [at, piece] : code) {
      std::ranges::copy(piece.bytes(), bytes.begin() + static_cast<long>(code_at + at));
    }
    return bytes;
  }

  ElfFile Open() const { return *ElfFile::FromBytes(Image()); }

 private:
  uint64_t HeaderWords() const {
    if (format == Format::kGo2) return 1;
    return format == Format::kGo16 ? 7 : 8;
  }

  bool HasModule() const { return text == Text::kInModule || text == Text::kInRelocatedModule; }

  uint64_t NamesSize() const {
    uint64_t size = 0;
    for (const std::string& name : names) size += name.size() + 1;
    return size;
  }
  static uint64_t SizeOf(const Source& source) {
    return source.files.size() + source.lines.size() + source.inlined.size();
  }

  // What a record has behind the depths of the stack, if there are sources. `values` is where its
  // own values are.
  DwarfBytes RestOfRecord(const Source& source, uint64_t values) const {
    DwarfBytes rest;
    if (sources.empty()) return rest;
    const bool has_addresses = format <= Format::kGo16;
    const uint64_t lines = values + source.files.size();
    rest.U32(source.files.size() > 0 ? values : 0).U32(source.lines.size() > 0 ? lines : 0).U32(3);
    if (format != Format::kGo2) rest.U32(0);  // the unit's first file
    if (format == Format::kGo20) rest.U32(source.start_line);
    const uint8_t data_count = format == Format::kGo2 ? 5 : 4;
    rest.U8(0).U8(0).U8(0).U8(data_count);
    const bool has_calls = source.inlined.size() > 0;
    rest.U32(0).U32(0).U32(has_calls ? lines + source.lines.size() : 0);
    if (has_addresses && (8 + 16 + rest.size()) % 8 != 0) rest.U32(0);
    for (int i = 1; i < data_count; ++i) has_addresses ? rest.U64(0) : rest.U32(~0U);
    if (has_addresses) return rest.U64(has_calls ? kData + source.calls : 0);
    return rest.U32(has_calls ? source.calls : ~0U);
  }

  // As far as to what data of functions are counted from: in all formats that say so.
  DwarfBytes Module() const {
    DwarfBytes module;
    if (!HasModule()) return module;
    const bool is_written = text == Text::kInModule;
    module.U64(is_written ? TableAddress() : 0);
    for (int i = 1; i < 22; ++i) module.U64(0x1111);
    module.U64(is_written ? kText : 0);
    for (int i = 23; i < 38; ++i) module.U64(0x1111);
    for (int i = 38; i < 41; ++i) module.U64(is_written ? kData : 0);
    return module;
  }

  DwarfBytes Relocations(uint64_t module) const {
    DwarfBytes all;
    const auto add = [&](uint64_t place, uint64_t value) {
      all.U64(place).U64(machine == EM_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE).U64(value);
    };
    add(kData + 0x10000, 0x1234);
    if (text == Text::kRelocated) add(TableAddress() + 24, kText);
    if (text == Text::kInRelocatedModule) {
      add(module, TableAddress());
      add(module + 22 * 8, kText);
      add(module + 38 * 8, kData);
      add(module + 40 * 8, kData);
    }
    return all;
  }

  Elf64_Ehdr Header(uint64_t sections_at, size_t sections) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_EXEC;
    header.e_machine = static_cast<Elf64_Half>(machine);
    header.e_entry = entry;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    header.e_shoff = sections_at;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections);
    header.e_shstrndx = static_cast<Elf64_Half>(sections - 1);
    return header;
  }

  static Elf64_Phdr Segment(uint32_t flags, uint64_t offset, uint64_t address, uint64_t size) {
    return {.p_type = PT_LOAD,
            .p_flags = flags,
            .p_offset = offset,
            .p_vaddr = address,
            .p_paddr = address,
            .p_filesz = size,
            .p_memsz = size,
            .p_align = 1};
  }
};

}  // namespace pyrometer
