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
  kGrow,      // calls on the thread's own stack, and has forgotten who called it
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
    {"runtime.morestack", Role::kGrow},
    {"runtime.mstart", Role::kStart},
    {"runtime.rt0_go", Role::kStart},
    {"runtime.sigreturn", Role::kRestorer},  // until Go 1.20
    {"runtime.sigreturn__sigaction", Role::kRestorer},
    {"runtime.systemstack", Role::kCall},
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

// Behind MOVQ n(register), SP, the first from `from` on: the register holds a goroutine, which
// knows its stack.
std::optional<size_t> FindStackSwitch(std::span<const uint8_t> code, size_t from = 0) {
  constexpr size_t kSize = 4;
  constexpr uint8_t kWide = 0x48;  // or 0x49 for R8 to R15
  constexpr uint8_t kMove = 0x8b;
  constexpr uint8_t kToStackPointer = 0x60;  // ORed with the register; with RSP it is another one
  for (size_t at = from; at + kSize <= code.size(); ++at) {
    const uint8_t operands = code[at + 2];
    const bool is_one = (code[at] & ~1U) == kWide && code[at + 1] == kMove &&
                        (operands & ~7U) == kToStackPointer && (operands & 7U) != 4;
    if (is_one) return at + kSize;
  }
  return std::nullopt;
}

bool BeginsWith(std::span<const uint8_t> code, std::span<const uint8_t> instructions) {
  return code.size() >= instructions.size() &&
         std::equal(instructions.begin(), instructions.end(), code.begin());
}

// PUSHQ BP; MOVQ SP, BP: since Go 1.21.
bool HasFramePointer(std::span<const uint8_t> code) {
  constexpr uint8_t kInstructions[] = {0x55, 0x48, 0x89, 0xe5};
  return BeginsWith(code, kInstructions);
}

// MOVQ $0, BP: what comes next has no caller that a frame pointer would lead to.
bool ClearsFramePointer(std::span<const uint8_t> code) {
  constexpr uint8_t kInstruction[] = {0x48, 0xc7, 0xc5, 0, 0, 0, 0};
  return BeginsWith(code, kInstruction);
}

const Function* FindRole(const std::vector<Function>& functions, Role role) {
  const auto found = std::ranges::find(functions, role, &Function::role);
  return found == functions.end() ? nullptr : &*found;
}

std::optional<GoFrames> FramesOf(const Function& function, bool has_cgo, const ElfFile& elf) {
  GoFrames frames{.begin = function.begin, .end = function.end};
  switch (function.role) {
    case Role::kCgo:
      return std::nullopt;
    case Role::kExit:
      return frames;
    case Role::kStart:
      return has_cgo ? std::nullopt : std::optional(frames);
    case Role::kSwitch: {
      const std::optional<size_t> switched = FindStackSwitch(CodeOf(function, elf));
      if (!switched || *switched >= function.end - function.begin) return std::nullopt;
      frames.begin += *switched;
      return frames;
    }
    case Role::kCall: {
      const std::vector<uint8_t> bytes = CodeOf(function, elf);
      const std::optional<size_t> there = FindStackSwitch(bytes);
      if (!there || !HasFramePointer(bytes)) return std::nullopt;
      const std::optional<size_t> back = FindStackSwitch(bytes, *there);
      frames.begin += *there;
      if (back) frames.end = function.begin + *back;
      frames.kind = GoFrames::Kind::kSwitched;
      return frames;
    }
    case Role::kGrow: {
      const std::vector<uint8_t> bytes = CodeOf(function, elf);
      const std::optional<size_t> there = FindStackSwitch(bytes);
      if (!there || !ClearsFramePointer(std::span(bytes).subspan(*there))) return std::nullopt;
      frames.begin += *there;
      frames.kind = GoFrames::Kind::kSwitched;
      return frames;
    }
    case Role::kRestorer:
      // No call lies in front of it, but a return address is looked up as if one did.
      if (frames.begin == 0) return std::nullopt;
      --frames.begin;
      frames.kind = GoFrames::Kind::kSignal;
      return frames;
  }
  return std::nullopt;
}

}  // namespace

std::vector<GoFrames> FindGoFrames(const ElfFile& elf, const SectionTable& sections) {
  if (elf.header().e_machine != EM_X86_64) return {};
  const Result<GoFunctionTable> table = FindGoFunctions(elf, sections);
  if (!table || table->format < GoFunctionTable::Format::k1_18) return {};
  const std::vector<Function> functions = FindKnown(elf, *table);
  const Function* const exit = FindRole(functions, Role::kExit);
  if (exit == nullptr || !IsExit(CodeOf(*exit, elf))) return {};

  const bool has_cgo = FindRole(functions, Role::kCgo) != nullptr;
  std::vector<GoFrames> all;
  for (const Function& function : functions) {
    if (const auto frames = FramesOf(function, has_cgo, elf)) all.push_back(*frames);
  }
  std::ranges::sort(all, {}, &GoFrames::begin);
  return all;
}

}  // namespace pyrometer
