// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt_stubs.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace pyrometer {
namespace {

// A stub of x86_64 as pairs of hexadecimal digits: ".." is any byte, "ss" one of the slot's
// address, relative to the end of these four.
constexpr std::string_view kStubShapes[] = {
    // jmp *slot; push index; jmp to the beginning of the table
    "ff25ssssssss68........e9........",
    // jmp *slot, bound when it is loaded (.plt.got)
    "ff25ssssssss6690",
    "f2ff25ssssssss90",
    // endbr64; jmp *slot
    "f30f1efaf2ff25ssssssss0f1f440000",
    "f30f1efaff25ssssssss660f1f440000",
    // mold: endbr64; mov index, %r11d; jmp *slot, or without the index
    "f30f1efa41bb........ff25ssssssss",
    "f30f1efaff25sssssssscccccccccccc",
    // lld -z retpolineplt: mov slot, %r11; call or jmp to what jumps there
    "4c8b1dsssssssse8........e9........68........e9........cccccccccc",
    "4c8b1dsssssssse9........cccccccc",
};
constexpr uint64_t kStubStep = 8;        // they are aligned to
constexpr uint64_t kWholeStub = 16;      // bytes of all but the smallest
constexpr uint64_t kArmInstruction = 4;  // an instruction of arm64

struct FoundStub {
  uint64_t size = 0;
  ElfAddress slot;
};

std::byte ByteOfDigits(std::string_view digits) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  return static_cast<std::byte>(value(digits[0]) * 16 + value(digits[1]));
}

template <typename T>
T LoadAs(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

bool MatchesShape(std::span<const std::byte> code, std::string_view shape) {
  if (code.size() < shape.size() / 2) return false;
  for (size_t i = 0; i < shape.size(); i += 2) {
    if (shape[i] == '.' || shape[i] == 's') continue;
    if (code[i / 2] != ByteOfDigits(shape.substr(i, 2))) return false;
  }
  return true;
}

std::optional<FoundStub> StubOfX86(std::span<const std::byte> code, uint64_t address) {
  const auto shape = std::ranges::find_if(
      kStubShapes, [code](std::string_view candidate) { return MatchesShape(code, candidate); });
  if (shape == std::end(kStubShapes)) return std::nullopt;
  const size_t at = shape->find('s') / 2;
  const auto distance = static_cast<int64_t>(LoadAs<int32_t>(code.subspan(at)));
  const uint64_t next = address + at + sizeof(int32_t);
  return FoundStub{.size = shape->size() / 2, .slot = ElfAddress(next + distance)};
}

constexpr uint32_t kArmBtiC = 0xd503245f;
constexpr uint32_t kArmNop = 0xd503201f;
constexpr uint32_t kArmAuthenticate = 0xd503219f;  // autia1716
constexpr uint32_t kArmBranch = 0xd61f0220;        // br x17

// adrp x16, page
bool IsPageOf16(uint32_t instruction) {
  return (instruction & 0x9f00001f) == 0x90000010;
}
// ldr x17, [x16, offset]
bool IsLoadOf17(uint32_t instruction) {
  return (instruction & 0xffc003ff) == 0xf9400211;
}
// add x16, x16, offset
bool IsSum(uint32_t instruction) {
  return (instruction & 0xffc003ff) == 0x91000210;
}

// The slot that "adrp" at `address` and the "ldr" behind it load from.
ElfAddress SlotOf(uint32_t adrp, uint32_t ldr, uint64_t address) {
  const uint32_t pages = (adrp >> 29 & 3) | (adrp >> 5 & 0x7ffff) << 2;
  const auto distance = static_cast<int64_t>(uint64_t{pages} << 43) >> 31;  // of 21 bits, signed
  return ElfAddress((address & ~uint64_t{0xfff}) + static_cast<uint64_t>(distance) +
                    ((ldr >> 10 & 0xfff) << 3));
}

// [bti c]; adrp; ldr; add; [autia1716]; [nop]; br; [nop]...: of 16 bytes, and in a table with
// branch targets or pointer authentication of 24.
std::optional<FoundStub> StubOfArm64(std::span<const std::byte> code, uint64_t address) {
  constexpr uint64_t kMostInstructions = 6;  // instructions
  const uint64_t room = std::min<uint64_t>(code.size() / kArmInstruction, kMostInstructions);
  const auto word = [&](uint64_t i) {
    return i < room ? LoadAs<uint32_t>(code.subspan(i * kArmInstruction)) : 0;
  };
  uint64_t at = word(0) == kArmBtiC ? 1 : 0;
  if (!IsPageOf16(word(at)) || !IsLoadOf17(word(at + 1)) || !IsSum(word(at + 2))) {
    return std::nullopt;
  }
  const ElfAddress slot = SlotOf(word(at), word(at + 1), address + at * kArmInstruction);
  at += 3;
  while (word(at) == kArmAuthenticate || word(at) == kArmNop) ++at;
  if (word(at) != kArmBranch) return std::nullopt;
  ++at;
  while (word(at) == kArmNop) ++at;
  return FoundStub{.size = at * kArmInstruction, .slot = slot};
}

}  // namespace

std::vector<PltStub> FindPltStubs(std::span<const std::byte> code, ElfAddress begin,
                                  uint16_t machine, PltPlace place) {
  const bool is_arm = machine == EM_AARCH64;
  const uint64_t step = is_arm                        ? kArmInstruction
                        : place == PltPlace::kSection ? kStubStep
                                                      : kWholeStub;
  std::vector<PltStub> stubs;
  for (uint64_t at = -begin.value() % step; at < code.size();) {
    const uint64_t address = begin.value() + at;
    const auto rest = code.subspan(at);
    const std::optional<FoundStub> found =
        is_arm ? StubOfArm64(rest, address) : StubOfX86(rest, address);
    const bool counts = found && (place == PltPlace::kSection || found->size >= kWholeStub);
    if (counts) {
      stubs.push_back(
          {.range = {ElfAddress(address), ElfAddress(address + found->size)}, .slot = found->slot});
    }
    at += counts ? found->size : step;
  }
  return stubs;
}

}  // namespace pyrometer
