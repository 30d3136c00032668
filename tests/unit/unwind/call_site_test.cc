// SPDX-License-Identifier: Apache-2.0
#include "unwind/call_site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace pyrometer {
namespace {

constexpr Address kReturn(0x401000);

std::optional<CallSite> Before(const std::vector<int>& bytes) {
  std::array<std::byte, kCallSiteBytes> code;
  code.fill(std::byte{0x90});
  std::ranges::transform(bytes, code.end() - static_cast<long>(bytes.size()),
                         [](int byte) { return static_cast<std::byte>(byte); });
  return CallSiteBefore(kReturn, code);
}

#if defined(__x86_64__)

TEST(CallSite, KnowsWhereADirectCallLeads) {
  EXPECT_EQ(Before({0xe8, 0x10, 0, 0, 0})->target, Address(0x401010));
  EXPECT_EQ(Before({0xe8, 0xf0, 0xff, 0xff, 0xff})->target, Address(0x400ff0));
}

TEST(CallSite, KnowsEachFormOfAnIndirectCall) {
  const std::vector<std::vector<int>> calls = {
      {0xff, 0xd0},                          // *%rax
      {0x41, 0xff, 0xd3},                    // *%r11
      {0xff, 0x10},                          // *(%rax)
      {0xff, 0x14, 0xc1},                    // *(%rcx,%rax,8)
      {0xff, 0x50, 0x18},                    // *0x18(%rax)
      {0x41, 0xff, 0x54, 0x24, 0x08},        // *0x8(%r12)
      {0xff, 0x90, 0x10, 0x02, 0, 0},        // *0x210(%rax)
      {0xff, 0x94, 0xc8, 0x10, 0x02, 0, 0},  // *0x210(%rax,%rcx,8)
      {0xff, 0x15, 0x10, 0x02, 0, 0},        // *0x210(%rip)
      {0xff, 0x14, 0xc5, 0x10, 0x02, 0, 0},  // *0x210(,%rax,8)
      {0xff, 0x54, 0x24, 0x10},              // *0x10(%rsp)
      // Those whose last bytes could be the beginning of one.
      {0xff, 0x92, 0x10, 0x02, 0xff, 0x15},        // *0x15ff0210(%rdx)
      {0xff, 0x15, 0x10, 0x02, 0xff, 0x14},        // *0x14ff0210(%rip)
      {0xff, 0x94, 0xc8, 0x10, 0xff, 0x90, 0xff},  // *0xff90ff10(%rax,%rcx,8)
  };
  for (const std::vector<int>& call : calls) {
    const std::optional<CallSite> site = Before(call);
    ASSERT_TRUE(site.has_value()) << call.size();
    EXPECT_FALSE(site->target.has_value());
  }
}

TEST(CallSite, TakesNothingElseForACall) {
  const std::vector<std::vector<int>> others = {
      {0x90},
      {0xff, 0xe0},              // jmp *%rax
      {0xff, 0x30},              // push (%rax)
      {0xe9, 0x10, 0, 0, 0},     // jmp
      {0xff, 0x50, 0x18, 0x90},  // a call and something after it
      {0xff, 0x14},              // its SIB byte is missing
  };
  for (const std::vector<int>& code : others) EXPECT_FALSE(Before(code).has_value());
}

#else

TEST(CallSite, KnowsBranchesWithLink) {
  EXPECT_EQ(Before({0x04, 0, 0, 0x94})->target, Address(0x40100c));
  EXPECT_TRUE(Before({0, 0, 0x3f, 0xd6}).has_value());
  EXPECT_FALSE(Before({0, 0, 0x1f, 0xd6}).has_value());  // br x0
}

#endif

}  // namespace
}  // namespace pyrometer
