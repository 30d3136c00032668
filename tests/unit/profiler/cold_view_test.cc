// SPDX-License-Identifier: Apache-2.0
#include "profiler/cold_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/unit/unwind/table_rules.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr ObjectId kProgram(3);
constexpr ObjectId kBare(4);  // without call frame information
constexpr uint64_t kStack = 0x7ffc00000000;
#if defined(__x86_64__)
constexpr size_t kFramePointer = 6;
#else
constexpr size_t kFramePointer = 29;
#endif

// One function in its page, whose frame has `size` bytes; and the outermost one from 0x8000 on.
std::shared_ptr<const UnwindTable> TableWithFrames(int32_t size) {
  auto table = std::make_shared<UnwindTable>();
  table->rules = {pyro_unwind_rule{}, FrameRule(PYRO_RULE_REGISTER, kStackPointer, size),
                  RuleOfKind(PYRO_RULE_END)};
  table->rows = {{.pc_low = 0, .rule = 1}, {.pc_low = 0x8000, .rule = 2}};
  table->pages = {{0, 2}};
  return table;
}

class MadeTables : public UnwindTableSource {
 public:
  std::shared_ptr<const UnwindTable> Of(ObjectId object) override {
    if (object == pending) return nullptr;
    const auto table = tables.find(object);
    return table == tables.end() ? std::make_shared<UnwindTable>() : table->second;
  }
  Code ReadCode(ObjectId /*object*/, ElfAddress /*address*/, std::span<std::byte>) override {
    return code;
  }

  bool Has(ObjectId object) const override { return tables.contains(object); }
  bool IsPending(ObjectId object) const override { return object == pending; }
  void CloseFile() override {}

  std::map<ObjectId, std::shared_ptr<const UnwindTable>> tables;
  ObjectId pending = ObjectId(0);
  Code code = Code::kNone;
};

class ColdViewTest : public testing::Test {
 protected:
  ColdViewTest() {
    sample_.pc = Address(0x400100);
    sample_.registers[kStackPointer] = kStack;
    sample_.registers[kFramePointer] = 1;  // none
    tables_.tables[kProgram] = TableWithFrames(16);
  }

  void SetStack(size_t bytes) { sample_.stack.assign(bytes, std::byte{0}); }
  void Put(size_t offset, uint64_t word) {
    std::memcpy(sample_.stack.data() + offset, &word, sizeof(word));
  }
  ColdStack Unwind() { return UnwindColdSample(sample_, &program_, tables_); }

  // The program at 0x400000, a library at 0x500000, anonymous code at 0x600000.
  ProgramMappings program_ = {
      .mappings = {{Address(0x400000), Address(0x410000), kProgram, 0x400000},
                   {Address(0x500000), Address(0x510000), kBare, 0x500000},
                   {Address(0x600000), Address(0x610000), ObjectId(0), 0}},
      .exec_pages = 48,
      .complete = true};
  ColdSample sample_;
  MadeTables tables_;
};

TEST_F(ColdViewTest, UnwindsWithTheMappingsAndTheCopiedStack) {
  SetStack(64);
  Put(8, 0x400200);
  Put(24, 0x408010);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.end, StackEnd::kComplete);
  EXPECT_THAT(stack.frames, ElementsAre(Frame::Object(kProgram, ElfAddress(0x100)),
                                        Frame::Object(kProgram, ElfAddress(0x1ff)),
                                        Frame::Object(kProgram, ElfAddress(0x800f))));
}

TEST_F(ColdViewTest, KeepsTheLeafOfAProcessThatNobodyKnows) {
  SetStack(64);
  const ColdStack stack = UnwindColdSample(sample_, nullptr, tables_);
  EXPECT_EQ(stack.end, StackEnd::kNotReady);
  EXPECT_THAT(stack.frames, ElementsAre(Frame::User(Address(0x400100))));
}

TEST_F(ColdViewTest, TellsAnAddressThatIsNowhereFromOneThatIsNotKnown) {
  SetStack(64);
  Put(8, 0x700010);
  EXPECT_EQ(Unwind().end, StackEnd::kBadReturnAddress);
  program_.complete = false;
  EXPECT_EQ(Unwind().end, StackEnd::kNotReady);
}

TEST_F(ColdViewTest, TellsTheEndOfTheCopyFromAStackThatCannotBeRead) {
  tables_.tables[kProgram] = TableWithFrames(8192);
  SetStack(4096);
  EXPECT_EQ(Unwind().end, StackEnd::kUnreadable);
  tables_.tables[kProgram] = TableWithFrames(1 << 17);
  SetStack(PYRO_COLD_STACK_BYTES);
  EXPECT_EQ(Unwind().end, StackEnd::kTruncated);
  SetStack(4096);  // and a hole up to where the copy ends
  EXPECT_EQ(Unwind().end, StackEnd::kTruncated);
}

TEST_F(ColdViewTest, ReadsBehindAHoleButNothingInIt) {
  tables_.tables[kProgram] = TableWithFrames(8192);
  SetStack(16384);
  Put(8184, 0x400200);
  Put(16376, 0x408010);
  sample_.stack_holes = 0b101;
  ASSERT_EQ(kStack % PYRO_COLD_PIECE, 0U);
  EXPECT_EQ(Unwind().end, StackEnd::kComplete);
  EXPECT_THAT(Unwind().frames, SizeIs(3)) << "both return addresses lie behind a hole";
  sample_.registers[kStackPointer] = kStack + 16;  // moves each word to the piece after it
  EXPECT_EQ(Unwind().end, StackEnd::kUnreadable);
  EXPECT_THAT(Unwind().frames, SizeIs(1));
}

TEST_F(ColdViewTest, TellsAStackThatCostsTooMuchFromOthersThatAreTruncated) {
  SetStack(64);
  Put(8, 0x400200);
  Put(24, 0x408010);
  const ColdStack stack = UnwindColdSample(sample_, &program_, tables_, {.most_steps = 3});
  EXPECT_EQ(stack.end, StackEnd::kTruncated);
  EXPECT_TRUE(stack.over_budget);
  EXPECT_FALSE(Unwind().over_budget);
}

TEST_F(ColdViewTest, SaysWhichTableIsStillBeingMade) {
  tables_.pending = kProgram;
  SetStack(64);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.pending, kProgram);
  EXPECT_EQ(stack.frames, std::vector<Frame>{Frame::Object(kProgram, ElfAddress(0x100))});
  tables_.pending = ObjectId(0);
  EXPECT_EQ(Unwind().pending, ObjectId(0));
}

TEST_F(ColdViewTest, StopsInCodeThatIsNoFiles) {
  SetStack(64);
  Put(8, 0x600010);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.end, StackEnd::kJit);
  EXPECT_EQ(stack.frames.back(), Frame::User(Address(0x60000f)));
}

TEST_F(ColdViewTest, StopsInAFileWithoutCallFrameInformation) {
  SetStack(64);
  Put(8, 0x500010);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.end, StackEnd::kNoUnwindInfo);
  EXPECT_EQ(stack.frames.back(), Frame::Object(kBare, ElfAddress(0xf)));
}

TEST_F(ColdViewTest, SaysThatCodeCameTooLateToTellACaller) {
  auto table = std::make_shared<UnwindTable>(*TableWithFrames(16));
  table->rows[0].rule = 0;  // hand-written code, of which the leaf is
  table->rows.insert(table->rows.begin() + 1, {.pc_low = 0x200, .rule = 1});
  table->pages = {{0, 3}};
  tables_.tables[kProgram] = table;
  SetStack(64);
  Put(8, 0x400300);
  EXPECT_EQ(Unwind().end, StackEnd::kNoUnwindInfo) << "there is no such code";
  EXPECT_FALSE(Unwind().code_late);
  tables_.code = UnwindTableSource::Code::kLate;
  EXPECT_EQ(Unwind().end, StackEnd::kNotReady);
  EXPECT_TRUE(Unwind().code_late);
}

TEST_F(ColdViewTest, SaysThatFramesMayBeMissingInAFileThatCouldNotBeRead) {
  UnwindTable unread;
  unread.unread = true;
  tables_.tables[kBare] = std::make_shared<const UnwindTable>(unread);
  SetStack(64);
  sample_.pc = Address(0x500100);
  sample_.registers[kFramePointer] = kStack + 16;
  Put(24, 0x408010);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.end, StackEnd::kNotReady);
  EXPECT_THAT(stack.frames, ElementsAre(Frame::Object(kBare, ElfAddress(0x100)),
                                        Frame::Object(kProgram, ElfAddress(0x800f))));
  EXPECT_EQ(stack.pending, ObjectId(0)) << "nobody waits for it";
}

TEST_F(ColdViewTest, TakesNoReturnAddressOutsideOfTheMappings) {
  SetStack(64);
  Put(8, 0x410000 + 0x500);
  const ColdStack stack = Unwind();
  EXPECT_EQ(stack.end, StackEnd::kBadReturnAddress);
  EXPECT_EQ(stack.frames.size(), 1U);
}

}  // namespace
}  // namespace pyrometer
