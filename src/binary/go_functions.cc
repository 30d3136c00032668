// SPDX-License-Identifier: Apache-2.0
// Formats: the Go distribution's src/runtime/symtab.go (pcHeader, functab, moduledata) and
// runtime2.go (_func), in the versions that the formats are called after.
#include "binary/go_functions.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "binary/byte_source.h"
#include "binary/segments.h"

namespace pyrometer {
namespace {

using Format = GoFunctionTable::Format;

// Some ten times what the largest programs have.
constexpr uint64_t kMaxFunctions = 2'000'000;
constexpr uint64_t kPointer = sizeof(uint64_t);
// Ten times what the largest position-independent programs have.
constexpr uint64_t kMaxRelocations = 8'000'000;
// What a stripped program's linker has joined with other data is looked through for the table.
constexpr uint64_t kMostToLookThrough = uint64_t{256} << 20;

// The first bytes of a table.
struct Start {
  uint32_t magic;
  uint16_t zero;
  uint8_t instruction;  // its unit, in bytes
  uint8_t pointer_size;
};

std::optional<Format> FormatOf(const Start& start) {
  const bool is_one = start.zero == 0 && start.pointer_size == kPointer &&
                      (start.instruction == 1 || start.instruction == 4);
  if (!is_one) return std::nullopt;
  switch (start.magic) {
    case 0xfffffffb:
      return Format::kGo2;
    case 0xfffffffa:
      return Format::kGo16;
    case 0xfffffff0:
      return Format::kGo18;
    case 0xfffffff1:
      return Format::kGo20;
    default:
      return std::nullopt;
  }
}

// Functions are 64-bit addresses, and not 32-bit distances.
bool HasAddresses(Format format) {
  return format == Format::kGo2 || format == Format::kGo16;
}

uint64_t EntrySize(Format format) {
  return HasAddresses(format) ? 2 * kPointer : 2 * sizeof(uint32_t);
}

// What is read of a record, behind where its function begins.
struct Record {
  uint32_t name;
  uint32_t arguments;
  uint32_t deferred;
  uint32_t stack_depths;
};

// Up to the end of a file, or of a part of it.
struct Part {
  uint64_t begin = 0;  // offsets in the file
  uint64_t end = 0;
  uint64_t address = 0;  // of its beginning

  uint64_t size() const { return end - begin; }
};

std::optional<Part> PartOf(const ElfFile& elf, const Section* section) {
  if (section == nullptr || section->header.sh_type == SHT_NOBITS ||
      (section->header.sh_flags & SHF_COMPRESSED) != 0) {
    return std::nullopt;
  }
  const uint64_t size = elf.bytes().size();
  const uint64_t begin = std::min(section->header.sh_offset, size);
  return Part{begin, begin + std::min(section->header.sh_size, size - begin),
              section->header.sh_addr};
}

// What the loader will find at `address`, a pointer. Not all linkers write it there, if it is to be
// relocated.
std::optional<uint64_t> PointerAt(const ElfFile& elf, const SectionTable& sections,
                                  uint64_t address) {
  const std::optional<FileOffset> offset = ToFileOffset(elf.segments(), ElfAddress(address));
  if (!offset) return std::nullopt;
  const Result<uint64_t> written = ReadObject<uint64_t>(elf.bytes(), offset->value());
  if (!written) return std::nullopt;
  if (*written != 0) return *written;
  constexpr uint64_t kBatch = ReadAhead::kDefaultStep / sizeof(Elf64_Rela);
  uint64_t left = kMaxRelocations;
  for (const Section& section : sections.all()) {
    if (section.header.sh_type != SHT_RELA) continue;
    const std::optional<Part> part = PartOf(elf, &section);
    const uint64_t count = part ? std::min(part->size() / sizeof(Elf64_Rela), left) : 0;
    left -= count;
    for (uint64_t done = 0; done < count; done += kBatch) {
      const auto batch = ReadArray<Elf64_Rela>(elf.bytes(), part->begin + done * sizeof(Elf64_Rela),
                                               std::min(kBatch, count - done));
      if (!batch) return std::nullopt;
      const auto found = std::ranges::find(*batch, address, &Elf64_Rela::r_offset);
      if (found == batch->end()) continue;
      const uint64_t type = ELF64_R_TYPE(found->r_info);
      if (type != R_X86_64_RELATIVE && type != R_AARCH64_RELATIVE) return std::nullopt;
      return static_cast<uint64_t>(found->r_addend);
    }
  }
  return std::nullopt;
}

// The words of a table's header, behind its start.
struct Header {
  uint64_t count = 0;
  uint64_t names = 0;
  uint64_t units = 0;
  uint64_t files = 0;
  uint64_t values = 0;
  uint64_t values_size = 0;
  uint64_t functions = 0;
};

Result<Header> ReadHeader(const ElfFile& elf, const Part& table, Format format) {
  const auto word = [&](uint64_t number) -> Result<uint64_t> {
    const uint64_t at = sizeof(Start) + number * kPointer;
    if (!Within(at, kPointer, table.size())) return Fail(ErrorCode::kMalformed, "a cut header");
    return ReadObject<uint64_t>(elf.bytes(), table.begin + at);
  };
  Header header;
  ASSIGN_OR_RETURN(header.count, word(0));
  if (format == Format::kGo2) {
    header.functions = sizeof(Start) + kPointer;
    header.values_size = table.size();
  } else {
    const uint64_t more = format == Format::kGo16 ? 0 : 1;  // where the text begins
    ASSIGN_OR_RETURN(header.names, word(2 + more));
    ASSIGN_OR_RETURN(header.units, word(3 + more));
    ASSIGN_OR_RETURN(header.files, word(4 + more));
    ASSIGN_OR_RETURN(header.values, word(5 + more));
    ASSIGN_OR_RETURN(header.functions, word(6 + more));
    header.values_size = header.functions - std::min(header.values, header.functions);
  }
  if (header.count > kMaxFunctions) {
    return Fail(ErrorCode::kExhausted, "{} functions of Go", header.count);
  }
  if (format == Format::kGo2) {
    // Behind the functions.
    const uint64_t at = header.functions + (header.count * 2 + 1) * kPointer;
    if (Within(at, sizeof(uint32_t), table.size())) {
      ASSIGN_OR_RETURN(const auto units, ReadObject<uint32_t>(elf.bytes(), table.begin + at));
      header.units = std::min<uint64_t>(units, table.size());
    }
  }
  const uint64_t size = (header.count + 1) * EntrySize(format) - EntrySize(format) / 2;
  const uint64_t last = std::max({header.names, header.units, header.files, header.values});
  if (last > table.size() || !Within(header.functions, size, table.size())) {
    return Fail(ErrorCode::kMalformed, "{} functions of Go are not in the table", header.count);
  }
  return header;
}

// Where the text begins, from which functions are counted. Since Go 1.26 the table does not tell:
// there it is one of the runtime's own variables.
Result<ElfAddress> FindText(const ElfFile& elf, const SectionTable& sections, const Part& table) {
  constexpr uint64_t kTextInTable = sizeof(Start) + 2 * kPointer;
  constexpr uint64_t kTextInModule = 22 * kPointer;
  std::optional<uint64_t> text = PointerAt(elf, sections, table.address + kTextInTable);
  if (const auto module = PartOf(elf, sections.Find(".go.module")); module && !text) {
    if (PointerAt(elf, sections, module->address) == table.address) {
      text = PointerAt(elf, sections, module->address + kTextInModule);
    }
  }
  if (!text || ExecutableSegmentAt(elf.segments(), ElfAddress(*text)) == nullptr) {
    return Fail(ErrorCode::kMalformed, "nobody says where the functions of Go begin");
  }
  return ElfAddress(*text);
}

Result<GoFunctionTable> ReadTable(const ElfFile& elf, const SectionTable& sections,
                                  const Part& part, const Start& start) {
  const std::optional<Format> known = FormatOf(start);
  if (!known) return Fail(ErrorCode::kUnsupported, "an unknown table of functions of Go");
  const Format format = *known;
  ASSIGN_OR_RETURN(const Header header, ReadHeader(elf, part, format));
  ElfAddress text(0);
  if (!HasAddresses(format)) {
    ASSIGN_OR_RETURN(text, FindText(elf, sections, part));
  }
  const uint64_t records = format == Format::kGo2 ? part.begin : part.begin + header.functions;
  GoFunctionTable table{.format = format,
                        .address = ElfAddress(part.address),
                        .text = text,
                        .functions = FileOffset(part.begin + header.functions),
                        .count = header.count,
                        .records = FileOffset(records),
                        .values = FileOffset(part.begin + header.values),
                        .values_size = header.values_size,
                        .unit = start.instruction,
                        .units = FileOffset(part.begin + header.units),
                        .end = FileOffset(part.end)};
  table.names.names = FileOffset(part.begin + header.names);
  table.names.names_size = part.size() - header.names;
  table.files.names = FileOffset(part.begin + header.files);
  table.files.names_size = part.size() - header.files;
  return table;
}

// The first table in `part`.
Result<GoFunctionTable> LookThrough(const ElfFile& elf, const SectionTable& sections, Part part) {
  constexpr uint64_t kStep = kPointer;  // they are aligned to 32
  int attempts = 4;
  part.end = std::min(part.end, part.begin + std::min(kMostToLookThrough, part.size()));
  ReadAhead bytes(elf.bytes(), part.begin, part.end);
  while (part.size() >= sizeof(Start) && attempts > 0) {
    ASSIGN_OR_RETURN(const auto found, bytes.At(part.begin, sizeof(Start)));
    if (found.size() < sizeof(Start)) break;
    Start start;
    std::memcpy(&start, found.data(), sizeof(start));
    if (FormatOf(start)) {
      --attempts;
      Result<GoFunctionTable> table = ReadTable(elf, sections, part, start);
      if (table) return table;
    }
    part.begin += kStep;
    part.address += kStep;
  }
  return Fail(ErrorCode::kNotFound, "no table of functions of Go");
}

}  // namespace

Result<GoFunctionTable> FindGoFunctions(const ElfFile& elf, const SectionTable& sections) {
  for (const char* const name : {".gopclntab", ".data.rel.ro.gopclntab"}) {
    const std::optional<Part> part = PartOf(elf, sections.Find(name));
    if (!part) continue;
    ASSIGN_OR_RETURN(const Start start, ReadObject<Start>(elf.bytes(), part->begin));
    return ReadTable(elf, sections, *part, start);
  }
  // A C linker makes one section of all that is relocated.
  const std::optional<Part> part = PartOf(elf, sections.Find(".data.rel.ro"));
  if (!part || sections.Find(".go.buildinfo") == nullptr) {
    return Fail(ErrorCode::kNotFound, "no Go program");
  }
  return LookThrough(elf, sections, *part);
}

std::optional<ElfAddress> FindGoFunctionData(const ElfFile& elf, const SectionTable& sections,
                                             const GoFunctionTable& table) {
  if (HasAddresses(table.format)) return std::nullopt;
  const uint64_t number = table.format == Format::kGo18 ? 38 : 40;  // of the word in moduledata
  if (const auto module = PartOf(elf, sections.Find(".go.module"))) {
    const auto data = PointerAt(elf, sections, module->address + number * kPointer);
    return data ? std::optional(ElfAddress(*data)) : std::nullopt;
  }
  for (const char* const name : {".noptrdata", ".data"}) {
    const std::optional<Part> part = PartOf(elf, sections.Find(name));
    if (!part) continue;
    const uint64_t end = part->begin + std::min(part->size(), kMostToLookThrough);
    const uint64_t size = (number + 1) * kPointer;
    ReadAhead bytes(elf.bytes(), part->begin, end);
    for (uint64_t at = part->begin; Within(at, size, end); at += kPointer) {
      const auto words = bytes.At(at, size);
      if (!words || words->size() < size) break;
      const auto word = [&](uint64_t i) {
        uint64_t value = 0;
        std::memcpy(&value, words->data() + i * kPointer, kPointer);
        return value;
      };
      const bool is_module = word(0) == table.address.value() && word(22) == table.text.value();
      if (is_module) return ElfAddress(word(number));
    }
  }
  return std::nullopt;
}

Result<void> ForEachGoFunction(const ElfFile& elf, const GoFunctionTable& table,
                               const std::function<void(const GoFunction&)>& visit) {
  const uint64_t entry_size = EntrySize(table.format);
  const uint64_t number_size = entry_size / 2;
  const uint64_t end = table.end.value();
  ReadAhead entries(elf.bytes(), table.functions.value(), end);
  ReadAhead records(elf.bytes(), table.records.value(), end);
  const auto number_at = [&](std::span<const std::byte> bytes, uint64_t position) {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data() + position, number_size);
    return number;
  };
  uint64_t last_record = 0;
  uint64_t last_end = 0;
  for (uint64_t i = 0; i < table.count; ++i) {
    const uint64_t at = table.functions.value() + i * entry_size;
    ASSIGN_OR_RETURN(const auto entry, entries.At(at, entry_size + number_size));
    if (entry.size() < entry_size + number_size) {
      return Fail(ErrorCode::kMalformed, "a cut table of functions of Go");
    }
    const uint64_t function_begin = number_at(entry, 0);
    const uint64_t record = number_at(entry, number_size);
    const uint64_t function_end = number_at(entry, entry_size);
    // They are in the order of their functions, and reading is to take one pass whatever they are.
    const bool in_order =
        function_begin >= last_end && function_begin < function_end && record >= last_record;
    if (!in_order || !Within(record, number_size + sizeof(Record), end - table.records.value()) ||
        function_end > std::numeric_limits<uint64_t>::max() - table.text.value()) {
      continue;
    }
    last_record = record;
    last_end = function_end;
    ASSIGN_OR_RETURN(const auto bytes,
                     records.At(table.records.value() + record + number_size, sizeof(Record)));
    if (bytes.size() < sizeof(Record)) continue;
    Record rest;
    std::memcpy(&rest, bytes.data(), sizeof(rest));
    visit({.begin = ElfAddress(table.text.value() + function_begin),
           .end = ElfAddress(table.text.value() + function_end),
           .name = rest.name,
           .stack_depths = rest.stack_depths,
           .record = FileOffset(table.records.value() + record)});
  }
  return {};
}

// Of 7 bits a byte, the lowest first.
std::optional<uint32_t> GoPcValues::Number() {
  uint32_t number = 0;
  for (size_t i = 0; i < 5 && i < bytes_.size(); ++i) {
    const auto byte = std::to_integer<uint32_t>(bytes_[i]);
    number |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    bytes_ = bytes_.subspan(i + 1);
    return number;
  }
  return std::nullopt;
}

bool GoPcValues::Next() {
  const std::optional<uint32_t> change = Number();
  if (!change || (*change == 0 && !is_first_)) return false;
  is_first_ = false;
  const std::optional<uint32_t> distance = Number();
  if (!distance || *distance == 0) return false;
  // Its lowest bit is the sign.
  const uint32_t difference = (*change & 1) != 0 ? ~(*change >> 1) : *change >> 1;
  value_ = static_cast<int32_t>(static_cast<uint32_t>(value_) + difference);
  begin_ = end_;
  end_ += *distance * unit_;
  return true;
}

}  // namespace pyrometer
