// SPDX-License-Identifier: Apache-2.0
// Code as GNU ld, gold, lld and mold write it. The AMD64 ABI supplement and "ELF for the Arm 64-bit
// Architecture" leave it to them.
#include "binary/plt_stubs.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>

#include "binary/byte_source.h"
#include "binary/segments.h"

namespace pyrometer {
namespace {

// Ten times what the largest libraries have.
constexpr size_t kMaxStubs = 65'536;
constexpr uint64_t kMaxCode = uint64_t{2} << 20;  // bytes, of all sections of stubs
// Ten times what the largest position-independent programs have.
constexpr uint64_t kMostRelocations = 8'000'000;

using Code = std::span<const std::byte>;

struct Stub {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t slot = 0;       // from which it takes where to jump
  uint32_t symbol = 0;     // by number; 0: not known
  bool is_unsure = false;  // the relocations of the slot contradict each other
};

// A jump to where a slot says.
struct Jump {
  uint64_t slot = 0;
  uint64_t size = 0;  // of its code
};

bool Skip(Code& code, std::initializer_list<uint8_t> expected) {
  const bool is_there = code.size() >= expected.size() &&
                        std::ranges::equal(code.first(expected.size()), expected, {},
                                           [](std::byte b) { return std::to_integer<uint8_t>(b); });
  if (is_there) code = code.subspan(expected.size());
  return is_there;
}

std::optional<Jump> X86JumpAt(Code code, uint64_t address) {
  const size_t before = code.size();
  Skip(code, {0xf3, 0x0f, 0x1e, 0xfa});                                                 // endbr64
  if (Skip(code, {0x41, 0xbb})) code = code.subspan(std::min<size_t>(code.size(), 4));  // mold: mov
  Skip(code, {0xf2});                                                                   // bnd
  int32_t distance = 0;
  if (!Skip(code, {0xff, 0x25}) || code.size() < sizeof(distance)) return std::nullopt;  // jmp
  std::memcpy(&distance, code.data(), sizeof(distance));
  const uint64_t size = before - code.size() + sizeof(distance);
  return Jump{.slot = address + size + static_cast<uint64_t>(int64_t{distance}), .size = size};
}

// Stubs take 16 bytes, in .plt.got also 8. Some begin behind others of 8 bytes.
std::optional<Stub> X86StubAt(Code code, uint64_t address) {
  constexpr size_t kShort = 8;
  constexpr size_t kLong = 16;
  const std::optional<Jump> jump = X86JumpAt(code.first(std::min(code.size(), kLong)), address);
  if (!jump) return std::nullopt;
  const bool is_short = jump->size <= kShort && code.size() > kShort &&
                        X86JumpAt(code.subspan(kShort), address + kShort).has_value();
  const size_t size = std::min(code.size(), is_short ? kShort : kLong);
  return Stub{.begin = address, .end = address + size, .slot = jump->slot};
}

// The instructions of such stubs on arm64, which differ in operands only where `mask` is 0.
struct Arm64Instruction {
  uint32_t bits;
  uint32_t mask = ~uint32_t{0};

  bool Is(uint32_t instruction) const { return (instruction & mask) == bits; }
};
constexpr Arm64Instruction kBranchTarget{0xd503245f};             // bti c
constexpr Arm64Instruction kLoadPage{0x90000010, 0x9f00001f};     // adrp x16, page
constexpr Arm64Instruction kLoad{0xf9400211, 0xffc003ff};         // ldr x17, [x16, #offset]
constexpr Arm64Instruction kSlotAddress{0x91000210, 0xffc003ff};  // add x16, x16, #offset
constexpr Arm64Instruction kAuthenticate{0xd503219f};             // autia1716
constexpr Arm64Instruction kBranch{0xd61f0220};                   // br x17
constexpr Arm64Instruction kNothing{0xd503201f};                  // nop

// What kLoadPage and kLoad at `address` load.
uint64_t Arm64SlotOf(uint32_t page, uint32_t load, uint64_t address) {
  constexpr uint64_t kInPage = 0xfff;
  constexpr uint64_t kSign = uint64_t{1} << 20;
  const uint64_t pages = uint64_t{page >> 5 & 0x7ffff} << 2 | (page >> 29 & 3);
  const uint64_t distance = ((pages ^ kSign) - kSign) << 12;  // may be negative
  const uint64_t offset = uint64_t{load >> 10 & 0xfff} * sizeof(uint64_t);
  return (address & ~kInPage) + distance + offset;
}

// Stubs take 16 or 24 bytes, of which the last may be filled up.
std::optional<Stub> Arm64StubAt(Code code, uint64_t address) {
  std::array<uint32_t, 6> words{};
  const size_t count = std::min(code.size() / sizeof(uint32_t), words.size());
  std::memcpy(words.data(), code.data(), count * sizeof(uint32_t));
  size_t next = 0;
  const auto skip = [&](const Arm64Instruction& instruction) {
    const bool is_there = next < count && instruction.Is(words[next]);
    if (is_there) ++next;
    return is_there;
  };
  skip(kBranchTarget);
  const size_t page = next;
  if (!skip(kLoadPage) || !skip(kLoad)) return std::nullopt;
  skip(kSlotAddress);
  skip(kAuthenticate);
  if (!skip(kBranch)) return std::nullopt;
  while (skip(kNothing)) continue;
  return Stub{.begin = address,
              .end = address + next * sizeof(uint32_t),
              .slot = Arm64SlotOf(words[page], words[page + 1], address + page * sizeof(uint32_t))};
}

// At most `most` bytes of what is executed there. Empty if that is not in the file.
std::vector<std::byte> CodeOf(const ElfFile& elf, const Section& section, uint64_t most) {
  const ElfAddress begin(section.header.sh_addr);
  const Segment* const segment = ExecutableSegmentAt(elf.segments(), begin);
  if (segment == nullptr || !HoldsInFile(*segment, begin)) return {};
  const uint64_t before = begin.value() - segment->address.value();
  const uint64_t size = std::min({section.header.sh_size, segment->file_size - before, most});
  return ReadArray<std::byte>(elf.bytes(), segment->offset.value() + before, size)
      .value_or(std::vector<std::byte>());
}

void AddStubs(const ElfFile& elf, Code code, uint64_t address, std::vector<Stub>& stubs) {
  const bool is_x86 = elf.header().e_machine == EM_X86_64;
  const size_t step = is_x86 ? 8 : sizeof(uint32_t);
  while (!code.empty() && stubs.size() < kMaxStubs) {
    const std::optional<Stub> stub = is_x86 ? X86StubAt(code, address) : Arm64StubAt(code, address);
    if (stub) stubs.push_back(*stub);
    const size_t size = std::min(code.size(), stub ? stub->end - stub->begin : step);
    code = code.subspan(size);
    address += size;
  }
}

// Sorted and disjoint, as far as sections are: what overlaps is left out.
std::vector<Stub> AllStubs(const ElfFile& elf, const SectionTable& sections) {
  std::vector<Stub> stubs;
  uint64_t room = kMaxCode;
  for (const Section& section : sections.all()) {
    if (!IsPltSection(section)) continue;
    const std::vector<std::byte> code = CodeOf(elf, section, room);
    room -= code.size();
    AddStubs(elf, code, section.header.sh_addr, stubs);
  }
  std::ranges::sort(stubs, {}, &Stub::begin);
  uint64_t end = 0;
  std::erase_if(stubs, [&](const Stub& stub) {
    const bool overlaps = stub.begin < end;
    if (!overlaps) end = stub.end;
    return overlaps;
  });
  return stubs;
}

// Whether it writes the address of a symbol into a slot.
bool FillsSlot(const Elf64_Rela& relocation, Elf64_Half machine) {
  const uint64_t type = ELF64_R_TYPE(relocation.r_info);
  if (machine == EM_X86_64) return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

// REQUIRES: `stubs` are sorted by slot.
void NoteSymbol(const Elf64_Rela& relocation, std::span<Stub> stubs) {
  const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info));
  auto stub = std::ranges::lower_bound(stubs, relocation.r_offset, {}, &Stub::slot);
  for (; stub != stubs.end() && stub->slot == relocation.r_offset; ++stub) {
    stub->is_unsure |= stub->symbol != 0 && stub->symbol != symbol;
    stub->symbol = symbol;
  }
}

// Up to what cannot be read. REQUIRES: as for NoteSymbol.
void NoteSymbolsOf(const ElfFile& elf, FileOffset relocations, uint64_t count,
                   std::span<Stub> stubs) {
  constexpr uint64_t kBatch = ReadAhead::kDefaultStep / sizeof(Elf64_Rela);
  for (uint64_t done = 0; done < count; done += kBatch) {
    const auto batch =
        ReadArray<Elf64_Rela>(elf.bytes(), relocations.value() + done * sizeof(Elf64_Rela),
                              std::min(kBatch, count - done));
    if (!batch) return;
    for (const Elf64_Rela& relocation : *batch) {
      if (FillsSlot(relocation, elf.header().e_machine)) NoteSymbol(relocation, stubs);
    }
  }
}

// Of relocations by `symbols`.
void NoteSymbols(const ElfFile& elf, const SectionTable& sections, const Section* symbols,
                 std::vector<Stub>& stubs) {
  std::ranges::sort(stubs, {}, &Stub::slot);
  uint64_t left = kMostRelocations;
  for (const Section& section : sections.all()) {
    const Elf64_Shdr& header = section.header;
    const bool is_meant = header.sh_type == SHT_RELA && header.sh_entsize == sizeof(Elf64_Rela) &&
                          sections.At(header.sh_link) == symbols &&
                          Within(header.sh_offset, header.sh_size, elf.bytes().size());
    if (!is_meant) continue;
    const uint64_t count = std::min(header.sh_size / sizeof(Elf64_Rela), left);
    left -= count;
    NoteSymbolsOf(elf, FileOffset(header.sh_offset), count, stubs);
  }
}

// Those of which it is known.
Result<std::vector<PltStub>> WithNames(const ElfFile& elf, const SymbolRange& symbols,
                                       std::vector<Stub> stubs) {
  const uint64_t begin = symbols.symbols.value();
  const uint64_t size = symbols.count * sizeof(Elf64_Sym);
  if (!Within(begin, size, elf.bytes().size())) {
    return Fail(ErrorCode::kMalformed, "{} dynamic symbols are not in the file", symbols.count);
  }
  std::ranges::sort(stubs, {}, &Stub::symbol);  // so they are read in one pass
  ReadAhead bytes(elf.bytes(), begin, begin + size);
  std::vector<PltStub> named;
  for (const Stub& stub : stubs) {
    if (stub.symbol == 0 || stub.symbol >= symbols.count || stub.is_unsure) continue;
    Elf64_Sym symbol{};
    const uint64_t at = begin + stub.symbol * sizeof(symbol);
    ASSIGN_OR_RETURN(const auto read, bytes.At(at, sizeof(symbol)));
    if (read.size() < sizeof(symbol)) break;
    std::memcpy(&symbol, read.data(), sizeof(symbol));
    if (symbol.st_name == 0) continue;
    named.push_back(
        {.begin = ElfAddress(stub.begin), .end = ElfAddress(stub.end), .name = symbol.st_name});
  }
  std::ranges::sort(named, {}, &PltStub::begin);
  return named;
}

}  // namespace

bool IsPltSection(const Section& section) {
  if ((section.header.sh_flags & SHF_EXECINSTR) == 0) return false;
  const auto names = {".plt", ".plt.got", ".plt.sec", ".iplt"};
  return std::ranges::find(names, section.name) != names.end();
}

Result<PltStubs> FindPltStubs(const ElfFile& elf, const SectionTable& sections) {
  ASSIGN_OR_RETURN(const SymbolRange symbols, FindSymbols(sections, SHT_DYNSYM));
  std::vector<Stub> stubs = AllStubs(elf, sections);
  if (stubs.empty()) return Fail(ErrorCode::kNotFound, "no stubs");
  NoteSymbols(elf, sections, sections.FindType(SHT_DYNSYM), stubs);
  ASSIGN_OR_RETURN(std::vector<PltStub> named, WithNames(elf, symbols, std::move(stubs)));
  return PltStubs{.stubs = std::move(named), .symbols = symbols};
}

}  // namespace pyrometer
