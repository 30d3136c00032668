// SPDX-License-Identifier: Apache-2.0
// What the functions do: the Go distribution's src/runtime/asm_amd64.s.
#include "unwind/go_frames.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/go_functions.h"
#include "binary/segments.h"
#include "binary/symbols.h"

namespace pyrometer {
namespace {

constexpr size_t kMostCode = 4096;
constexpr size_t kMostFound = 64;  // every name is there once

enum class Role : uint8_t {
  kExit,      // outermost of a goroutine; tells whether all are where the table says
  kCgo,       // only there in programs with cgo
  kStart,     // outermost; with cgo, threads are C's, and so are the frames above
  kSwitch,    // outermost once it stands on the thread's own stack
  kCall,      // calls on the thread's own stack, and returns to that where it was called
  kForget,    // the same, but nothing there leads back to where it was called
  kRestorer,  // signal handlers return to its first instruction
};

struct KnownFunction {
  std::string_view name;
  Role role;
};

constexpr KnownFunction kFunctions[] = {
    {"crosscall2", Role::kCgo},
    {"runtime.asmcgocall", Role::kCall},
    {"runtime.goexit", Role::kExit},
    {"runtime.mcall", Role::kSwitch},
    {"runtime.morestack", Role::kForget},
    {"runtime.mstart", Role::kStart},
    {"runtime.nanotime", Role::kForget},  // until Go 1.14
    {"runtime.nanotime1", Role::kCall},
    {"runtime.rt0_go", Role::kStart},
    {"runtime.sigreturn", Role::kRestorer},  // until Go 1.20
    {"runtime.sigreturn__sigaction", Role::kRestorer},
    {"runtime.systemstack", Role::kCall},
    {"runtime.vgetrandom1", Role::kCall},
    {"runtime.walltime", Role::kForget},  // until Go 1.14
    {"runtime.walltime1", Role::kCall},
    {"time.now", Role::kCall},
};

// In the ELF's own address space.
struct Function {
  uint64_t begin = 0;
  uint64_t end = 0;
  Role role;
};

// Those of kFunctions.
std::vector<Function> FindKnown(const ElfFile& elf, const GoFunctionTable& table) {
  std::vector<GoFunction> all;
  const auto add = [&](const GoFunction& function) { all.push_back(function); };
  if (!ForEachGoFunction(elf, table, add)) return {};
  std::ranges::sort(all, {}, &GoFunction::name);  // so that names take one pass
  SymbolNames names(elf, table.names);
  std::vector<Function> found;
  for (const GoFunction& function : all) {
    const Result<std::string_view> name = names.At(function.name);
    const auto* const known =
        name ? std::ranges::find(kFunctions, *name, &KnownFunction::name) : std::end(kFunctions);
    if (known == std::end(kFunctions)) continue;
    found.push_back({function.begin.value(), function.end.value(), known->role});
    if (found.size() == kMostFound) break;
  }
  return found;
}

std::vector<uint8_t> CodeOf(const Function& function, const ElfFile& elf) {
  std::vector<uint8_t> bytes(std::min<uint64_t>(function.end - function.begin, kMostCode));
  const std::optional<FileOffset> offset = ToFileOffset(elf.segments(), ElfAddress(function.begin));
  const auto out = std::as_writable_bytes(std::span(bytes));
  if (!offset || !elf.bytes().Read(offset->value(), out)) bytes.clear();
  return bytes;
}

// NOP; CALL goexit1; NOP.
bool IsExit(std::span<const uint8_t> code) {
  constexpr uint8_t kNop = 0x90;
  constexpr uint8_t kCall = 0xe8;
  return code.size() > 6 && code[0] == kNop && code[1] == kCall && code[6] == kNop;
}

// Behind the first MOVQ n(register), SP or MOVQ register, SP: a goroutine knows its stack.
std::optional<size_t> FindStackSwitch(std::span<const uint8_t> code) {
  constexpr uint8_t kWide = 0x48;  // or 0x49 for R8 to R15
  constexpr uint8_t kLoad = 0x8b;
  constexpr uint8_t kLoadStackPointer = 0x60;  // ORed with the register; with RSP it is another one
  constexpr uint8_t kCopy = 0x89;
  constexpr uint8_t kCopyToStackPointer = 0xc4;  // ORed with 8 times the register
  for (size_t at = 0; at + 4 <= code.size(); ++at) {
    if ((code[at] & ~5U) != kWide) continue;
    const uint8_t operands = code[at + 2];
    const bool loads =
        code[at + 1] == kLoad && (operands & ~7U) == kLoadStackPointer && (operands & 7U) != 4;
    if (loads) return at + 4;
    if (code[at + 1] == kCopy && (operands & ~0x38U) == kCopyToStackPointer) return at + 3;
  }
  return std::nullopt;
}

// Behind the instructions that make a frame of the frame pointer: PUSHQ BP; MOVQ SP, BP since Go
// 1.21, and before that SUBQ $n, SP; MOVQ BP, n-8(SP); LEAQ n-8(SP), BP. Nothing: it makes none, or
// uses the register for something else (MOVQ SP, BP, of the vDSO's callers in Go 1.15).
std::optional<size_t> FindFrame(std::span<const uint8_t> code) {
  constexpr uint8_t kPush[] = {0x55, 0x48, 0x89, 0xe5};
  constexpr size_t kSubtract = 14;  // bytes of all three
  if (code.size() < kSubtract) return std::nullopt;
  if (std::equal(std::begin(kPush), std::end(kPush), code.begin())) return std::size(kPush);
  const auto saved = static_cast<uint8_t>(code[3] - 8);
  const uint8_t subtract[] = {0x48, 0x83,  0xec, code[3], 0x48, 0x89, 0x6c,
                              0x24, saved, 0x48, 0x8d,    0x6c, 0x24, saved};
  if (!std::equal(std::begin(subtract), std::end(subtract), code.begin())) return std::nullopt;
  const auto rest = code.subspan(kSubtract);
  const auto move = std::span(kPush).subspan(1);
  const bool is_lost =
      rest.size() >= move.size() && std::equal(move.begin(), move.end(), rest.begin());
  return is_lost ? std::nullopt : std::optional(kSubtract);
}

// Behind the next instruction that brings the caller's frame pointer back in front of a RET or JMP:
// POPQ BP, or MOVQ n(SP), BP; ADDQ $n, SP. `left`: behind the RET.
struct FrameEnd {
  size_t end = 0;
  size_t left = 0;
};
std::optional<FrameEnd> FindFrameEnd(std::span<const uint8_t> code, size_t from) {
  constexpr uint8_t kReturn = 0xc3;
  constexpr uint8_t kPop = 0x5d;
  constexpr uint8_t kJump[] = {0xff, 0xe7};  // JMP DI
  constexpr uint8_t kLoad[] = {0x48, 0x8b, 0x6c, 0x24};
  constexpr uint8_t kAdd[] = {0x48, 0x83, 0xc4};
  const auto has = [&](size_t at, std::span<const uint8_t> bytes) {
    return at <= code.size() && code.size() - at >= bytes.size() &&
           std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<ptrdiff_t>(at));
  };
  for (size_t at = from; at + 1 < code.size(); ++at) {
    if (code[at] == kPop && code[at + 1] == kReturn) return FrameEnd{at + 1, at + 2};
    if (code[at] == kPop && has(at + 1, kJump)) return FrameEnd{at + 1, at + 1 + std::size(kJump)};
    const size_t add = at + std::size(kLoad) + 1;
    const size_t leave = add + std::size(kAdd) + 1;
    if (has(at, kLoad) && has(add, kAdd) && leave < code.size() && code[leave] == kReturn) {
      return FrameEnd{add, leave + 1};
    }
  }
  return std::nullopt;
}

// Without what fills up the space up to the next function.
size_t SizeOf(std::span<const uint8_t> code) {
  constexpr uint8_t kPadding = 0xcc;
  while (!code.empty() && code.back() == kPadding) code = code.first(code.size() - 1);
  return code.size();
}

const Function* FindRole(const std::vector<Function>& functions, Role role) {
  const auto found = std::ranges::find(functions, role, &Function::role);
  return found == functions.end() ? nullptr : &*found;
}

// Adds what is known of `function`.
class FrameFinder {
 public:
  FrameFinder(const ElfFile& elf, bool has_cgo) : elf_(elf), has_cgo_(has_cgo) {}

  void Add(const Function& function) {
    using Kind = GoFrames::Kind;
    switch (function.role) {
      case Role::kCgo:
        return;
      case Role::kExit:
        return Add(function.begin, function.end, Kind::kOutermost);
      case Role::kStart:
        if (!has_cgo_) Add(function.begin, function.end, Kind::kOutermost);
        return;
      case Role::kSwitch:
        return AddSwitch(function);
      case Role::kCall:
        return AddCall(function);
      case Role::kForget:
        return AddFromSwitch(function, Kind::kLost);
      case Role::kRestorer:
        // No call lies in front of it, but a return address is looked up as if one did.
        if (function.begin > 0) Add(function.begin - 1, function.end, Kind::kSignal);
        return;
    }
  }

  std::vector<GoFrames> Take() && {
    std::ranges::sort(all_, {}, &GoFrames::begin);
    return std::move(all_);
  }

 private:
  void Add(uint64_t begin, uint64_t end, GoFrames::Kind kind) {
    if (begin < end) all_.push_back({.begin = begin, .end = end, .kind = kind});
  }

  void AddFromSwitch(const Function& function, GoFrames::Kind kind) {
    const std::optional<size_t> there = FindStackSwitch(CodeOf(function, elf_));
    if (there) Add(function.begin + *there, function.end, kind);
  }

  // What follows is where the runtime pretends that goroutines are that have called C (until Go
  // 1.20): looked up in front of its beginning, it is as if they had just been called.
  void AddSwitch(const Function& function) {
    const std::vector<uint8_t> code = CodeOf(function, elf_);
    const std::optional<size_t> there = FindStackSwitch(code);
    if (!there) return;
    const uint64_t end = function.begin + std::max(SizeOf(code), *there);
    Add(function.begin + *there, end, GoFrames::Kind::kOutermost);
    Add(end, function.end, GoFrames::Kind::kBeginning);
  }

  // As long as there is a frame, whatever becomes of the stack pointer.
  void AddCall(const Function& function) {
    const std::vector<uint8_t> code = CodeOf(function, elf_);
    std::optional<size_t> begin = FindFrame(code);
    if (!begin) return AddFromSwitch(function, GoFrames::Kind::kLost);
    while (const std::optional<FrameEnd> end = FindFrameEnd(code, *begin)) {
      Add(function.begin + *begin, function.begin + end->end, GoFrames::Kind::kSwitched);
      begin = end->left;
    }
    Add(function.begin + *begin, function.end, GoFrames::Kind::kSwitched);
  }

  const ElfFile& elf_;
  const bool has_cgo_;
  std::vector<GoFrames> all_;
};

}  // namespace

std::vector<GoFrames> FindGoFrames(const ElfFile& elf, const SectionTable& sections) {
  if (elf.header().e_machine != EM_X86_64) return {};
  const Result<GoFunctionTable> table = FindGoFunctions(elf, sections);
  if (!table) return {};
  const std::vector<Function> functions = FindKnown(elf, *table);
  const Function* const exit = FindRole(functions, Role::kExit);
  if (exit == nullptr || !IsExit(CodeOf(*exit, elf))) return {};

  const bool has_cgo = FindRole(functions, Role::kCgo) != nullptr;
  FrameFinder finder(elf, has_cgo);
  for (const Function& function : functions) finder.Add(function);
  return std::move(finder).Take();
}

}  // namespace pyrometer
