// SPDX-License-Identifier: Apache-2.0
// The list of pages is full: who is refused, who gives way, and who comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampler/table_upload.h"
#include "tests/unit/sampler/table_upload_fixture.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(TableUploadTest, RefusesAnObjectWithMorePagesThanThereAre) {
  const uint32_t slot = *upload_.Hold(kLibc, kNow);
  upload_.Load(kLibc, Table(65, 1), kNow);
  EXPECT_EQ(tables_[slot].state, PYRO_TABLE_ABSENT);
  EXPECT_EQ(upload_.counters().refused_objects, 1U);
}

TEST_F(TableUploadTest, WantsARefusedTableAgainWhenPagesComeFree) {
  upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(40, 1), kNow);
  upload_.Load(kSsl, Table(40, 1), kNow);
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty());
  upload_.Release(kLibc, kNow);
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kSsl));
  upload_.Load(kSsl, Table(40, 1), kMuchLater);
  EXPECT_EQ(tables_[ssl].state, PYRO_TABLE_LOADED);
}

// The loader may look long after the pages have come free.
class RefusedTable : public TableUploadTest {
 protected:
  // kSsl's table found no pages, since libc's had them, which are coming free by now.
  void Refuse() {
    upload_.Hold(kLibc, kNow);
    upload_.Hold(kSsl, kNow);
    upload_.TakeWanted(kNow);
    upload_.Load(kLibc, Table(40, 1), kNow);
    upload_.Load(kSsl, Table(40, 1), kNow);
    upload_.Release(kLibc, kNow);
  }
};

TEST_F(RefusedTable, IsWantedAgainWhenAnotherObjectCameFirst) {
  Refuse();
  upload_.Hold(kCopy, kMuchLater);
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kCopy, kSsl));
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), IsEmpty());
}

TEST_F(RefusedTable, IsWantedAgainWhenAnotherTableCameFirst) {
  upload_.Hold(kCopy, kNow);
  Refuse();
  upload_.Load(kCopy, Table(1, 1), kMuchLater);
  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kSsl));
}

TEST_F(TableUploadTest, LetsNoTableOfUnusedPagesKeepAnotherOut) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Sparse(60), kNow);
  upload_.Load(kSsl, Table(10, 1), kNow);
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_ABSENT);
  EXPECT_EQ(upload_.counters().evicted_tables, 1U);
  EXPECT_EQ(generation_, 1U) << "what is known of it marks no page as used";
  EXPECT_THAT(upload_.TakeWanted(kNow), IsEmpty()) << "its pages may still be read";

  EXPECT_THAT(upload_.TakeWanted(kMuchLater), ElementsAre(kSsl, kLibc)) << "the smaller one first";
  upload_.Load(kSsl, Table(10, 1), kMuchLater);
  upload_.Load(kLibc, Sparse(60), kMuchLater);
  EXPECT_EQ(tables_[ssl].state, PYRO_TABLE_LOADED);
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_ABSENT) << "the larger one does not push it out again";
  EXPECT_EQ(upload_.counters().evicted_tables, 1U);
}

TEST_F(TableUploadTest, TakesNoEmptyTableForOneThatGaveWay) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  const uint32_t ssl = *upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Sparse(60), kNow);
  upload_.Load(kSsl, Table(10, 1), kNow);
  upload_.TakeWanted(kMuchLater);
  EXPECT_TRUE(upload_.Load(kLibc, UnwindTable(), kMuchLater));  // its file is not to be read now
  EXPECT_TRUE(upload_.Load(kSsl, UnwindTable(), kMuchLater));
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_ABSENT);
  EXPECT_EQ(tables_[ssl].state, PYRO_TABLE_ABSENT) << "refused at its first attempt";
  EXPECT_TRUE(upload_.Load(kLibc, Sparse(60), kMuchLater));
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_LOADED);
}

TEST_F(TableUploadTest, TakesNoOtherTableForOneThatGaveWay) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Sparse(60), kNow);
  upload_.Load(kSsl, Table(10, 1), kNow);
  upload_.TakeWanted(kMuchLater);
  EXPECT_TRUE(upload_.Load(kLibc, Sparse(20), kMuchLater));  // the file was rewritten
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_ABSENT);
}

TEST_F(TableUploadTest, KeepsATableWhosePagesAreInUse) {
  const uint32_t libc = *upload_.Hold(kLibc, kNow);
  upload_.Hold(kSsl, kNow);
  upload_.TakeWanted(kNow);
  upload_.Load(kLibc, Table(60, 1), kNow);
  for (uint64_t page = 4; page < 4 + 55; ++page) {
    EXPECT_TRUE(RuleAt(libc, page << PYRO_UNWIND_PAGE_SHIFT).has_value());
  }
  upload_.Load(kSsl, Table(10, 1), kNow);
  EXPECT_EQ(tables_[libc].state, PYRO_TABLE_LOADED);
  EXPECT_EQ(upload_.counters().evicted_tables, 0U);
}

}  // namespace
}  // namespace pyrometer
