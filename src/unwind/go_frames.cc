// SPDX-License-Identifier: Apache-2.0
// Format: the Go distribution's src/runtime/symtab.go (pcHeader, functab) and runtime2.go (_func).
// What the functions do: src/runtime/asm_amd64.s.
#include "unwind/go_frames.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "binary/segments.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxTable = size_t{64} << 20;
constexpr uint64_t kMaxGoFunctions = 2'000'000;
constexpr size_t kLongest = 4096;
constexpr size_t kMostFound = 64;  // every name is there once

enum class Role : uint8_t {
  kEntry,     // lies at the entry point
  kExit,      // outermost of a goroutine; tells whether all are where the table says
  kCgo,       // only there in programs with cgo
  kStart,     // outermost; with cgo, threads are C's, and so are the frames above
  kSwitch,    // outermost once it stands on the thread's own stack
  kRestorer,  // signal handlers return to its first instruction
};

struct KnownFunction {
  std::string_view name;
  Role role;
};

constexpr KnownFunction kFunctions[] = {
    {"_rt0_amd64_linux", Role::kEntry},
    {"crosscall2", Role::kCgo},
    {"runtime.goexit", Role::kExit},
    {"runtime.mcall", Role::kSwitch},
    {"runtime.mstart", Role::kStart},
    {"runtime.rt0_go", Role::kStart},
    {"runtime.sigreturn", Role::kRestorer},  // until Go 1.20
    {"runtime.sigreturn__sigaction", Role::kRestorer},
};

// Of the text, as offsets or addresses.
struct Function {
  uint64_t begin = 0;
  uint64_t end = 0;
  Role role;
};

class Pclntab {
 public:
  explicit Pclntab(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // False if it is none, or an older one.
  bool ReadHeader() {
    constexpr uint32_t kGo118 = 0xfffffff0;
    constexpr uint32_t kGo120 = 0xfffffff1;
    constexpr uint8_t kPointerSize = 8;
    const uint32_t magic = At<uint32_t>(0).value_or(0);
    if (magic != kGo118 && magic != kGo120) return false;
    if (At<uint8_t>(7) != kPointerSize) return false;
    const auto count = At<uint64_t>(8);
    const auto names = At<uint64_t>(32);
    const auto functions = At<uint64_t>(64);
    if (!count || !names || !functions || *count > kMaxGoFunctions) return false;
    count_ = *count;
    names_ = *names;
    functions_ = *functions;
    return names_ <= bytes_.size() && functions_ <= bytes_.size();
  }

  // Those of kFunctions; offsets in the text.
  std::vector<Function> Find() const {
    std::vector<Function> found;
    for (uint64_t i = 0; i < count_ && found.size() < kMostFound; ++i) {
      const uint64_t entry = functions_ + i * kEntrySize;
      const auto begin = At<uint32_t>(entry);
      const auto function = At<uint32_t>(entry + 4);
      const auto end = At<uint32_t>(entry + kEntrySize);
      if (!begin || !function || !end) break;
      const auto name = At<uint32_t>(functions_ + *function + 4);
      if (!name || *begin >= *end) continue;
      for (const KnownFunction& known : kFunctions) {
        if (!HasName(*name, known.name)) continue;
        found.push_back({.begin = *begin, .end = *end, .role = known.role});
      }
    }
    return found;
  }

 private:
  static constexpr uint64_t kEntrySize = 8;

  template <typename T>
  std::optional<T> At(uint64_t position) const {
    if (position > bytes_.size() || bytes_.size() - position < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position, sizeof(T));
    return value;
  }

  bool HasName(uint32_t offset, std::string_view name) const {
    const uint64_t position = names_ + offset;
    const std::optional<uint8_t> end = At<uint8_t>(position + name.size());
    return end && *end == 0 && std::memcmp(bytes_.data() + position, name.data(), name.size()) == 0;
  }

  std::span<const std::byte> bytes_;
  uint64_t count_ = 0;
  uint64_t names_ = 0;
  uint64_t functions_ = 0;
};

std::vector<uint8_t> CodeOf(const Function& function, const MemoryReader& code) {
  std::vector<uint8_t> bytes(std::min<uint64_t>(function.end - function.begin, kLongest));
  if (!code(Address(function.begin), std::as_writable_bytes(std::span(bytes)))) bytes.clear();
  return bytes;
}

// NOP; CALL goexit1; NOP.
bool IsExit(std::span<const uint8_t> code) {
  constexpr uint8_t kNop = 0x90;
  constexpr uint8_t kCall = 0xe8;
  return code.size() > 6 && code[0] == kNop && code[1] == kCall && code[6] == kNop;
}

// Behind MOVQ n(R14), SP: R14 holds the goroutine, which knows its stack.
std::optional<size_t> FindStackSwitch(std::span<const uint8_t> code) {
  constexpr uint8_t kInstruction[] = {0x49, 0x8b, 0x66};  // and n
  const auto found =
      std::search(code.begin(), code.end(), std::begin(kInstruction), std::end(kInstruction));
  if (found == code.end()) return std::nullopt;
  return static_cast<size_t>(found - code.begin()) + std::size(kInstruction) + 1;
}

const Function* FindRole(const std::vector<Function>& functions, Role role) {
  const auto found = std::ranges::find(functions, role, &Function::role);
  return found == functions.end() ? nullptr : &*found;
}

std::optional<GoFrames> FramesOf(const Function& function, bool has_cgo, const MemoryReader& code) {
  GoFrames frames{.begin = function.begin, .end = function.end};
  switch (function.role) {
    case Role::kEntry:
    case Role::kCgo:
      return std::nullopt;
    case Role::kExit:
      return frames;
    case Role::kStart:
      return has_cgo ? std::nullopt : std::optional(frames);
    case Role::kSwitch: {
      const std::optional<size_t> switched = FindStackSwitch(CodeOf(function, code));
      if (!switched || *switched >= function.end - function.begin) return std::nullopt;
      frames.begin += *switched;
      return frames;
    }
    case Role::kRestorer:
      // No call lies in front of it, but a return address is looked up as if one did.
      --frames.begin;
      frames.kind = GoFrames::Kind::kSignal;
      return frames;
  }
  return std::nullopt;
}

}  // namespace

std::vector<GoFrames> ReadGoFrames(std::span<const std::byte> pclntab, uint64_t entry,
                                   const MemoryReader& code) {
  Pclntab table(pclntab);
  if (!table.ReadHeader()) return {};
  std::vector<Function> functions = table.Find();
  const Function* const first = FindRole(functions, Role::kEntry);
  if (first == nullptr || first->begin >= entry) return {};
  const uint64_t text = entry - first->begin;
  constexpr uint64_t kMostText = std::numeric_limits<uint32_t>::max();
  if (text > std::numeric_limits<uint64_t>::max() - kMostText) return {};
  for (Function& function : functions) {
    function.begin += text;
    function.end += text;
  }
  const Function* const exit = FindRole(functions, Role::kExit);
  if (exit == nullptr || !IsExit(CodeOf(*exit, code))) return {};

  const bool has_cgo = FindRole(functions, Role::kCgo) != nullptr;
  std::vector<GoFrames> all;
  for (const Function& function : functions) {
    if (const auto frames = FramesOf(function, has_cgo, code)) all.push_back(*frames);
  }
  std::ranges::sort(all, {}, &GoFrames::begin);
  return all;
}

std::vector<GoFrames> FindGoFrames(const ElfFile& elf, const SectionTable& sections) {
  if (elf.header().e_machine != EM_X86_64) return {};
  const Section* section = sections.Find(".gopclntab");
  if (section == nullptr) section = sections.Find(".data.rel.ro.gopclntab");
  if (section == nullptr) return {};
  const Result<std::vector<std::byte>> table = ReadSection(elf, *section, kMaxTable);
  if (!table) return {};
  return ReadGoFrames(*table, elf.header().e_entry, [&](Address address, std::span<std::byte> out) {
    const std::optional<FileOffset> offset =
        ToFileOffset(elf.segments(), ElfAddress(address.value()));
    return offset && elf.bytes().Read(offset->value(), out).has_value();
  });
}

}  // namespace pyrometer
