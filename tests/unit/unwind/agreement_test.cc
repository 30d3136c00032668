// SPDX-License-Identifier: Apache-2.0
// Every row of a table against what libdw reads in the same file. Both are evaluated in frames made
// of random numbers, where no two ways to a value lead to the same one by chance.
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/unit/unwind/printed_rule.h"
#include "unwind/exotic.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
struct Free {
  void operator()(void* memory) const { ::free(memory); }
};

// The caller's registers as far as rules tell them; nothing where it has none, or it is not known.
struct Caller {
  std::optional<uint64_t> cfa;
  std::optional<uint64_t> fp;
  std::optional<uint64_t> rbx;
  std::optional<uint64_t> ra;
  bool operator==(const Caller&) const = default;
};

std::string Describe(const Caller& caller) {
  const auto hex = [](std::optional<uint64_t> value) {
    return value ? fmt::format("{:x}", *value) : std::string("none");
  };
  return fmt::format("cfa {} fp {} rbx {} ra {}", hex(caller.cfa), hex(caller.fp), hex(caller.rbx),
                     hex(caller.ra));
}

uint64_t Scramble(uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15;
  return value ^ (value >> 29);
}

// Memory that has something else at every address.
uint64_t MemoryAt(uint64_t address) {
  return Scramble(address + 0x1234567);
}

KnownRegisters RandomRegisters(std::mt19937_64& random) {
  KnownRegisters registers;
  for (uint8_t reg = 0; reg < kAmd64.general_registers; ++reg) registers.Set(reg, random());
  return registers;
}

std::optional<uint64_t> Evaluate(uint8_t saved, int offset, uint64_t same, uint64_t cfa,
                                 const KnownRegisters& registers) {
  switch (saved) {
    case PYRO_SAVED_SAME:
      return same;
    case PYRO_SAVED_AT_CFA:
      return MemoryAt(cfa + static_cast<uint64_t>(offset));
    case PYRO_SAVED_AT_FP:
      return MemoryAt(registers.values[kAmd64.frame_pointer] + static_cast<uint64_t>(offset));
    case PYRO_SAVED_IN_REGISTER:
      return registers.Get(static_cast<uint64_t>(offset));
    default:
      return std::nullopt;
  }
}

uint64_t CfaOf(const pyro_unwind_rule& rule, const KnownRegisters& registers, uint64_t pc) {
  const uint64_t base =
      registers.values[rule.cfa_register] + static_cast<uint64_t>(int64_t{rule.cfa_offset});
  const auto add = static_cast<uint64_t>(int64_t{rule.cfa_add});
  if (rule.kind == PYRO_RULE_DEREFERENCE) return MemoryAt(base) + add;
  if (rule.kind == PYRO_RULE_PLT) return base + ((pc & 15) >= add ? 8 : 0);
  return base;
}

// The kernel's layout, by which PYRO_RULE_SIGNAL goes.
Caller EvaluateSignal(const KnownRegisters& registers) {
  const uint64_t sp = registers.values[kAmd64.stack_pointer];
  return {.cfa = MemoryAt(sp + 160),
          .fp = MemoryAt(sp + 120),
          .rbx = MemoryAt(sp + 128),
          .ra = MemoryAt(sp + 168)};
}

Caller EvaluateExotic(const ExoticRule& rule, const KnownRegisters& registers, uint64_t pc) {
  const MemoryReader memory = [](Address address, std::span<std::byte> out) {
    const uint64_t word = MemoryAt(address.value());
    std::memcpy(out.data(), &word, out.size());
    return true;
  };
  const Result<CallerFrame> caller = UnwindExotic(rule, kAmd64, registers, Address(pc), memory);
  if (!caller) return {};
  return {.cfa = caller->cfa.value(),
          .fp = caller->registers.Get(kAmd64.frame_pointer),
          .rbx = caller->registers.Get(kRbx),
          .ra = caller->pc.value()};
}

// By our table.
Caller EvaluateOurs(const UnwindTable& table, const KnownRegisters& registers, uint64_t pc) {
  const pyro_unwind_rule& rule = *table.RuleAt(ElfAddress(pc));
  if (rule.kind == PYRO_RULE_NONE || rule.kind == PYRO_RULE_END) return {};
  if (rule.kind == PYRO_RULE_SIGNAL) return EvaluateSignal(registers);
  if (rule.kind == PYRO_RULE_EXOTIC) {
    return EvaluateExotic(table.exotic.at(static_cast<size_t>(rule.cfa_offset)), registers, pc);
  }
  const uint64_t cfa = CfaOf(rule, registers, pc);
  Caller caller{.cfa = cfa, .fp = {}, .rbx = {}, .ra = {}};
  caller.fp =
      Evaluate(rule.fp, rule.fp_offset, registers.values[kAmd64.frame_pointer], cfa, registers);
  caller.ra = Evaluate(rule.ra, rule.ra_offset, 0, cfa, registers);
  if (rule.rbx_offset != PYRO_RBX_LOST) {
    const uint8_t saved = rule.rbx_offset == PYRO_RBX_SAME ? PYRO_SAVED_SAME : PYRO_SAVED_AT_CFA;
    caller.rbx = Evaluate(saved, rule.rbx_offset, registers.values[kRbx], cfa, registers);
  }
  return caller;
}

// A second, simple machine for the operations that libdw gives out.
class LibdwFrame {
 public:
  LibdwFrame(Dwarf_Frame* frame, const KnownRegisters& registers, uint64_t pc)
      : frame_(frame), registers_(registers), pc_(pc) {
    Dwarf_Op* operations = nullptr;
    size_t count = 0;
    if (::dwarf_frame_cfa(frame, &operations, &count) == 0 && count > 0) {
      cfa_ = Run({operations, count}).value;
    }
  }

  std::optional<uint64_t> cfa() const { return cfa_; }

  std::optional<uint64_t> Register(int number) const {
    Dwarf_Op memory[3];
    Dwarf_Op* operations = nullptr;
    size_t count = 0;
    if (::dwarf_frame_register(frame_, number, memory, &operations, &count) != 0) return {};
    if (count == 0 && operations == memory) return std::nullopt;           // undefined
    if (count == 0) return registers_.Get(static_cast<uint64_t>(number));  // unchanged
    const Answer answer = Run({operations, count});
    return answer.is_value ? answer.value : MemoryAt(answer.value);
  }

 private:
  struct Answer {
    uint64_t value = 0;
    bool is_value = false;
  };

  Answer Run(std::span<const Dwarf_Op> operations) const {
    std::vector<uint64_t> stack;
    const auto pop = [&] {
      const uint64_t top = stack.back();
      stack.pop_back();
      return top;
    };
    bool is_value = false;
    for (const Dwarf_Op& op : operations) {
      if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
        stack.push_back(op.atom - DW_OP_lit0);
      } else if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
        stack.push_back(Value(op.atom - DW_OP_breg0) + op.number);
      } else if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) {
        return {.value = Value(op.atom - DW_OP_reg0), .is_value = true};
      } else if (op.atom == DW_OP_regx) {
        return {.value = Value(op.number), .is_value = true};
      } else if (op.atom == DW_OP_bregx) {
        stack.push_back(Value(op.number) + op.number2);
      } else if (op.atom == DW_OP_call_frame_cfa) {
        stack.push_back(cfa_.value());
      } else if (op.atom == DW_OP_plus_uconst) {
        stack.back() += op.number;
      } else if (op.atom == DW_OP_deref) {
        stack.back() = MemoryAt(stack.back());
      } else if (op.atom == DW_OP_stack_value) {
        is_value = true;
      } else {
        const uint64_t b = pop();
        const uint64_t a = pop();
        stack.push_back(Combine(op.atom, a, b));
      }
    }
    return {.value = stack.back(), .is_value = is_value};
  }

  static uint64_t Combine(unsigned atom, uint64_t a, uint64_t b) {
    switch (atom) {
      case DW_OP_and:
        return a & b;
      case DW_OP_ge:
        return static_cast<int64_t>(a) >= static_cast<int64_t>(b) ? 1 : 0;
      case DW_OP_mul:
        return a * b;
      case DW_OP_shl:
        return a << b;
      case DW_OP_plus:
        return a + b;
      default:
        ADD_FAILURE() << "operation " << atom;
        return 0;
    }
  }

  uint64_t Value(uint64_t reg) const {
    return reg == kAmd64.return_address ? pc_ : registers_.values.at(reg);
  }

  Dwarf_Frame* frame_;
  const KnownRegisters& registers_;
  uint64_t pc_;
  std::optional<uint64_t> cfa_;
};

struct CfiEnd {
  void operator()(Dwarf_CFI* cfi) const { ::dwarf_cfi_end(cfi); }
};
using FramePointer = std::unique_ptr<Dwarf_Frame, Free>;

FramePointer FrameAt(Dwarf_CFI* cfi, uint64_t pc) {
  Dwarf_Frame* frame = nullptr;
  return FramePointer(::dwarf_cfi_addrframe(cfi, pc, &frame) == 0 ? frame : nullptr);
}

Caller EvaluateTheirs(Dwarf_Frame* frame, const KnownRegisters& registers, uint64_t pc) {
  const LibdwFrame evaluated(frame, registers, pc);
  const std::optional<uint64_t> ra = evaluated.Register(kAmd64.return_address);
  if (!ra) return {};
  return {.cfa = evaluated.cfa(),
          .fp = evaluated.Register(kAmd64.frame_pointer),
          .rbx = evaluated.Register(kRbx),
          .ra = ra};
}

// Where rules may change, and between.
std::vector<uint64_t> AddressesOf(const UnwindTable& table) {
  std::vector<uint64_t> addresses;
  for (size_t page = 0; page < table.pages.size(); ++page) {
    for (uint32_t i = 0; i < table.pages[page].row_count; ++i) {
      const pyro_unwind_row& row = table.rows[table.pages[page].first_row + i];
      const uint64_t begin = ((table.first_page + page) << PYRO_UNWIND_PAGE_SHIFT) + row.pc_low;
      for (const uint64_t address : {begin - 1, begin, begin + 1}) addresses.push_back(address);
    }
  }
  return addresses;
}

// True if the table may have `rule` at `pc` where libdw has nothing.
bool MayBeOurs(const UnwindTable& table, const pyro_unwind_rule& rule, uint64_t pc) {
  if (rule.kind == PYRO_RULE_NONE) return true;
  // The entry point of a file that says nothing about it is known to be the outermost frame.
  if (rule.kind == PYRO_RULE_END) return true;
  const bool is_padding = table.RuleAt(ElfAddress((pc | 15) + 1))->kind != PYRO_RULE_NONE;
  return is_padding;
}

// Rules may say that RBX is lost. libdw says so where nothing is said of it: its defaults for
// x86_64 have another register in the place of this one.
bool IsRbxLeftOpen(const Caller& ours, const Caller& theirs, const KnownRegisters& registers) {
  const bool is_unsaid = theirs.cfa && !theirs.rbx && ours.rbx == registers.values[kRbx];
  return !ours.rbx || is_unsaid;
}

// `path` must have .eh_frame only, which is all that libdw looks at here.
void ExpectAgreement(const std::string& path) {
  const UniqueFd fd = *Open(path, O_RDONLY);
  const UnwindTable table = *CompileUnwindTable(*ElfFile::Open(fd.get()));
  ASSERT_FALSE(table.empty()) << path;
  ::elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, ElfEnd> elf(::elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr));
  const std::unique_ptr<Dwarf_CFI, CfiEnd> owned_cfi(::dwarf_getcfi_elf(elf.get()));
  ASSERT_NE(owned_cfi, nullptr) << path;
  Dwarf_CFI* const cfi = owned_cfi.get();

  std::mt19937_64 random(11);
  size_t covered = 0;
  size_t differences = 0;
  const std::vector<uint64_t> addresses = AddressesOf(table);
  for (const uint64_t pc : addresses) {
    const FramePointer frame = FrameAt(cfi, pc);
    const pyro_unwind_rule& rule = *table.RuleAt(ElfAddress(pc));
    if (frame == nullptr) {
      EXPECT_TRUE(MayBeOurs(table, rule, pc)) << path << " at " << std::hex << pc;
      continue;
    }
    ++covered;
    const KnownRegisters registers = RandomRegisters(random);
    Caller ours = EvaluateOurs(table, registers, pc);
    const Caller theirs = EvaluateTheirs(frame.get(), registers, pc);
    if (IsRbxLeftOpen(ours, theirs, registers)) ours.rbx = theirs.rbx;
    if (ours == theirs) continue;
    if (++differences > 20) continue;
    ADD_FAILURE() << path << " at " << std::hex << pc << " (" << Print(rule)
                  << "): " << Describe(ours) << "; by libdw " << Describe(theirs);
  }
  EXPECT_GT(covered, addresses.size() * 8 / 10) << path;
  EXPECT_EQ(differences, 0U) << path << ", of " << covered;
}

// Where the library that has `symbol` is on this machine.
std::string LibraryOf(const char* symbol) {
  Dl_info info{};
  void* const address = ::dlsym(RTLD_DEFAULT, symbol);
  if (address == nullptr || ::dladdr(address, &info) == 0) return {};
  return info.dli_fname;
}

TEST(UnwindTableAgreesWithLibdw, OnTheCLibrary) {
  ExpectAgreement(LibraryOf("qsort"));
}

TEST(UnwindTableAgreesWithLibdw, OnTheDynamicLinker) {
  ExpectAgreement(LibraryOf("__tls_get_addr"));
}

TEST(UnwindTableAgreesWithLibdw, OnTheCxxRuntime) {
  ExpectAgreement(LibraryOf("__cxa_throw"));
}

TEST(UnwindTableAgreesWithLibdw, OnPrograms) {
  for (const char* path : {"/proc/self/exe", "/usr/bin/python3", "/usr/bin/perl", "/bin/bash"}) {
    if (::access(path, R_OK) == 0) ExpectAgreement(path);
  }
}

// Where the dynamic linker finds a library; nothing if it is not installed. It stays loaded.
std::string InstalledLibrary(const char* name) {
  void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (library == nullptr || ::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return {};
  return map->l_name;
}

TEST(UnwindTableAgreesWithLibdw, OnWhatWasWrittenByHand) {
  int compared = 0;
  for (const char* name :
       {"libcrypto.so.3", "libgmp.so.10", "libitm.so.1", "libx264.so.164", "libx265.so.199"}) {
    const std::string path = InstalledLibrary(name);
    if (path.empty()) continue;
    ExpectAgreement(path);
    ++compared;
  }
  EXPECT_GT(compared, 0) << "not even libgmp, which the compiler is made with";
}

}  // namespace
}  // namespace pyrometer
