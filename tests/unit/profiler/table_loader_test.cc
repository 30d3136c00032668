// SPDX-License-Identifier: Apache-2.0
#include "profiler/table_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "tests/unit/profiler/fakes.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class TableLoaderTest : public testing::Test {
 protected:
  FakeClock clock_;
  FakeTableTarget target_;
  FakeTables tables_;
  TableLoader loader_{target_, tables_, clock_};
};

TEST_F(TableLoaderTest, LoadsWhatIsWanted) {
  EXPECT_FALSE(loader_.Load(milliseconds(50)));
  target_.wanted = {ObjectId(1), ObjectId(2)};
  EXPECT_TRUE(loader_.Load(milliseconds(50)));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1), ObjectId(2)));
  EXPECT_EQ(loader_.counters().loaded, 2U);
}

TEST_F(TableLoaderTest, LoadsFirstWhatSamplesWereUnwoundWith) {
  tables_.at_hand = {ObjectId(3)};
  target_.wanted = {ObjectId(1), ObjectId(2), ObjectId(3)};
  loader_.Load(milliseconds(50));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(3), ObjectId(1), ObjectId(2)));
}

TEST_F(TableLoaderTest, LeavesTheRestWhenTheTimeIsOver) {
  tables_.on_make = [this](ObjectId) { clock_.Advance(milliseconds(30)); };
  target_.wanted = {ObjectId(1), ObjectId(2), ObjectId(3)};
  EXPECT_TRUE(loader_.Load(milliseconds(50)));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1), ObjectId(2)));
  EXPECT_EQ(loader_.counters().waiting, 1U);
}

TEST_F(TableLoaderTest, LoadsWhatWasMappedMeanwhileBeforeWhatWaits) {
  tables_.on_make = [this](ObjectId) { clock_.Advance(milliseconds(60)); };
  target_.wanted = {ObjectId(1), ObjectId(2)};
  loader_.Load(milliseconds(50));
  target_.wanted = {ObjectId(9)};
  loader_.Load(milliseconds(100));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1), ObjectId(9), ObjectId(2)));
  EXPECT_EQ(loader_.counters().waiting, 0U);
}

TEST_F(TableLoaderTest, StopsBetweenTwoTables) {
  std::stop_source stop;
  target_.on_load = [&stop](ObjectId) { stop.request_stop(); };
  target_.wanted = {ObjectId(1), ObjectId(2)};
  loader_.Load(milliseconds(50), stop.get_token());
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1)));
}

TEST_F(TableLoaderTest, TriesATableAgainWhoseFileCouldNotBeRead) {
  tables_.failing = {ObjectId(1)};
  target_.wanted = {ObjectId(1), ObjectId(2)};
  loader_.Load(milliseconds(50));
  EXPECT_FALSE(loader_.Load(milliseconds(50)));
  clock_.Advance(TableLoader::kRetry);
  tables_.failing.clear();
  EXPECT_TRUE(loader_.Load(milliseconds(50)));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1), ObjectId(2), ObjectId(1)));
  EXPECT_EQ(loader_.counters().retried, 1U);
  clock_.Advance(TableLoader::kRetry);
  EXPECT_FALSE(loader_.Load(milliseconds(50)));
}

TEST_F(TableLoaderTest, TriesNoTableAgainThatNobodyNeeds) {
  tables_.failing = {ObjectId(1)};
  target_.is_needed = false;
  target_.wanted = {ObjectId(1)};
  loader_.Load(milliseconds(50));
  clock_.Advance(TableLoader::kRetry);
  EXPECT_FALSE(loader_.Load(milliseconds(50)));
}

TEST_F(TableLoaderTest, LoadsOthersWhileATableIsBeingMade) {
  tables_.pending = {ObjectId(1)};
  target_.wanted = {ObjectId(1), ObjectId(2)};
  EXPECT_TRUE(loader_.Load(milliseconds(50)));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(2)));
  EXPECT_EQ(loader_.counters().pending, 1U);
  EXPECT_FALSE(loader_.Load(milliseconds(50)));
  EXPECT_EQ(tables_.asked, 2) << "it is not asked for over and over";
  tables_.pending.clear();
  EXPECT_TRUE(loader_.Load(milliseconds(50)));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(2), ObjectId(1)));
  EXPECT_EQ(loader_.counters().pending, 0U);
}

TEST_F(TableLoaderTest, HasOnlySoManyTablesMadeAtATime) {
  for (uint32_t object = 1; object <= 100; ++object) {
    tables_.pending.insert(ObjectId(object));
    target_.wanted.emplace_back(object);
  }
  loader_.Load(milliseconds(50));
  EXPECT_EQ(loader_.counters().pending, TableLoader::kMostPending);
  EXPECT_EQ(loader_.counters().waiting, 100U);
  tables_.pending.clear();
  loader_.Load(milliseconds(50));
  EXPECT_EQ(target_.loaded.size(), 100U);
}

TEST_F(TableLoaderTest, WaitsAtTheStartForWhatIsBeingMade) {
  tables_.pending = {ObjectId(1)};
  target_.wanted = {ObjectId(1)};
  const std::jthread maker([this] {
    target_.AwaitWaiting();
    tables_.pending.clear();
    target_.Wake();
  });
  loader_.LoadAll(milliseconds(300));
  EXPECT_THAT(target_.loaded, ElementsAre(ObjectId(1)));
}

TEST_F(TableLoaderTest, IsWokenToStop) {
  std::jthread thread([this](const std::stop_token& stop) { loader_.Run(stop); });
  target_.AwaitWaiting();
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(target_.was_woken());
}

TEST_F(TableLoaderTest, LooksFromTimeToTimeForWhatSamplesHaveMet) {
  std::latch first(1);
  std::latch second(1);
  int looks = 0;
  TableLoader looking(target_, tables_, clock_, [&] {
    if (++looks == 1) first.count_down();
    if (looks == 2) second.count_down();
  });
  std::jthread thread([&](const std::stop_token& stop) { looking.Run(stop); });
  first.wait();
  target_.Wake();  // which is no reason to look
  clock_.Advance(TableLoader::kLookInterval);
  target_.Wake();
  second.wait();
  thread.request_stop();
  thread.join();
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace pyrometer
