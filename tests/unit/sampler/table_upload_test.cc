// SPDX-License-Identifier: Apache-2.0
#include "sampler/table_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "tests/unit/sampler/table_upload_fixture.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(TableUploadTest, WantsTheTableOfEachObjectThatIsHeldOnce) {
  EXPECT_NE(upload_.Hold(kLibc, kNow), upload_.Hold(kSsl, kNow));
  EXPECT_EQ(upload_.Hold(kLibc, kNow), upload_.Hold(kLibc, kNow));
  EXPECT_THAT(upload_.TakeWanted(kNow), UnorderedElementsAre(kLibc, kSsl));
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty());
}

TEST_F(TableUploadTest, NeverUsesTableZero) {
  for (uint32_t object = 1; object < 8; ++object) {
    EXPECT_GT(upload_.Hold(ObjectId(object), kNow), 0U);
  }
  EXPECT_EQ(upload_.Hold(ObjectId(9), kNow), std::nullopt);
  EXPECT_EQ(upload_.counters().refused_objects, 1U);
}

TEST_F(TableUploadTest, LoadsATableAsTheProgramReadsIt) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_ABSENT);
  upload_.Load(kLibc, Table(2, 100, 48), kNow);
  EXPECT_EQ(RuleAt(slot, 0x40050)->cfa_offset, 48);
  EXPECT_EQ(RuleAt(slot, 0x5ffff)->cfa_offset, 48);
  EXPECT_EQ(upload_.counters().rows, 200U);
  EXPECT_EQ(upload_.counters().tables, 1U);
}

TEST_F(TableUploadTest, TellsWithWhichTablesSamplesWereUnwound) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  upload_.Load(kLibc, Table(2, 100), kNow);
  upload_.Load(kSsl, Table(1, 100, 16), kNow);
  const auto used = [this](uint32_t slot) -> bool { return upload_.UsedSlots().at(slot); };
  EXPECT_FALSE(used(libc) || used(ssl) || used(copy));
  RuleAt(libc, 0x50050);
  EXPECT_TRUE(used(libc));
  EXPECT_FALSE(used(ssl) || used(copy));
  upload_.Load(kCopy, UnwindTable(), kNow);
  EXPECT_TRUE(used(copy)) << "nobody knows";
}

TEST_F(TableUploadTest, TakesNoteOnceThatAnObjectIsUsed) {
  upload_.Hold(kLibc, kNow);
  EXPECT_TRUE(upload_.NoteUsed(kLibc));
  EXPECT_FALSE(upload_.NoteUsed(kLibc));
  upload_.Release(kLibc, kNow);
  EXPECT_FALSE(upload_.NoteUsed(kLibc));
  upload_.Hold(kLibc, kNow);
  EXPECT_TRUE(upload_.NoteUsed(kLibc)) << "it is another one now";
}

TEST_F(TableUploadTest, SaysThatATableCoversLittle) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  UnwindTable table = Table(1, 10);
  table.sparse = true;
  upload_.Load(kLibc, table, kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_SPARSE);
}

TEST_F(TableUploadTest, SaysThatAnObjectHasNoCallFrameInformation) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  upload_.Load(kLibc, UnwindTable(), kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_EMPTY);
}

TEST_F(TableUploadTest, SaysOfWhichObjectThatIsNotKnown) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  UnwindTable unread;
  unread.unread = true;
  EXPECT_TRUE(upload_.Load(kLibc, unread, kNow));
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_UNREAD);
  upload_.Load(kLibc, UnwindTable(), kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_EMPTY) << "when it was read";
}

TEST_F(TableUploadTest, TakesATableWhereThereWasNone) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  EXPECT_TRUE(upload_.Load(kLibc, UnwindTable(), kNow));
  EXPECT_TRUE(upload_.Load(kLibc, Table(1, 10, 48), kNow));
  EXPECT_EQ(RuleAt(slot, 0x40005)->cfa_offset, 48);
}

TEST_F(TableUploadTest, LoadsOfALargeTableOnlyThePagesThatAreNeeded) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  const UnwindTable table = Table(40, 40'000);
  ASSERT_GT(table.row_count(), TableUpload::kMostAtOnce);
  upload_.TakeWanted(kNow);
  EXPECT_TRUE(upload_.Load(kLibc, table, kNow));
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_LOADED);
  EXPECT_EQ(upload_.counters().rows, 0U);
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty());
  EXPECT_EQ(RuleAt(slot, 0x50005), std::nullopt);  // a sample meets page 5
  EXPECT_TRUE(upload_.Need(kLibc, ElfAddress(0x50005)));
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x70005))) << "is no news any more";
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc));
  upload_.Load(kLibc, table, kNow);
  EXPECT_EQ(upload_.counters().rows, 2U * 40'000);
  EXPECT_EQ(RuleAt(slot, 0x50005)->cfa_offset, 8);
  EXPECT_EQ(RuleAt(slot, 0x70005)->cfa_offset, 8);
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty());
}

TEST_F(TableUploadTest, NeedsNothingOfWhatIsLoadedOrHasNoTable) {
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x40005))) << "nobody maps it";
  upload_.Hold(kLibc, kNow);
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x40005))) << "its table is on the way";
  upload_.Load(kLibc, Table(1, 10), kNow);
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x40005)));
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x1000))) << "before its pages";
  EXPECT_FALSE(upload_.Need(kLibc, ElfAddress(0x990000))) << "behind them";
}

TEST_F(TableUploadTest, TriesAgainWhenRowsCouldNotBeRead) {
  class SometimesReadable : public StoredRows {
   public:
    bool Read(size_t first, std::span<pyro_unwind_row> out) const override {
      if (!is_readable) return false;
      for (size_t i = 0; i < out.size(); ++i) out[i] = {static_cast<uint16_t>(first + i), 1};
      return true;
    }
    bool is_readable = false;
  };
  const auto rows = std::make_shared<SometimesReadable>();
  UnwindTable table = Table(1, 10, 48);
  table.rows = {};
  table.stored = rows;
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, table, kNow);
  EXPECT_EQ(RuleAt(slot, 0x40005), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc));
  upload_.Load(kLibc, table, kNow);
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty()) << "until a sample needs it again";
  EXPECT_EQ(RuleAt(slot, 0x40005), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc));
  upload_.Load(kLibc, UnwindTable(), kNow);  // made again, and its file was not to be read
  rows->is_readable = true;
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc));
  upload_.Load(kLibc, table, kNow);
  EXPECT_EQ(RuleAt(slot, 0x40005)->cfa_offset, 48);
}

TEST_F(TableUploadTest, FreesEverythingWhenTheLastHolderIsGone) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  upload_.Hold(kLibc, kNow);
  upload_.Load(kLibc, Table(2, 100), kNow);
  upload_.Release(kLibc, kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_LOADED);
  upload_.Release(kLibc, kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_ABSENT);
  EXPECT_EQ(upload_.counters().rows, 0U);
  EXPECT_EQ(upload_.counters().rules, 0U);
  upload_.TakeWanted(kMuchLater);
  EXPECT_TRUE(chunks_.chunks.empty());
}

TEST_F(TableUploadTest, LetsObjectsComeAndGoWhileItWaitsForTheKernel) {
  upload_.Hold(kLibc, kNow);
  chunks_.while_waiting = [this] {
    upload_.Hold(kSsl, kNow);
    upload_.Release(kLibc, kNow);
  };
  upload_.Load(kLibc, Table(2, 100), kNow);
  EXPECT_EQ(upload_.counters().tables, 0U) << "released meanwhile";
  EXPECT_EQ(upload_.counters().rows, 0U);
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kSsl));
  EXPECT_TRUE(chunks_.chunks.empty());
}

TEST_F(TableUploadTest, EvictsNoMoreWhileWhatItEvictedRests) {
  upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.Load(kLibc, Table(2, RowChunks::kMostRows), kNow);  // fills the budget
  upload_.Load(kSsl, Table(1, 1000), kNow);
  const uint64_t evicted = upload_.counters().evicted_pages;
  EXPECT_GT(evicted, 0U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(RuleAt(ssl, 0x40010), std::nullopt);
    upload_.Load(kSsl, Table(1, 1000), kNow);
  }
  EXPECT_EQ(upload_.counters().evicted_pages, evicted);
}

TEST_F(TableUploadTest, IgnoresATableThatCameTooLate) {
  EXPECT_FALSE(upload_.Load(kSsl, Table(1, 10), kNow));
  upload_.Hold(kLibc, kNow);
  upload_.Release(kLibc, kNow);
  upload_.Load(kLibc, Table(2, 100), kNow);
  EXPECT_EQ(upload_.counters().rows, 0U);
}

TEST_F(TableUploadTest, EvictsWhatIsNotUsedAndBringsItBackWhenItIs) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(2, RowChunks::kMostRows, 16), kNow);  // fills the budget
  upload_.Load(kSsl, Table(1, 1000, 32), kNow);
  EXPECT_EQ(RuleAt(ssl, 0x40010), std::nullopt);
  EXPECT_GT(upload_.counters().evicted_pages, 0U);

  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kSsl)) << "a sample needed it";
  upload_.Load(kSsl, Table(1, 1000, 32), kLater);
  EXPECT_EQ(RuleAt(ssl, 0x40010)->cfa_offset, 32);
  EXPECT_LE(chunks_.chunks.size(), kChunks);

  EXPECT_FALSE(RuleAt(libc, 0x40010).has_value() && RuleAt(libc, 0x50010).has_value());
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc));
}

TEST_F(TableUploadTest, WantsWhatIsMissedOnlyOnceUntilItIsLoaded) {
  upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(2, RowChunks::kMostRows), kNow);  // fills the budget
  upload_.Load(kSsl, Table(1, 1000), kNow);
  EXPECT_EQ(RuleAt(ssl, 0x40010), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kSsl));
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty());
  upload_.Load(kSsl, Table(1, 1000), kNow);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kSsl)) << "it found no room yet";
}

TEST_F(TableUploadTest, LetsProgramsForgetWhatTheyKnowWhenATableGoes) {
  upload_.Hold(kLibc, kNow);
  upload_.Load(kLibc, Table(2, 100), kNow);
  EXPECT_EQ(generation_, 0U) << "nothing was there to be known";
  upload_.Release(kLibc, kNow);
  EXPECT_EQ(generation_, 1U);
}

// A program that found the table before it went may have noted what it knows as found after that.
TEST_F(TableUploadTest, LetsProgramsForgetWhatTheyKnowBeforeAnotherTableTakesTheSlot) {
  upload_.Hold(kLibc, kNow);
  upload_.Hold(kSsl, kNow);
  upload_.Release(kLibc, kNow);
  upload_.Release(kSsl, kNow);
  const uint32_t gone = generation_;
  upload_.TakeWanted(kNow);
  EXPECT_EQ(generation_, gone) << "programs may still be reading it";
  upload_.Hold(kCopy, kMuchLater);
  EXPECT_EQ(generation_, gone + 1) << "once for both";
}

// A rule that is known marks no page as used: it must be looked up again when the marks are gone.
TEST_F(TableUploadTest, LetsProgramsForgetWhatTheyKnowWhenPagesAreEvicted) {
  upload_.Hold(kLibc, kNow);
  upload_.Hold(kSsl, kNow);
  upload_.Load(kLibc, Table(2, RowChunks::kMostRows), kNow);  // fills the budget
  EXPECT_EQ(generation_, 0U);
  upload_.Load(kSsl, Table(1, 1000), kNow);
  EXPECT_EQ(generation_, 1U);
}

TEST_F(TableUploadTest, DoesNotMixTheTablesOfAFileThatWasRewritten) {
  upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(2, RowChunks::kMostRows), kNow);  // fills the budget
  upload_.Load(kSsl, Table(1, 1000, 32), kNow);
  EXPECT_EQ(RuleAt(ssl, 0x40010), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kSsl));
  upload_.Load(kSsl, Table(1, 1000, 48), kLater);
  EXPECT_EQ(RuleAt(ssl, 0x40010), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kLater), IsEmpty());
}

TEST_F(TableUploadTest, LeavesOutAPageWithMoreRowsThanAPageCanHave) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(1, RowChunks::kMostRows + 1), kNow);
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty()) << "until a sample needs it";
  EXPECT_EQ(RuleAt(slot, 0x40010), std::nullopt);
  EXPECT_EQ(upload_.counters().evicted_pages, 0U);
}

UnwindTable OfContent(uint64_t content, UnwindTable table) {
  table.content = content;
  return table;
}

TEST_F(TableUploadTest, KeepsTheRowsOfOneContentOnce) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  upload_.Load(kLibc, OfContent(1, Table(2, 100, 48)), kNow);
  upload_.Load(kCopy, OfContent(1, Table(2, 100, 48)), kNow);
  EXPECT_EQ(RuleAt(libc, 0x40005)->cfa_offset, 48);
  EXPECT_EQ(RuleAt(copy, 0x50005)->cfa_offset, 48);
  EXPECT_EQ(upload_.counters().rows, 200U);
  EXPECT_EQ(upload_.counters().tables, 2U);
  EXPECT_EQ(upload_.counters().contents, 1U);
}

TEST_F(TableUploadTest, TakesATableFromAllThatShareIt) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, OfContent(5, Sparse(60)), kNow);
  upload_.Load(kCopy, OfContent(5, Sparse(60)), kNow);
  upload_.Load(kSsl, Table(10, 1), kNow);
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_ABSENT);
  EXPECT_EQ(tables_[copy].state, PYRO_TABLE_ABSENT);
  upload_.Release(kCopy, kNow);
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kSsl, kLibc));
  upload_.Load(kLibc, OfContent(5, Sparse(60)), kMuchLater);
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_LOADED) << "which came first this time";
}

TEST_F(TableUploadTest, SharesNothingOfWhichTheContentIsUnknown) {
  upload_.Hold(kLibc, kNow);
  upload_.Hold(kCopy, kNow);
  upload_.Load(kLibc, Table(2, 100, 48), kNow);
  upload_.Load(kCopy, Table(2, 100, 48), kNow);
  EXPECT_EQ(upload_.counters().rows, 400U);
  EXPECT_EQ(upload_.counters().contents, 2U);
}

TEST_F(TableUploadTest, KeepsSharedRowsUntilTheLastObjectIsGone) {
  upload_.Hold(kLibc, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  upload_.Load(kLibc, OfContent(1, Table(2, 100, 48)), kNow);
  upload_.Load(kCopy, OfContent(1, Table(2, 100, 48)), kNow);
  upload_.Release(kLibc, kNow);
  upload_.TakeWanted(kMuchLater);
  EXPECT_EQ(RuleAt(copy, 0x40005)->cfa_offset, 48);
  upload_.Release(kCopy, kMuchLater);
  EXPECT_EQ(upload_.counters().rows, 0U);
  EXPECT_EQ(upload_.counters().rules, 0U);
  EXPECT_EQ(upload_.counters().contents, 0U);
  upload_.Hold(kLibc, kMuchLater);
  upload_.Load(kLibc, OfContent(1, Table(2, 100, 48)), kMuchLater);
  EXPECT_EQ(upload_.counters().rows, 200U);
}

TEST_F(TableUploadTest, AsksOneObjectForTheRowsThatAllOfItsContentMiss) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  const UnwindTable table = OfContent(1, Table(40, 40'000));  // loaded by the page
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, table, kNow);
  upload_.Load(kCopy, table, kNow);
  EXPECT_EQ(RuleAt(copy, 0x50005), std::nullopt);
  const std::vector<ObjectId> wanted = upload_.TakeWanted(kNow);
  ASSERT_EQ(wanted.size(), 1U);
  upload_.Release(wanted[0], kNow);  // it will never answer
  const ObjectId other = wanted[0] == kLibc ? kCopy : kLibc;
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(other));
  upload_.Load(other, table, kNow);
  EXPECT_EQ(RuleAt(other == kLibc ? libc : copy, 0x50005)->cfa_offset, 8);
}

TEST_F(TableUploadTest, GivesANewObjectTheSharedPagesThatItMisses) {
  upload_.Hold(kLibc, kNow);
  const UnwindTable table = OfContent(1, Table(40, 40'000));
  upload_.Load(kLibc, table, kNow);
  EXPECT_TRUE(upload_.Need(kLibc, ElfAddress(0x50005)));
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  upload_.Load(kCopy, table, kNow);
  EXPECT_EQ(RuleAt(copy, 0x50005)->cfa_offset, 8);
}

TEST_F(TableUploadTest, SharesNoMoreWithAFileThatWasRewritten) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t copy = *upload_.Hold(kCopy, kNow);
  const UnwindTable table = OfContent(1, Table(40, 40'000));
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, table, kNow);
  upload_.Load(kCopy, table, kNow);
  upload_.Load(kCopy, OfContent(2, Table(2, 100, 48)), kNow);  // made again
  EXPECT_EQ(RuleAt(libc, 0x50005), std::nullopt);
  EXPECT_EQ(RuleAt(copy, 0x50005), std::nullopt);
  EXPECT_THAT(upload_.TakeWanted(kNow), ElementsAre(kLibc)) << "which still has this table";
}

}  // namespace
}  // namespace pyrometer
