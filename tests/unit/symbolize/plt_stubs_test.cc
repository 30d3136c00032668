// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt_stubs.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace pyrometer {
namespace {

constexpr uint64_t kBegin = 0x1000;

std::vector<std::byte> Bytes(std::string_view hex) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

std::vector<PltStub> StubsIn(std::string_view hex, PltPlace place = PltPlace::kSection,
                             uint16_t machine = EM_X86_64) {
  return FindPltStubs(Bytes(hex), ElfAddress(kBegin), machine, place);
}

TEST(PltStubs, OfEveryLinkerAreKnown) {
  struct Case {
    const char* what;
    const char* code;
    uint64_t slot;
  };
  const Case cases[] = {
      {"lazy", "ff25 00010000 68 03000000 e9 b0ffffff", 0x1106},
      {"in front", "ff25 00ffffff 68 03000000 e9 b0ffffff", 0xf06},
      {"bound", "ff25 00010000 6690", 0x1106},
      {"bound, with MPX", "f2ff25 00010000 90", 0x1107},
      {"IBT, with MPX", "f30f1efa f2ff25 00010000 0f1f440000", 0x110b},
      {"IBT", "f30f1efa ff25 00010000 660f1f440000", 0x110a},
      {"mold", "f30f1efa 41bb 05000000 ff25 00010000", 0x1110},
      {"mold, bound", "f30f1efa ff25 00010000 cccccccccccc", 0x110a},
      {"retpoline", "4c8b1d 00010000 e8 10000000 e9 20000000 68 01000000 e9 c0ffffff cccccccccc",
       0x1107},
      {"retpoline, bound", "4c8b1d 00010000 e9 10000000 cccccccc", 0x1107},
  };
  for (const Case& c : cases) {
    const std::vector<PltStub> stubs = StubsIn(c.code);
    ASSERT_EQ(stubs.size(), 1U) << c.what;
    EXPECT_EQ(stubs[0].slot, ElfAddress(c.slot)) << c.what;
    EXPECT_EQ(stubs[0].range.begin, ElfAddress(kBegin)) << c.what;
    EXPECT_EQ(stubs[0].range.end, ElfAddress(kBegin + Bytes(c.code).size())) << c.what;
  }
}

TEST(PltStubs, OfArm64AreKnown) {
  struct Case {
    const char* what;
    const char* code;  // adrp x16, 0x11000; ldr x17, [x16, 0x18]; add; br
    size_t size;
    uint64_t slot;
  };
  const Case cases[] = {
      {"plain", "90000090 110e40f9 10620091 20021fd6", 16, 0x11018},
      {"bti, not needed", "90000090 110e40f9 10620091 20021fd6 1f2003d5 1f2003d5", 24, 0x11018},
      {"in front", "f0ffff90 110e40f9 10620091 20021fd6", 16, 0xffffffffffffd018},
      {"bti", "5f2403d5 90000090 110e40f9 10620091 20021fd6 1f2003d5", 24, 0x11018},
      {"pac", "90000090 110e40f9 10620091 9f2103d5 20021fd6 1f2003d5", 24, 0x11018},
      {"bti and pac", "5f2403d5 90000090 110e40f9 10620091 9f2103d5 20021fd6", 24, 0x11018},
  };
  for (const Case& c : cases) {
    const std::vector<PltStub> stubs = StubsIn(c.code, PltPlace::kSection, EM_AARCH64);
    ASSERT_EQ(stubs.size(), 1U) << c.what;
    EXPECT_EQ(stubs[0].slot, ElfAddress(c.slot)) << c.what;
    EXPECT_EQ(stubs[0].range.end, ElfAddress(kBegin + c.size)) << c.what;
  }
}

TEST(PltStubs, AreNotWhatLeadsToTheDynamicLinker) {
  EXPECT_TRUE(StubsIn("ff35 e22f0000 ff25 e42f0000 0f1f4000").empty());
  EXPECT_TRUE(StubsIn("ff35 e22f0000 f2ff25 e32f0000 0f1f00").empty());
  EXPECT_TRUE(StubsIn("f30f1efa 68 00000000 f2e9 e1ffffff 90").empty());
  EXPECT_TRUE(StubsIn("f30f1efa 68 00000000 e9 e2ffffff 6690").empty());
}

TEST(PltStubs, CutOffAreNone) {
  const std::vector<std::byte> code = Bytes("ff25 00010000 68 03000000 e9 b0ffffff");
  for (size_t size = 0; size < code.size(); ++size) {
    const std::span<const std::byte> part = std::span(code).first(size);
    EXPECT_TRUE(FindPltStubs(part, ElfAddress(kBegin), EM_X86_64, PltPlace::kSection).empty());
    EXPECT_TRUE(FindPltStubs(part, ElfAddress(kBegin), EM_AARCH64, PltPlace::kSection).empty());
  }
}

// The end of a function that tail-calls through the same slots, and a nop.
TEST(PltStubs, AmongOtherCodeAreWholeAndAligned) {
  const std::string lazy = "ff25 00010000 68 03000000 e9 b0ffffff";
  const std::string tail_call = "9090909090909090 ff25 00010000 6690";
  EXPECT_EQ(StubsIn(tail_call, PltPlace::kSection).size(), 1U);
  EXPECT_TRUE(StubsIn(tail_call, PltPlace::kAnywhere).empty());
  EXPECT_EQ(StubsIn(tail_call + lazy, PltPlace::kAnywhere).size(), 1U);
  EXPECT_TRUE(StubsIn("9090909090909090" + lazy, PltPlace::kAnywhere).empty());
}

}  // namespace
}  // namespace pyrometer
