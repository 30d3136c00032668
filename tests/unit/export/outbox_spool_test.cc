// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "export/outbox.h"
#include "export/spool_directory.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

Receipt RefuseAll(const Parcel& /*parcel*/) {
  return Refused();
}
Receipt TakeAll(const Parcel& /*parcel*/) {
  return Taken();
}

class OutboxSpoolTest : public testing::Test {
 protected:
  OutboxOptions Options() const {
    OutboxOptions options;
    options.name = "test";
    options.spool = SpoolOptions{.directory = Spool()};
    return options;
  }
  std::string Spool() const { return tree_.Path("spool"); }
  std::unique_ptr<Outbox> Make(ProfileSink& sink, OutboxOptions options) {
    return std::make_unique<Outbox>(std::move(options), sink, clock_, log_.log());
  }
  std::unique_ptr<Outbox> Make(ProfileSink& sink) { return Make(sink, Options()); }
  void Offer(Outbox& outbox, const std::string& name, uint64_t ticks = 1) {
    outbox.Offer(WindowOf({ProfileNamed(name, ticks, clock_.WallNow())}));
  }
  bool PassUntil(Outbox& outbox, std::chrono::nanoseconds step,
                 const std::function<bool()>& holds) {
    return Eventually([&] {
      clock_.Pass(step);
      outbox.Offer(WindowOf({}));
      return holds();
    });
  }
  bool PassUntilNothingWaits(Outbox& outbox) {
    return PassUntil(outbox, seconds(1), [&] {
      const DeliveryCounters counters = outbox.counters();
      return counters.has_spool && counters.ticks.in_memory == 0 && counters.ticks.spooled == 0 &&
             counters.found_in_spool.spooled == 0 && counters.spool_files == 0;
    });
  }
  // Leaves windows of these names in the spool, one tick each.
  void LeaveInSpool(const std::vector<std::string>& names) {
    ScriptedSink sink(RefuseAll);
    const auto outbox = Make(sink);
    for (const std::string& name : names) {
      Offer(*outbox, name);
      ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
    }
    outbox->Close(clock_.Now());
    ASSERT_EQ(outbox->counters().ticks.spooled, names.size());
  }
  // As if a run had ended while it sent the first parcel in the spool.
  void BeginSending() const {
    const Result<SpoolDirectory> directory = SpoolDirectory::Open(Spool());
    const Result<SpoolFile> file = directory->OpenFile(directory->List()->front());
    ASSERT_TRUE(file->SetState(0, SpoolState::kSending).has_value());
  }
  std::vector<std::string> FilesInSpool() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Spool())) {
      if (entry.path().extension() == ".parcels") names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryTree tree_;
  SteppedClock clock_;
  ReadableLog log_{clock_};
};

TEST_F(OutboxSpoolTest, DeliversEverythingOnceAfterAnOutageOfThreeMinutes) {
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  std::vector<std::string> names;
  for (int window = 0; window < 18; ++window) {
    clock_.Pass(seconds(10));
    names.push_back(std::to_string(window));
    Offer(*outbox, names.back(), 10);
    ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
  ASSERT_TRUE(Eventually([&] { return outbox->counters().spool_files >= 16; }));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(outbox->counters().ticks.delivered, 180);
  EXPECT_THAT(sink.delivered(), testing::UnorderedElementsAreArray(names));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
  ASSERT_TRUE(Eventually([&] { return FilesInSpool().empty(); }));
  EXPECT_EQ(outbox->counters().spool_bytes, 0);
}

TEST_F(OutboxSpoolTest, KeepsAShortOutageInMemory) {
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  Offer(*outbox, "a");
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  for (int i = 0; i < 29; ++i) {
    clock_.Pass(seconds(1));
    Offer(*outbox, std::to_string(i));
  }
  EXPECT_EQ(outbox->counters().ticks.spooled, 0);
}

TEST_F(OutboxSpoolTest, MovesTheOldestToDiskWhenMemoryIsNearlyFull) {
  std::atomic<bool> is_up = false;
  ScriptedSink sink([&](const Parcel&) { return is_up ? Taken() : Refused(); });
  sink.padding = 1000;
  OutboxOptions options = Options();
  options.max_memory = 20'000;
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(Eventually([&] { return outbox->counters().has_spool; }));
  for (uint64_t i = 0; i < 100; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(Eventually([&] {
      const DeliveryCounters counters = outbox->counters();
      return counters.windows_waiting == 0 && counters.bytes_in_memory < 16'000;
    }));
  }
  EXPECT_GE(outbox->counters().ticks.spooled, 80);
  EXPECT_EQ(Sum(outbox->counters().ticks.dropped), 0);
  is_up = true;
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(outbox->counters().ticks.delivered, 100);
}

TEST_F(OutboxSpoolTest, DeliversInTheNextRunWhatWasLeftAndKeepsItApart) {
  LeaveInSpool({"a", "b", "c"});
  ScriptedSink sink;
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), ElementsAre("a", "b", "c")) << "oldest first";
  EXPECT_EQ(outbox->counters().found_in_spool.offered, 3);
  EXPECT_EQ(outbox->counters().found_in_spool.delivered, 3);
  EXPECT_EQ(outbox->counters().ticks.offered, 0);
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(OutboxSpoolTest, SaysWhyAParcelFromTheSpoolWasDropped) {
  LeaveInSpool({"rejected", "unanswered"});
  ScriptedSink sink(
      [](const Parcel& parcel) { return parcel.series == "rejected" ? Rejected() : Unanswered(); });
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped,
              UnorderedElementsAre(Pair("http_400", 1), Pair("maybe_arrived", 1)));
}

TEST_F(OutboxSpoolTest, StowsAwayWindowsThatWereNotEvenPacked) {
  const Clock clock;
  ScriptedSink sink(RefuseAll);
  {
    Outbox outbox(Options(), sink, clock, log_.log());
    outbox.Offer(WindowOf({ProfileNamed("a", 2), ProfileNamed("b", 3)}));
    outbox.Offer(WindowOf({ProfileNamed("c", 4)}));
    outbox.Close(clock.Now());
    EXPECT_EQ(outbox.counters().ticks.spooled, 9);
    EXPECT_TRUE(IsBalanced(outbox.counters()));
  }
  EXPECT_EQ(FilesInSpool().size(), 2);
}

TEST_F(OutboxSpoolTest, SendsFreshParcelsBeforeThoseInTheSpool) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("left " + std::to_string(i));
  LeaveInSpool(names);
  ScriptedSink sink(RefuseAll);
  const auto outbox = Make(sink);
  ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
  Offer(*outbox, "fresh");
  ASSERT_TRUE(Eventually([&] { return outbox->counters().parcels_in_memory == 1; }));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  const std::vector<std::string> delivered = sink.delivered();
  EXPECT_LE(std::ranges::find(delivered, "fresh") - delivered.begin(), 2);
  EXPECT_EQ(delivered.size(), 21);
}

TEST_F(OutboxSpoolTest, DoesNotLetOneParcelThatIsRefusedForEverKeepTheSpoolWaiting) {
  LeaveInSpool({"poison", "a", "b", "c", "d"});
  ScriptedSink sink(
      [](const Parcel& parcel) { return parcel.series == "poison" ? Refused() : Taken(); });
  OutboxOptions options = Options();
  options.max_refusals = 2;
  const auto outbox = Make(sink, std::move(options));
  ASSERT_TRUE(PassUntil(*outbox, seconds(1),
                        [&] { return outbox->counters().found_in_spool.delivered == 4; }));
  for (uint64_t i = 1; i <= 5; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(
        PassUntil(*outbox, seconds(1), [&] { return outbox->counters().ticks.delivered == i; }));
    const uint64_t attempts = sink.attempts();
    ASSERT_TRUE(PassUntil(*outbox, seconds(100), [&] {
      return outbox->counters().spool_files == 0 || sink.attempts() > attempts;
    }));
  }
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("refused", 1)));
  EXPECT_TRUE(IsBalanced(outbox->counters()));
}

TEST_F(OutboxSpoolTest, DropsTheOldestFilesWhenTheSpoolIsFull) {
  ScriptedSink sink(RefuseAll);
  sink.padding = 1000;
  OutboxOptions options = Options();
  options.spool->max_size = 5'500;
  options.spool_after = {};
  const auto outbox = Make(sink, std::move(options));
  for (uint64_t i = 1; i <= 20; ++i) {
    Offer(*outbox, std::to_string(i));
    ASSERT_TRUE(PassUntil(*outbox, seconds(1), [&] {
      const DeliveryCounters counters = outbox->counters();
      return counters.windows_waiting == 0 && counters.ticks.in_memory == 0;
    }));
    EXPECT_LE(outbox->counters().spool_bytes, 5'500);
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
  EXPECT_THAT(outbox->counters().ticks.dropped, ElementsAre(Pair("spool_full", 15)));
  sink.Become(TakeAll);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(sink.delivered(), testing::UnorderedElementsAre("16", "17", "18", "19", "20"));
}

TEST_F(OutboxSpoolTest, DropsWhatIsTooOldWhereverTheWallClockStands) {
  for (const auto step : {hours(1), hours(-1)}) {
    LeaveInSpool({"old"});
    ScriptedSink sink(RefuseAll);
    OutboxOptions options = Options();
    options.spool->max_age = hours(3);
    const auto outbox = Make(sink, std::move(options));
    ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts == 1; }));
    clock_.StepWall(step);
    clock_.Pass(minutes(179));
    Offer(*outbox, "new");
    ASSERT_TRUE(Eventually([&] { return outbox->counters().attempts >= 2; }));
    EXPECT_EQ(outbox->counters().found_in_spool.spooled, 1);
    ASSERT_TRUE(PassUntil(*outbox, seconds(60),
                          [&] { return outbox->counters().found_in_spool.spooled == 0; }));
    EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("too_old", 1)));
    sink.Become(TakeAll);
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  }
}

TEST_F(OutboxSpoolTest, CountsTheAgeOfWhatItFindsFromItsBegin) {
  LeaveInSpool({"old"});
  clock_.Pass(hours(25));
  ScriptedSink sink;
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_THAT(outbox->counters().found_in_spool.dropped, ElementsAre(Pair("too_old", 1)));
}

TEST_F(OutboxSpoolTest, DoesNotSendTwiceWhatWasBeingSentWhenItWasKilled) {
  for (const bool at_least_once : {false, true}) {
    LeaveInSpool({"a"});
    BeginSending();
    ScriptedSink sink;
    OutboxOptions options = Options();
    options.retry.at_least_once = at_least_once;
    const auto outbox = Make(sink, std::move(options));
    ASSERT_TRUE(PassUntilNothingWaits(*outbox));
    const DeliveryTicks found = outbox->counters().found_in_spool;
    EXPECT_EQ(found.delivered, at_least_once ? 1 : 0);
    EXPECT_EQ(found.dropped.contains("maybe_arrived"), !at_least_once);
    EXPECT_TRUE(IsBalanced(outbox->counters()));
  }
}

TEST_F(OutboxSpoolTest, TellsTheDiskBeforeItSends) {
  LeaveInSpool({"a"});
  std::optional<SpoolFile::Status> seen;
  ScriptedSink sink([&](const Parcel&) {
    UniqueFd fd = *Open(Spool() + "/" + FilesInSpool().front(), O_RDWR);
    seen = SpoolFile::Open(std::move(fd))->entries()[0].status;
    return Taken();
  });
  const auto outbox = Make(sink);
  ASSERT_TRUE(PassUntilNothingWaits(*outbox));
  EXPECT_EQ(seen, SpoolFile::Status::kSending);
}

TEST_F(OutboxSpoolTest, LosesWithAFileCutAtAnyByteOnlyWhatIsGone) {
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

TEST_F(OutboxSpoolTest, CountsWhatIsDamagedWhileItWaits) {
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

TEST_F(OutboxSpoolTest, LeavesForeignFilesAloneAndRemovesUnfinishedOnes) {
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

TEST_F(OutboxSpoolTest, ShowsItsFilesToNobodyElse) {
  const mode_t before = ::umask(0);
  LeaveInSpool({"a"});
  ::umask(before);
  EXPECT_EQ(fs::status(Spool()).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(Spool() + "/" + FilesInSpool().front()).permissions(), fs::perms(0600));
}

TEST_F(OutboxSpoolTest, LeavesADirectoryToTheProcessThatHasItAndTakesItOver) {
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

TEST_F(OutboxSpoolTest, LeavesItsDirectoryToTheNextOutboxOnceItIsClosed) {
  ScriptedSink down(RefuseAll);
  const auto closed = Make(down);
  Offer(*closed, "a");
  closed->Close(clock_.Now());
  ScriptedSink sink;
  const auto next = Make(sink);
  ASSERT_TRUE(Eventually([&] { return next->counters().found_in_spool.delivered == 1; }));
}

TEST_F(OutboxSpoolTest, ReadsNothingOfASpoolThatItOpensOnlyToStowAway) {
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

TEST_F(OutboxSpoolTest, GoesWithoutADirectoryThatCannotBeMade) {
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

TEST_F(OutboxSpoolTest, MakesTheDirectoryAnewThatWasDeleted) {
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

// While one lives, no file of this process may grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST_F(OutboxSpoolTest, GoesOnInMemoryWhileTheDiskIsFull) {
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
