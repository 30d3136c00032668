// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_directory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using namespace std::chrono_literals;

using State = ContainerDirectory::Answer::State;
using ListResult = Result<std::vector<ContainerMetadata>>;

ListResult Containers(const std::vector<std::string>& ids) {
  std::vector<ContainerMetadata> list;
  for (const std::string& id : ids) {
    list.push_back(
        {.id = id, .name = "name-of-" + id, .pod = std::make_shared<const PodMetadata>()});
  }
  return list;
}

Error Failure(ErrorCode code = ErrorCode::kIo) {
  return Error(code, "no luck");
}

// What a source is asked and says, which a test decides.
class Script {
 public:
  // Answers the next listings so, each one once, the last of all for ever.
  void Answer(std::vector<ListResult> answers) {
    const std::lock_guard lock(mutex_);
    answers_.assign(answers.begin(), answers.end());
  }
  // Neither this listing, counted from 1, nor a later one answers before Release().
  void Hold(int first = 1) {
    const std::lock_guard lock(mutex_);
    first_held_ = first;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    first_held_.reset();
    changed_.notify_all();
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

  ListResult Next() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !first_held_ || begun_ < *first_held_ || cancelled_; });
    if (cancelled_) return Failure();
    ListResult next = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return next;
  }
  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ListResult> answers_{Containers({})};
  int begun_ = 0;
  std::optional<int> first_held_;
  bool cancelled_ = false;
};

class ScriptedSource final : public ContainerSource {
 public:
  explicit ScriptedSource(Script& script) : script_(script) {}
  ListResult List() override { return script_.Next(); }
  void Cancel() override { script_.Cancel(); }

 private:
  Script& script_;
};

class ContainerDirectoryTest : public testing::Test {
 protected:
  void Start(const std::function<void(ContainerDirectory::Options&)>& change = {}) {
    ContainerDirectory::Options options;
    options.pause = 1ms;
    options.longest_pause = 5ms;
    options.longest_delay = 0ms;
    if (change) change(options);
    directory_.emplace(options, std::make_unique<ScriptedSource>(script_), clock_);
  }

  State StateOf(const std::string& id) { return directory_->Find(id).state; }

  // Lets time pass until `holds`, a pause at each look; the directory notices when it is asked.
  template <typename Condition>
  bool PassUntil(const Condition& holds) {
    return Eventually([&] {
      if (holds()) return true;
      clock_.Advance(1ms);
      directory_->counters();
      return false;
    });
  }
  void Await(const std::string& id, State state) {
    EXPECT_TRUE(PassUntil([&] { return StateOf(id) == state; })) << id;
  }
  // Until so many listings have begun.
  void AwaitListings(int count) {
    EXPECT_TRUE(PassUntil([&] { return script_.begun() >= count; }));
  }

  FakeClock clock_;
  Script script_;
  std::optional<ContainerDirectory> directory_;
};

// The thread gets time for a mistake, as much as another one's whole work takes.
TEST_F(ContainerDirectoryTest, AsksNobodyUntilItIsAsked) {
  Start();
  Script other;
  ContainerDirectory asked({}, std::make_unique<ScriptedSource>(other), clock_);
  asked.Find("a");
  EXPECT_TRUE(Eventually([&] { return other.begun() == 1; }));
  EXPECT_EQ(script_.begun(), 0);
}

TEST_F(ContainerDirectoryTest, AnswersAtOnceAndLearnsMeanwhile) {
  script_.Answer({Containers({"a", "b"})});
  script_.Hold();
  Start();
  EXPECT_EQ(StateOf("a"), State::kAwaited);
  AwaitListings(1);
  EXPECT_EQ(StateOf("a"), State::kAwaited);
  script_.Release();
  Await("a", State::kKnown);
  EXPECT_EQ(directory_->Find("a").metadata->name, "name-of-a");
  EXPECT_EQ(StateOf("b"), State::kKnown) << "though nobody had asked for it";
  EXPECT_EQ(script_.begun(), 1);
  EXPECT_EQ(directory_->counters().known, 2);
}

TEST_F(ContainerDirectoryTest, AsksAgainForWhatTheRuntimeHasNotMadeYet) {
  script_.Answer({Containers({}), Containers({}), Containers({"a"})});
  Start();
  EXPECT_EQ(StateOf("a"), State::kAwaited);
  AwaitListings(3);
  Await("a", State::kKnown);
}

TEST_F(ContainerDirectoryTest, StopsAskingForWhatIsOfNoRuntime) {
  script_.Answer({Containers({"a"})});
  Start();
  EXPECT_EQ(StateOf("b"), State::kAwaited);
  Await("b", State::kUnknown);
  EXPECT_EQ(script_.begun(), 3);
  EXPECT_EQ(directory_->counters().unknown, 1);
  EXPECT_EQ(StateOf("b"), State::kUnknown);
  // Only the next one that is new makes it list again.
  StateOf("c");
  Await("c", State::kUnknown);
  EXPECT_EQ(script_.begun(), 6);
}

// A listing that began before may have been made before the container was.
TEST_F(ContainerDirectoryTest, CountsNoListingThatBeganBeforeTheQuestion) {
  script_.Answer({Containers({}), Containers({"b"})});
  script_.Hold();
  Start([](auto& options) { options.most_misses = 1; });
  EXPECT_EQ(StateOf("a"), State::kAwaited);
  AwaitListings(1);
  clock_.Advance(1ns);
  EXPECT_EQ(StateOf("b"), State::kAwaited);
  script_.Release();
  ASSERT_TRUE(Eventually([&] { return directory_->counters().listings == 1; }));
  EXPECT_EQ(StateOf("b"), State::kAwaited) << "the first began before";
  Await("b", State::kKnown);
}

TEST_F(ContainerDirectoryTest, LearnsLaterWhatItHadGivenUp) {
  script_.Answer({Containers({}), Containers({}), Containers({}), Containers({"a", "b"})});
  Start();
  StateOf("a");
  Await("a", State::kUnknown);
  StateOf("b");
  Await("b", State::kKnown);
  EXPECT_EQ(StateOf("a"), State::kKnown);
}

TEST_F(ContainerDirectoryTest, AsksByItselfForWhatIsListedLate) {
  script_.Answer(
      {Containers({}), Containers({}), Containers({}), Containers({}), Containers({"a"})});
  Start([](auto& options) { options.longest_delay = 1h; });
  StateOf("a");
  Await("a", State::kKnown);
  EXPECT_EQ(script_.begun(), 5);
}

class NoRuntime : public ContainerDirectoryTest, public testing::WithParamInterface<ErrorCode> {};

TEST_P(NoRuntime, IsNotWaitedForAndNotAskedSoonAgain) {
  script_.Answer({Failure(GetParam())});
  Start([](auto& options) { options.longest_pause = 1h; });
  StateOf("a");
  Await("a", State::kUnknown);
  EXPECT_EQ(StateOf("b"), State::kUnknown);
  EXPECT_EQ(directory_->counters().awaited, 0);
  directory_.reset();
  EXPECT_EQ(script_.begun(), 1);
}

INSTANTIATE_TEST_SUITE_P(Errors, NoRuntime,
                         testing::Values(ErrorCode::kNotFound, ErrorCode::kPermission,
                                         ErrorCode::kUnsupported));

TEST_F(ContainerDirectoryTest, GoesOnAfterFailuresWithoutMakingAnyoneWait) {
  script_.Answer({Failure(), Failure(), Failure(), Failure(), Containers({"a"})});
  script_.Hold(4);
  Start();
  EXPECT_EQ(StateOf("a"), State::kAwaited);
  AwaitListings(4);
  EXPECT_EQ(StateOf("b"), State::kUnknown) << "after three failures";
  script_.Release();
  Await("a", State::kKnown);
  EXPECT_EQ(directory_->counters().failures, 4);
}

TEST_F(ContainerDirectoryTest, TellsOfFailuresAndOfTheirEnd) {
  std::mutex mutex;
  std::vector<std::string> told;
  script_.Answer({Failure(), Containers({}), Containers({})});
  Start([&](auto& options) {
    options.told = [&](const Error* error) {
      const std::lock_guard lock(mutex);
      told.push_back(error == nullptr ? "good" : error->message());
    };
  });
  StateOf("a");
  AwaitListings(4);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(told, ElementsAre("no luck", "good"));
}

TEST_F(ContainerDirectoryTest, RemembersWhatHasEndedWhileItIsAskedFor) {
  script_.Answer({Containers({"a", "b"}), Containers({})});
  Start([](auto& options) { options.keep = 10min; });
  StateOf("a");
  Await("a", State::kKnown);
  // New containers make it list again.
  const auto list_in = [&](std::chrono::minutes time, const std::string& new_one) {
    const uint64_t before = directory_->counters().listings;
    clock_.Advance(time);
    EXPECT_EQ(StateOf("a"), State::kKnown);
    StateOf(new_one);
    EXPECT_TRUE(Eventually([&] { return directory_->counters().listings > before; }));
    return directory_->counters().known;
  };
  EXPECT_EQ(list_in(9min, "new"), 2);
  EXPECT_EQ(list_in(9min, "newer"), 1);
  EXPECT_EQ(StateOf("a"), State::kKnown);
}

TEST_F(ContainerDirectoryTest, RemembersSoManyAndNoMore) {
  script_.Answer({Containers({"listed"})});
  Start([](auto& options) { options.most_containers = 100; });
  StateOf("listed");
  Await("listed", State::kKnown);
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(1us);
    StateOf(fmt::format("new-{}", i));
    StateOf("listed");
    const ContainerDirectory::Counters counters = directory_->counters();
    ASSERT_LE(counters.known + counters.awaited + counters.unknown, 101);
  }
  EXPECT_EQ(StateOf("listed"), State::kKnown);
}

TEST_F(ContainerDirectoryTest, EndsInTheMiddleOfAListing) {
  script_.Hold();
  Start();
  StateOf("a");
  AwaitListings(1);
  directory_.reset();
}

}  // namespace
}  // namespace pyrometer
