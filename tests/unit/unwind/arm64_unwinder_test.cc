// SPDX-License-Identifier: Apache-2.0
// The unwinder's rules for arm64, which are judged on whatever machine this runs on: the kernel
// side's source, compiled as for that machine, over a few words of a stack.
#define __TARGET_ARCH_arm64
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/abi/unwind.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#include "cursor.bpf.h"

namespace pyrometer {
namespace {

using Words = std::map<uint64_t, uint64_t>;

// What the unwinder works on. Its names are the kernel side's.
struct pyro_walk {
  pyro_cursor cursor;
  __u64 window[PYRO_STACK_WINDOW];
  __u64 window_start;
  pyro_unwind_rule caller;
  __u32 user_frames;
  const Words* stack;
  const pyro_unwind_rule* rule;  // for every address
};

#include "unwinder.bpf.h"

long pyro_read_user(pyro_walk* walk, void* out, __u32 size, __u64 address) {
  for (__u32 at = 0; at < size; at += 8) {
    const auto word = walk->stack->find(address + at);
    if (word == walk->stack->end()) return -1;
    std::memcpy(static_cast<char*>(out) + at, &word->second, 8);
  }
  return 0;
}

long pyro_read_code(pyro_walk*, void*, __u32, __u64) {
  return -1;
}

int pyro_find_rule(pyro_walk* walk, __u64, const pyro_unwind_rule** rule) {
  *rule = walk->rule;
  return PYRO_PLACE_OBJECT;
}

void pyro_push_frame(pyro_walk* walk) {
  ++walk->user_frames;
}

constexpr uint64_t kStack = 0x7ffff000;
constexpr uint64_t kFrame = kStack + 0x80;  // the frame pointer
constexpr uint64_t kCode = 0xaaaa00001000;
constexpr uint64_t kCaller = 0xaaaa00002000;
constexpr uint64_t kElsewhere = 0xaaaa00003000;
// As bits 54 to 48 of an address whose bit 55 is 0, and the whole upper byte.
constexpr uint64_t kAuthentication = 0xa55d000000000000;

enum class Position { kLeaf, kCalling };

pyro_unwind_rule Rule(uint8_t reg, int32_t offset, pyro_saved fp, int16_t fp_offset, pyro_saved ra,
                      int16_t ra_offset) {
  return {.kind = PYRO_RULE_REGISTER,
          .cfa_register = reg,
          .fp = static_cast<uint8_t>(fp),
          .ra = static_cast<uint8_t>(ra),
          .cfa_offset = offset,
          .cfa_add = 0,
          .fp_offset = fp_offset,
          .ra_offset = ra_offset,
          .rbx_offset = PYRO_RBX_LOST};
}

pyro_walk WalkAt(Position position, const Words& stack, const pyro_unwind_rule& rule) {
  pyro_walk walk{};
  walk.cursor.pc = kCode;
  walk.cursor.sp = kStack;
  walk.cursor.fp = kFrame;
  walk.cursor.fp_known = 1;
  walk.cursor.has_registers = position == Position::kLeaf ? 1 : 0;
  walk.cursor.registers[9] = kElsewhere;
  walk.cursor.registers[PYRO_REGISTER_LR] = kCaller | kAuthentication;
  walk.window_start = PYRO_NO_WINDOW;
  walk.stack = &stack;
  walk.rule = &rule;
  return walk;
}

struct Step {
  std::string what;
  Position position = Position::kLeaf;
  pyro_unwind_rule rule;
  Words stack;
  int result = PYRO_WALK_ON;
  uint64_t return_address = 0;
  uint64_t sp = 0;
  uint64_t fp = 0;
};

constexpr uint8_t kX29 = 29;
constexpr uint8_t kSp = 31;

std::vector<Step> Steps() {
  const Words record = {{kStack, kFrame + 0x40}, {kStack + 8, kCaller}};
  const Words signed_record = {{kStack, kFrame + 0x40}, {kStack + 8, kCaller | kAuthentication}};
  const Words far_record = {{kFrame, kFrame + 0x40}, {kFrame + 8, kCaller | kAuthentication}};
  const pyro_unwind_rule in_link_register = Rule(kSp, 0, PYRO_SAVED_SAME, 0, PYRO_SAVED_SAME, 0);
  const pyro_unwind_rule by_sp = Rule(kSp, 32, PYRO_SAVED_AT_CFA, -32, PYRO_SAVED_AT_CFA, -24);
  const pyro_unwind_rule by_fp = Rule(kX29, 0x10000, PYRO_SAVED_AT_FP, 0, PYRO_SAVED_AT_FP, 8);
  const pyro_unwind_rule only_ra = Rule(kSp, 16, PYRO_SAVED_SAME, 0, PYRO_SAVED_AT_CFA, -8);
  const pyro_unwind_rule in_x9 = Rule(kSp, 16, PYRO_SAVED_SAME, 0, PYRO_SAVED_IN_REGISTER, 9);
  return {
      {"a leaf that saves nothing",
       Position::kLeaf,
       in_link_register,
       {},
       PYRO_WALK_ON,
       kCaller,
       kStack,
       kFrame},
      {"no leaf, and nothing saved",
       Position::kCalling,
       Rule(kSp, 16, PYRO_SAVED_SAME, 0, PYRO_SAVED_SAME, 0),
       {},
       PYRO_END_UNSUPPORTED,
       0,
       0,
       0},
      {"a frame record", Position::kCalling, by_sp, record, PYRO_WALK_ON, kCaller, kStack + 32,
       kFrame + 0x40},
      {"a signed return address", Position::kCalling, by_sp, signed_record, PYRO_WALK_ON, kCaller,
       kStack + 32, kFrame + 0x40},
      {"a record at the other end of a large frame", Position::kCalling, by_fp, far_record,
       PYRO_WALK_ON, kCaller, kFrame + 0x10000, kFrame + 0x40},
      {"a return address without a frame pointer", Position::kCalling, only_ra, record,
       PYRO_WALK_ON, kCaller, kStack + 16, kFrame},
      {"a return address in another register",
       Position::kLeaf,
       in_x9,
       {},
       PYRO_WALK_ON,
       kElsewhere,
       kStack + 16,
       kFrame},
      {"a stack that cannot be read", Position::kCalling, by_sp, {}, PYRO_END_UNREADABLE, 0, 0, 0},
      {"a null return address",
       Position::kCalling,
       only_ra,
       {{kStack + 8, 0}},
       PYRO_END_COMPLETE,
       0,
       0,
       0},
  };
}

TEST(Arm64Unwinder, StepsByRule) {
  for (const Step& step : Steps()) {
    SCOPED_TRACE(step.what);
    pyro_walk walk = WalkAt(step.position, step.stack, step.rule);
    EXPECT_EQ(pyro_step(&walk), step.result);
    if (step.result != PYRO_WALK_ON) continue;
    EXPECT_EQ(walk.cursor.pc, step.return_address - 1);
    EXPECT_EQ(walk.cursor.sp, step.sp);
    EXPECT_EQ(walk.cursor.fp, step.fp);
    EXPECT_EQ(walk.cursor.fp_known, 1);
  }
}

TEST(Arm64Unwinder, StepsByFramePointer) {
  const Words stack = {{kFrame, kFrame + 0x40}, {kFrame + 8, kCaller | kAuthentication}};
  pyro_walk walk = WalkAt(Position::kCalling, stack, {});
  walk.rule = nullptr;
  EXPECT_EQ(pyro_step(&walk), PYRO_WALK_ON);
  EXPECT_EQ(walk.cursor.pc, kCaller - 1);
  EXPECT_EQ(walk.cursor.sp, kFrame + 16);
  EXPECT_EQ(walk.cursor.fp, kFrame + 0x40);
}

// struct rt_sigframe of the kernel's arch/arm64/kernel/signal.c: siginfo (128 bytes), ucontext with
// its sigcontext at 176: fault_address, regs[31], sp, pc.
TEST(Arm64Unwinder, StepsOutOfASignalFrameToTheVeryInstruction) {
  Words stack;
  const uint64_t registers = kStack + 128 + 176 + 8;
  for (uint64_t i = 0; i < 31; ++i) stack[registers + i * 8] = 0x1000 + i;
  stack[registers + 29 * 8] = kFrame + 0x40;
  stack[registers + 30 * 8] = kCaller | kAuthentication;
  stack[registers + 31 * 8] = kStack + 0x800;
  stack[registers + 32 * 8] = kElsewhere;
  pyro_unwind_rule rule{};
  rule.kind = PYRO_RULE_SIGNAL;
  pyro_walk walk = WalkAt(Position::kCalling, stack, rule);
  EXPECT_EQ(pyro_step(&walk), PYRO_WALK_ON);
  EXPECT_EQ(walk.cursor.pc, kElsewhere);
  EXPECT_EQ(walk.cursor.sp, kStack + 0x800);
  EXPECT_EQ(walk.cursor.fp, kFrame + 0x40);

  // It may have interrupted a leaf.
  rule = Rule(kSp, 0, PYRO_SAVED_SAME, 0, PYRO_SAVED_SAME, 0);
  EXPECT_EQ(pyro_step(&walk), PYRO_WALK_ON);
  EXPECT_EQ(walk.cursor.pc, kCaller - 1);
  EXPECT_EQ(walk.cursor.sp, kStack + 0x800);
}

// Encodings: Arm Architecture Reference Manual, C6.2.
TEST(Arm64Unwinder, KnowsCallInstructions) {
  const auto code_of = [](uint32_t instruction) {
    std::array<__u8, PYRO_CALL_SITE_BYTES> code{};
    std::memcpy(&code[4], &instruction, sizeof(instruction));
    return code;
  };
  for (const uint32_t call : {0x94000010U, 0x97fffff0U, 0xd63f0100U, 0xd73f0a1fU}) {
    EXPECT_TRUE(pyro_is_call(code_of(call).data())) << std::hex << call;
  }
  for (const uint32_t other : {0x14000010U, 0xd65f03c0U, 0xd61f0100U, 0xd503201fU}) {
    EXPECT_FALSE(pyro_is_call(code_of(other).data())) << std::hex << other;
  }
  EXPECT_EQ(pyro_call_target(code_of(0x94000010).data(), kCode), kCode - 4 + 0x40);
  EXPECT_EQ(pyro_call_target(code_of(0x97fffff0).data(), kCode), kCode - 4 - 0x40);
}

}  // namespace
}  // namespace pyrometer
