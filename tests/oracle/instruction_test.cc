// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/instruction.h"

#include <gtest/gtest.h>

#include <vector>

namespace pyrometer::oracle {
namespace {

struct Case {
  const char* text;
  std::vector<uint8_t> code;
  Instruction instruction = Instruction::kOther;
};

TEST(Instruction, IsClassifiedByWhatItDoesToTheCalls) {
  const std::vector<Case> cases = {
      {"call rel32", {0xE8, 1, 0, 0, 0}, Instruction::kCall},
      {"call *%rax", {0xFF, 0xD0}, Instruction::kCall},
      {"call *%r11", {0x41, 0xFF, 0xD3}, Instruction::kCall},
      {"notrack call *8(%rax)", {0x3E, 0xFF, 0x50, 8}, Instruction::kCall},
      {"data16 addr32 call", {0x66, 0x67, 0xE8, 1, 0, 0, 0}, Instruction::kCall},
      {"ret", {0xC3}, Instruction::kReturn},
      {"rep ret", {0xF3, 0xC3}, Instruction::kReturn},
      {"ret $8", {0xC2, 8, 0}, Instruction::kReturn},
      {"jmp *%rax", {0xFF, 0xE0}, Instruction::kJump},
      {"bnd jmp", {0xF2, 0xE9, 1, 0, 0, 0}, Instruction::kJump},
      {"jne rel32", {0x0F, 0x85, 1, 0, 0, 0}, Instruction::kJump},
      {"je rel8", {0x74, 2}, Instruction::kJump},
      {"syscall", {0x0F, 0x05}, Instruction::kSystemCall},
      {"push *(%rax)", {0xFF, 0x30}, Instruction::kOther},
      {"inc %eax", {0xFF, 0xC0}, Instruction::kOther},
      {"endbr64", {0xF3, 0x0F, 0x1E, 0xFA}, Instruction::kOther},
      {"mov %rsp, %rbp", {0x48, 0x89, 0xE5}, Instruction::kOther},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Classify(std::as_bytes(std::span(c.code))), c.instruction) << c.text;
  }
}

TEST(Instruction, CutOffIsOther) {
  for (const std::vector<uint8_t>& code :
       {std::vector<uint8_t>{}, {0xFF}, {0x0F}, {0x48}, {0x66, 0x67}}) {
    EXPECT_EQ(Classify(std::as_bytes(std::span(code))), Instruction::kOther);
  }
}

TEST(Instruction, CallIsSeenBeforeAReturnAddress) {
  const std::vector<Case> cases = {
      {"call rel32", {0x90, 0xE8, 1, 2, 3, 4}},
      {"call *%rax", {0x90, 0x90, 0xFF, 0xD0}},
      {"call *8(%rax)", {0x90, 0xFF, 0x50, 8}},
      {"call *8(%rsp)", {0xFF, 0x54, 0x24, 8}},
      {"call *0x1234(%rip)", {0xFF, 0x15, 0x34, 0x12, 0, 0}},
      {"call *0x1234(%rax,%rbx,8)", {0xFF, 0x94, 0xD8, 0x34, 0x12, 0, 0}},
      {"call *0x1234", {0xFF, 0x14, 0x25, 0x34, 0x12, 0, 0}},
  };
  for (const Case& c : cases) {
    EXPECT_TRUE(EndsInCall(std::as_bytes(std::span(c.code)))) << c.text;
  }
  const std::vector<uint8_t> jump = {0x90, 0x90, 0xE9, 1, 2, 3, 4};
  EXPECT_FALSE(EndsInCall(std::as_bytes(std::span(jump))));
  EXPECT_FALSE(EndsInCall({}));
}

}  // namespace
}  // namespace pyrometer::oracle
