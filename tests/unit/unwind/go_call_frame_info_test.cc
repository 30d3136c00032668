// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_call_frame_info.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/made_go_program.h"
#include "tests/unit/unwind/printed_rule.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

constexpr uint64_t kGoText = MadeGoProgram::kText;
constexpr uint64_t kSize = MadeGoProgram::kSize;

std::string FrameText(uint64_t offset) {
  return "cfa=r7+" + std::to_string(offset) + " fp=same ra=[cfa-8] rbx=same";
}

// 0 up to 4, then 24 up to 240, then 0 again.
const DwarfBytes kDepths = {2, 4, 0x30, 0xec, 1, 0x2f, 0x10, 0};

UnwindTable Compiled(const MadeGoProgram& program) {
  Result<UnwindTable> table = CompileUnwindTable(program.Open());
  EXPECT_TRUE(table.has_value()) << table.error().message();
  return table ? *std::move(table) : UnwindTable();
}

TEST(GoCallFrameInfo, FollowsTheDepthOfTheStack) {
  using Format = GoFunctionTable::Format;
  for (const Format format : {Format::kGo2, Format::kGo16, Format::kGo18, Format::kGo20}) {
    const UnwindTable table = Compiled({.names = {"main.main", "main.work", "main.leaf"},
                                        .format = format,
                                        .stack_depths = {kDepths, kDepths, {2, 0x80, 2, 0}}});
    EXPECT_EQ(table.functions, 3U) << static_cast<int>(format);
    EXPECT_EQ(table.bad_functions, 0U);
    EXPECT_FALSE(table.sparse);
    for (const uint64_t function : {kGoText, kGoText + kSize}) {
      EXPECT_EQ(RuleTextAt(table, function), FrameText(8));
      EXPECT_EQ(RuleTextAt(table, function + 3), FrameText(8));
      EXPECT_EQ(RuleTextAt(table, function + 4), FrameText(32));
      EXPECT_EQ(RuleTextAt(table, function + 239), FrameText(32));
      EXPECT_EQ(RuleTextAt(table, function + 240), FrameText(8));
    }
    EXPECT_EQ(RuleTextAt(table, kGoText + 2 * kSize), FrameText(8));
    EXPECT_EQ(RuleTextAt(table, kGoText + 3 * kSize), "none");
  }
}

// PUSHQ BP; MOVQ SP, BP in front of the second row.
TEST(GoCallFrameInfo, TellsWhereTheFramePointerIsSaved) {
  const DwarfBytes push = {0x55, 0x48, 0x89, 0xe5};
  const DwarfBytes depths = {2, 4, 0x10, 4, 0x20, 0x74, 0x2f, 0x84, 1, 0};
  const UnwindTable table = Compiled({.names = {"main.with", "main.without"},
                                      .code = {{3, push}},
                                      .stack_depths = {depths, depths}});
  const auto with = [](uint64_t offset) {
    return "cfa=r7+" + std::to_string(offset) + " fp=[cfa-16] ra=[cfa-8] rbx=same";
  };
  EXPECT_EQ(RuleTextAt(table, kGoText + 3), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + 4), with(16));
  EXPECT_EQ(RuleTextAt(table, kGoText + 8), with(32));
  EXPECT_EQ(RuleTextAt(table, kGoText + 124), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + kSize + 4), FrameText(16));
}

// PUSHQ BP; MOVQ SP, BP; ...; POPQ BP; RET; ...: around the parts that have a frame, the depth
// counts. Without a frame nothing leads back from another stack.
TEST(GoCallFrameInfo, FollowsTheFramePointerToAnotherStack) {
  const DwarfBytes depths = {2, 1, 0x10, 0x20, 0x0f, 0xdf, 1, 0};  // 0, 8 from 1 on, 0 from 33 on
  const UnwindTable table =
      Compiled({.names = {"runtime.systemstack", "runtime.goexit", "runtime.morestack"},
                .code = {{0, {0x55, 0x48, 0x89, 0xe5}},
                         {0x20, {0x5d, 0xc3}},
                         {kSize + 1, {0xe8, 1, 2, 3, 4}},
                         {2 * kSize + 8, {0x48, 0x8b, 0x63, 0x38}}},
                .stack_depths = {depths, {2, 0x80, 2, 0}, {2, 0x80, 2, 0}}});
  const char* const switched = "switched cfa=r6+16 fp=[cfa-16] ra=[cfa-8] rbx=same";
  EXPECT_EQ(RuleTextAt(table, kGoText), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + 3), "cfa=r7+16 fp=[cfa-16] ra=[cfa-8] rbx=same");
  EXPECT_EQ(RuleTextAt(table, kGoText + 4), switched);
  EXPECT_EQ(RuleTextAt(table, kGoText + 0x20), switched);
  EXPECT_EQ(RuleTextAt(table, kGoText + 0x21), FrameText(8)) << "the return";
  EXPECT_EQ(RuleTextAt(table, kGoText + 0x22), switched);
  EXPECT_EQ(RuleTextAt(table, kGoText + 2 * kSize + 11), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + 2 * kSize + 12), FrameText(9));
}

TEST(GoCallFrameInfo, LeavesOutWhatItKnowsNothingOf) {
  const DwarfBytes cut = {2, 4, 0};          // as behind it there is padding
  const DwarfBytes negative = {1, 0x80, 2};  // would begin above its return address
  const UnwindTable table =
      Compiled({.names = {"main.cut", "main.negative", "main.whole", "main.without"},
                .entry = kGoText + 3 * kSize,
                .stack_depths = {cut, negative, kDepths}});
  EXPECT_EQ(table.functions, 2U);
  EXPECT_EQ(RuleTextAt(table, kGoText + 3), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + 4), "none");
  EXPECT_EQ(RuleTextAt(table, kGoText + kSize), "none");
  EXPECT_EQ(RuleTextAt(table, kGoText + 2 * kSize), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + 3 * kSize), "end")
      << "the entry point, of which nobody says";
}

TEST(GoCallFrameInfo, IsOnlyOfProgramsForX86) {
  const UnwindTable table =
      Compiled({.names = {"main.main"}, .machine = EM_AARCH64, .stack_depths = {{2, 0x80, 2, 0}}});
  EXPECT_TRUE(table.empty());
}

// What the runtime's own functions do to stacks comes first.
TEST(GoCallFrameInfo, YieldsToWhatIsKnownOfTheRuntime) {
  const UnwindTable table = Compiled({.names = {"main.main", "runtime.goexit"},
                                      .code = {{kSize + 1, {0xe8, 1, 2, 3, 4}}},
                                      .stack_depths = {kDepths, {2, 0x80, 2, 0}}});
  EXPECT_EQ(RuleTextAt(table, kGoText), FrameText(8));
  EXPECT_EQ(RuleTextAt(table, kGoText + kSize), "end");
}

TEST(GoCallFrameInfo, SurvivesATableThatIsDamaged) {
  const std::vector<std::byte> image = MadeGoProgram{
      .names = {"main.main", "main.work"},
      .stack_depths = {kDepths, kDepths}}.Image();
  for (size_t at = 0; at < image.size(); ++at) {
    std::vector<std::byte> damaged = image;
    damaged[at] ^= std::byte{0xff};
    const auto elf = ElfFile::FromBytes(std::move(damaged));
    if (!elf) continue;
    const Result<UnwindTable> table = CompileUnwindTable(*elf);
    if (table) {
      EXPECT_LE(table->functions, 2U);
    }
  }
}

}  // namespace
}  // namespace pyrometer
