// SPDX-License-Identifier: Apache-2.0
// What damage, other people and the disk do to a spool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "export/outbox.h"
#include "export/spool_directory.h"
#include "tests/unit/base/file_size_limit.h"
#include "tests/unit/export/outbox_spool_fixture.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class SpoolTroubleTest : public OutboxSpoolTest {};

TEST_F(SpoolTroubleTest, LosesWithAFileCutAtAnyByteOnlyWhatIsGone) {
  LeaveInSpool({"a", "b"});
  const std::vector<std::string> names = FilesInSpool();
  const std::string first = *ReadFile(Spool() + "/" + names[0]);
  const std::string second = *ReadFile(Spool() + "/" + names[1]);
  for (size_t size = 0; size <= first.size(); ++size) {
    tree_.File("spool/" + names[0], std::string_view(first).substr(0, size));
    tree_.File("spool/" + names[1], second);
    ScriptedSink sink;
    const auto outbox = Make(sink);
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
    const DeliveryCounters counters = outbox->counters();
    EXPECT_TRUE(IsBalanced(counters));
    EXPECT_EQ(counters.found_in_spool.delivered + Sum(counters.found_in_spool.dropped) +
                  counters.unreadable,
              2);
    EXPECT_EQ(sink.delivered().size(), size == first.size() ? 2 : 1);
    EXPECT_TRUE(Eventually([&] { return FilesInSpool().empty(); }));
  }
}

TEST_F(SpoolTroubleTest, CountsWhatIsDamagedWhileItWaits) {
  ScriptedSink sink(RefuseAll);
  OutboxOptions options = Options();
  options.spool_after = {};
  options.retry.min_backoff = hours(1);  // so that the first file stays the one that is open
  const auto outbox = Make(sink, std::move(options));
  for (const char* name : {"a", "b", "c", "d"}) Offer(*outbox, name);
  ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] { return outbox->counters().spool_files == 4; }));
  const std::vector<std::string> names = FilesInSpool();
  ASSERT_EQ(names.size(), 4);
  std::string broken = *ReadFile(Spool() + "/" + names[1]);
  broken.back() = '!';
  tree_.File("spool/" + names[1], broken);  // its body
  tree_.File("spool/" + names[2], "!");
  ASSERT_TRUE(fs::remove(Spool() + "/" + names[3]));
  sink.Become(TakeAll);
  clock_.Pass(hours(1));
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(outbox->counters().ticks.delivered, 1);
  EXPECT_THAT(outbox->counters().ticks.dropped,
              ElementsAre(Pair("corrupt", 2), Pair("spool_lost", 1)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(SpoolTroubleTest, LeavesForeignFilesAloneAndRemovesUnfinishedOnes) {
  LeaveInSpool({"a"});
  tree_.File("spool/unfinished", "half");
  tree_.File("spool/notes.txt", "mine");
  tree_.File("spool/17.parcels", "not so many digits");
  tree_.File("precious", "outside");
  tree_.Link("spool/0000000000000007.parcels", tree_.Path("precious"));
  tree_.Directory("spool/0000000000000008.parcels");
  ScriptedSink sink;
  {
    const auto outbox = Make(sink);
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  }
  EXPECT_THAT(sink.delivered(), ElementsAre("a"));
  EXPECT_FALSE(fs::exists(Spool() + "/unfinished"));
  EXPECT_EQ(*ReadFile(Spool() + "/notes.txt"), "mine");
  EXPECT_EQ(*ReadFile(Spool() + "/17.parcels"), "not so many digits");
  EXPECT_EQ(*ReadFile(tree_.Path("precious")), "outside");
  EXPECT_TRUE(fs::is_symlink(Spool() + "/0000000000000007.parcels"));
  EXPECT_TRUE(fs::is_directory(Spool() + "/0000000000000008.parcels"));
}

TEST_F(SpoolTroubleTest, ShowsItsFilesToNobodyElse) {
  const mode_t before = ::umask(0);
  LeaveInSpool({"a"});
  ::umask(before);
  EXPECT_EQ(fs::status(Spool()).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(Spool() + "/" + FilesInSpool().front()).permissions(), fs::perms(0600));
}

TEST_F(SpoolTroubleTest, LeavesADirectoryToTheProcessThatHasItAndTakesItOver) {
  ScriptedSink sink(RefuseAll);
  auto first = Make(sink);
  ASSERT_TRUE(Eventually([&] { return first->counters().has_spool; }));
  ScriptedSink good;
  const auto second = Make(good);
  Offer(*second, "a");
  ASSERT_TRUE(Eventually([&] { return second->counters().ticks.delivered == 1; }));
  ASSERT_TRUE(Eventually(
      [&] { return log_.Text().find("another process uses this spool") != std::string::npos; }));
  EXPECT_FALSE(second->counters().has_spool);
  Offer(*first, "of the first");
  first.reset();
  ASSERT_TRUE(PassUntilNothingWaits(*second));
  EXPECT_THAT(good.delivered(), ElementsAre("a", "of the first"));
}

TEST_F(SpoolTroubleTest, LeavesItsDirectoryToTheNextOutboxOnceItIsClosed) {
  ScriptedSink down(RefuseAll);
  const auto closed = Make(down);
  Offer(*closed, "a");
  closed->Close(clock_.Now());
  ScriptedSink sink;
  const auto next = Make(sink);
  ASSERT_TRUE(Eventually([&] { return next->counters().found_in_spool.delivered == 1; }));
}

TEST_F(SpoolTroubleTest, ReadsNothingOfASpoolThatItOpensOnlyToStowAway) {
  LeaveInSpool({"a", "b"});
  ScriptedSink down(RefuseAll);
  auto first = Make(down);
  ASSERT_TRUE(Eventually([&] { return first->counters().has_spool; }));
  const auto second = Make(down);
  Offer(*second, "c");
  ASSERT_TRUE(Eventually(
      [&] { return log_.Text().find("another process uses this spool") != std::string::npos; }));
  first.reset();
  second->Close(clock_.Now());
  EXPECT_EQ(second->counters().ticks.spooled, 1);
  EXPECT_EQ(second->counters().found_in_spool.offered, 0);
  EXPECT_TRUE(IsBalanced(second->counters()));
  EXPECT_EQ(FilesInSpool().size(), 3);
}

TEST_F(SpoolTroubleTest, GoesWithoutADirectoryThatCannotBeMade) {
  tree_.File("file", "");
  OutboxOptions options = Options();
  options.spool->directory = tree_.Path("file/spool");
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink, std::move(options));
  Offer(*outbox, "a", 2);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  outbox->Close(clock_.Now());
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("shutdown", 2)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  EXPECT_THAT(log_.Text(), HasSubstr("sink test: goes without a spool: "));
}

TEST_F(SpoolTroubleTest, MakesTheDirectoryAnewThatWasDeleted) {
  ScriptedSink sink(RefuseAll);
  OutboxOptions options = Options();
  options.spool_after = {};
  const auto outbox = Make(sink, std::move(options));
  Offer(*outbox, "lost");
  ASSERT_TRUE(
      PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.spooled == 1; }));
  fs::remove_all(Spool());
  Offer(*outbox, "saved");
  ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
    return outbox->counters().ticks.dropped.contains("spool_lost") &&
           outbox->counters().ticks.spooled == 1;
  }));
  EXPECT_EQ(FilesInSpool().size(), 1);
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), ElementsAre("saved"));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(SpoolTroubleTest, GoesOnInMemoryWhileTheDiskIsFull) {
  ScriptedSink sink(RefuseAll);
  sink.padding = 2000;
  OutboxOptions options = Options();
  options.max_memory = 20'000;
  options.spool_after = {};
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(Eventually([&] { return outbox->counters().has_spool; }));
  {
    const FileSizeLimit limit(1000);
    for (int i = 0; i < 30; ++i) {
      Offer(*outbox, std::to_string(i));
      clock_.Pass(seconds(10));
      ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
      EXPECT_TRUE(IsBalanced(outbox->counters()));
    }
    EXPECT_EQ(outbox->counters().ticks.spooled, 0);
    EXPECT_GE(outbox->counters().ticks.dropped.at("queue_full"), 15);
    EXPECT_THAT(FilesInSpool(), testing::IsEmpty());
    EXPECT_THAT(log_.Text(), HasSubstr("sink test: writing to the spool: "));
  }
  ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
    const DeliveryCounters counters = outbox->counters();
    return counters.ticks.in_memory == 0 && counters.ticks.spooled != 0;
  }));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST(SpoolName, LeadsNowhereElse) {
  EXPECT_EQ(SpoolNameOf("pyroscope-1_eu"), "pyroscope-1_eu");
  EXPECT_EQ(SpoolNameOf("../etc"), "%2e%2e%2fetc");
  EXPECT_EQ(SpoolNameOf("."), "%2e");
  EXPECT_EQ(SpoolNameOf(""), "%");
}

}  // namespace
}  // namespace pyrometer
