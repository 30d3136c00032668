// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/unique_fd.h"
#include "foreign/in_process_indexer.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Room = ReaderPool::Room;

constexpr seconds kLong(60);
constexpr SourceTrust kRoot{.owner = 0};
constexpr SourceTrust kSomebody{.owner = 1000};

UniqueFd FileThatSays(std::string_view text) {
  UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), text).has_value());
  return fd;
}

// Does what a file tells, as a reader does that a file has taken over.
class TakenOver : public InProcessIndexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    std::array<char, 100> bytes{};
    const ssize_t size = ::pread(fd, bytes.data(), bytes.size(), 0);
    const std::string_view told(bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (told == "open") ::open("/", O_RDONLY | O_CLOEXEC);
    if (told == "connect") ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (told == "execute") ::execl("/bin/true", "true", nullptr);
    if (told == "fork") ::fork();
    if (told == "signal") ::kill(::getppid(), SIGKILL);
    if (told == "run data") ::mmap(nullptr, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (told == "write") ::pwrite(fd, "x", 1, 0);
    if (told == "abort") std::abort();
    while (told == "spin") spins_ = spins_ + 1;
    if (told == "work") Work(milliseconds(20));
    if (told == "take memory") std::vector<char>(size_t{64} << 20, 'x').swap(taken_);
    if (told == "fail") return Fail(ErrorCode::kIo, "as it was told");
    ObjectFacts facts;
    facts.build_id = BuildId(std::vector<std::byte>(1, static_cast<std::byte>(++tasks_)));
    return facts;
  }

 private:
  // Takes so much CPU time.
  void Work(std::chrono::nanoseconds cpu) {
    const auto used = [] {
      timespec time{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    for (const auto begin = used(); used() - begin < cpu;) spins_ = spins_ + 1;
  }

  volatile uint64_t spins_ = 0;
  std::vector<char> taken_;
  uint8_t tasks_ = 0;  // of this process
};

class ReaderPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReaderPool> Start(ReaderPool::Options options) const {
    options.indexer = std::make_shared<TakenOver>();
    Result<std::unique_ptr<ReaderPool>> pool = ReaderPool::Start(options);
    EXPECT_TRUE(pool.has_value()) << pool.error().message();
    return pool ? *std::move(pool) : nullptr;
  }

  static Result<std::unique_ptr<ReaderPool::Task>> Begin(ReaderPool& pool, std::string_view told,
                                                         const SourceTrust& trust = kRoot,
                                                         seconds time = kLong,
                                                         milliseconds cpu = kLong) {
    ASSIGN_OR_RETURN(std::unique_ptr<ReaderPool::Task> task,
                     pool.Take(trust, {.room = Room::kSmall, .time = time}));
    const UniqueFd file = FileThatSays(told);
    RETURN_IF_ERROR(
        task->Begin({.cpu_ms = static_cast<uint64_t>(cpu.count())}, {.own = file.get()}, {}));
    return task;
  }
  // What a reader answers: how many tasks it has done.
  static Result<int> Ask(ReaderPool& pool, std::string_view told,
                         const SourceTrust& trust = kRoot) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ReaderPool::Task> task, Begin(pool, told, trust));
    ASSIGN_OR_RETURN(const ObjectFacts facts, ReceiveFacts(*task));
    return static_cast<int>(facts.build_id.bytes().front());
  }
  static std::optional<ErrorCode> CodeOf(const Result<int>& answer) {
    return answer ? std::nullopt : std::optional(answer.error().code());
  }

  const ReaderPool::Options by_default_{.clock = std::make_shared<Clock>()};
};

TEST_F(ReaderPoolTest, ReadsWithWhatTheMachineAllows) {
  const auto pool = Start(by_default_);
  EXPECT_TRUE(pool->level().filter);
  EXPECT_TRUE(pool->level().no_capabilities);
  EXPECT_TRUE(::geteuid() == 0 || pool->level().own_user == 0);
  EXPECT_EQ(Ask(*pool, "").value(), 1);
  EXPECT_EQ(Ask(*pool, "").value(), 2) << "by the same one";
  EXPECT_EQ(pool->counters().started, 1U);
  EXPECT_EQ(pool->counters().tasks, 2U);
}

TEST_F(ReaderPoolTest, LosesAReaderThatDoesWhatItMayNot) {
  const auto pool = Start(by_default_);
  const auto crimes = {"open",   "connect",  "execute", "fork",
                       "signal", "run data", "write",   "abort"};
  for (const char* crime : crimes) {
    const Result<int> answer = Ask(*pool, crime);
    EXPECT_EQ(CodeOf(answer), ErrorCode::kInternal) << crime;
    EXPECT_EQ(Ask(*pool, "").value_or(0), 1) << "the next task has a reader that is new";
  }
  EXPECT_EQ(pool->counters().died, crimes.size());
}

TEST_F(ReaderPoolTest, LosesAReaderThatIsKilled) {
  const auto pool = Start(by_default_);
  const auto task = Begin(*pool, "spin");
  ASSERT_TRUE(task.has_value());
  const std::string nursery = std::to_string(pool->nursery());
  const std::string children =
      ReadFile("/proc/" + nursery + "/task/" + nursery + "/children").value_or("");
  const std::string_view youngest = std::string_view(children).substr(
      children.rfind(' ', children.size() - 2) + 1);  // after the nursery's twin
  ASSERT_NE(youngest, "");
  ::kill(std::stoi(std::string(youngest)), SIGKILL);
  EXPECT_EQ(ReceiveFacts(**task).error().code(), ErrorCode::kInternal);
  EXPECT_EQ(pool->counters().died, 1U);
  EXPECT_EQ(Ask(*pool, "").value_or(0), 1);
}

TEST_F(ReaderPoolTest, GivesUpAReaderThatIsLate) {
  const auto pool = Start(by_default_);
  const auto task = Begin(*pool, "spin", kRoot, seconds(1));
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(ReceiveFacts(**task).error().code(), ErrorCode::kIo);
  EXPECT_EQ(pool->counters().late, 1U);
  EXPECT_EQ(Ask(*pool, "").value_or(0), 1);
}

TEST_F(ReaderPoolTest, GivesUpWhenStopped) {
  const auto pool = Start(by_default_);
  std::stop_source stop;
  stop.request_stop();
  const auto task = pool->Take(kRoot, {.time = kLong, .stop = stop.get_token()});
  ASSERT_TRUE(task.has_value());
  const UniqueFd file = FileThatSays("spin");
  ASSERT_TRUE((*task)->Begin({}, {.own = file.get()}, {}).has_value());
  EXPECT_EQ(ReceiveFacts(**task).error().code(), ErrorCode::kExhausted);
}

// By a clock that stands still, so that nothing is earned.
TEST_F(ReaderPoolTest, ReadsNothingMoreForWhomHasSpentTheCpuTimeThatHeMayTake) {
  ReaderPool::Options options = by_default_;
  options.clock = std::make_shared<FakeClock>();
  options.cpu = {.each = milliseconds(10)};
  const auto pool = Start(options);
  constexpr Payer kAlice{.user = 1000};
  constexpr Payer kBob{.user = 1001};
  const auto ask = [&](const Payer& payer, std::string_view told) -> std::optional<ErrorCode> {
    auto task = pool->Take(kRoot, {.payer = payer, .room = Room::kSmall, .time = kLong});
    if (!task) return task.error().code();
    const UniqueFd file = FileThatSays(told);
    EXPECT_TRUE((*task)->Begin({.cpu_ms = 60'000}, {.own = file.get()}, {}).has_value());
    return ReceiveFacts(**task) ? std::nullopt : std::optional(ErrorCode::kInternal);
  };
  EXPECT_EQ(ask(kAlice, "work"), std::nullopt);
  EXPECT_EQ(ask(kAlice, ""), ErrorCode::kIo);
  EXPECT_EQ(pool->counters().over_cpu, 1U);
  EXPECT_GE(pool->counters().cpu_us, 20'000U);
  EXPECT_EQ(ask(kBob, ""), std::nullopt);
}

TEST_F(ReaderPoolTest, BoundsTheCpuTimeOfATask) {
  const auto pool = Start(by_default_);
  const auto task = Begin(*pool, "spin", kRoot, kLong, milliseconds(20));
  ASSERT_TRUE(task.has_value());
  const Error error = ReceiveFacts(**task).error();
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_NE(error.message().find("CPU time"), std::string::npos) << error.message();
  EXPECT_EQ(Ask(*pool, "").value_or(0), 1);
}

#if !defined(__SANITIZE_ADDRESS__)  // whose shadow no limit on memory allows
TEST_F(ReaderPoolTest, BoundsTheMemoryOfATask) {
  const auto pool = Start(by_default_);
  EXPECT_EQ(CodeOf(Ask(*pool, "take memory")), ErrorCode::kExhausted);
  EXPECT_EQ(Ask(*pool, "").value_or(0), 1);
  EXPECT_EQ(pool->counters().died, 0U) << "it has said why";
}
#endif

// One that a file has taken over lies about the next, too.
TEST_F(ReaderPoolTest, KeepsReadersApartByWhoMadeTheirFiles) {
  const auto pool = Start(by_default_);
  EXPECT_EQ(Ask(*pool, "", kRoot).value_or(0), 1);
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 1);
  EXPECT_EQ(Ask(*pool, "", kRoot).value_or(0), 2);
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Ask(*pool, "", SourceTrust()).value_or(0), 1);
}

TEST_F(ReaderPoolTest, TrustsNoReaderThatHasFailed) {
  const auto pool = Start(by_default_);
  EXPECT_EQ(CodeOf(Ask(*pool, "fail")), ErrorCode::kIo);
  EXPECT_EQ(Ask(*pool, "").value_or(0), 1);
}

TEST_F(ReaderPoolTest, HasOneBudgetForAll) {
  ReaderPool::Options options = by_default_;
  options.for_others = 2 * options.of_small;
  const auto pool = Start(options);
  auto first = pool->Take(kRoot, {.time = kLong});
  auto second = pool->Take(kSomebody, {.time = kLong});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(pool->counters().reserved, options.for_others);
  const auto third = pool->Take(kRoot, {.time = milliseconds(10)});
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().message(), "not read: over budget");
  EXPECT_EQ(pool->counters().no_room, 1U);
  std::jthread ends([&] { first->reset(); });
  EXPECT_TRUE(pool->Take(kRoot, {.time = kLong}).has_value()) << "when there is room";
}

TEST_F(ReaderPoolTest, GivesRoomInTheOrderInWhichItWasAskedFor) {
  ReaderPool::Options options = by_default_;
  options.for_others = options.of_large;
  const auto pool = Start(options);
  auto first = pool->Take(kRoot, {.time = kLong});
  ASSERT_TRUE(first.has_value());
  std::atomic<bool> has_room = false;
  std::jthread large([&] {
    const auto task = pool->Take(kRoot, {.room = Room::kLarge, .time = kLong});
    has_room = task.has_value();
  });
  // One who comes later, and whom there would be room for, does not keep it waiting for ever.
  EXPECT_TRUE(
      Eventually([&] { return !pool->Take(kSomebody, {.time = milliseconds(10)}).has_value(); }));
  first->reset();
  large.join();
  EXPECT_TRUE(has_room);
}

TEST_F(ReaderPoolTest, HasRoomForHeadersWhateverElseIsRead) {
  ReaderPool::Options options = by_default_;
  options.for_others = options.of_small;
  options.for_headers = 2 * options.of_headers;
  const auto pool = Start(options);
  const auto other = pool->Take(kRoot, {.time = kLong});
  ASSERT_TRUE(other.has_value());
  std::jthread waits([&] { pool->Take(kSomebody, {.time = milliseconds(50)}).has_value(); });
  const ReaderPool::Limits of_headers{.room = Room::kHeaders, .time = milliseconds(10)};
  {
    const auto first = pool->Take(kRoot, of_headers);
    const auto second = pool->Take(kSomebody, of_headers);
    EXPECT_TRUE(first && second);
    EXPECT_EQ(pool->counters().reserved, options.for_others + options.for_headers);
    EXPECT_FALSE(pool->Take(kRoot, of_headers).has_value());
  }
  EXPECT_TRUE(pool->Take({.owner = 1001}, {.room = Room::kHeaders, .time = kLong}).has_value())
      << "idle ones go";
}

TEST_F(ReaderPoolTest, EndsIdleReadersForRoom) {
  ReaderPool::Options options = by_default_;
  options.for_others = options.of_small;
  const auto pool = Start(options);
  for (const SourceTrust& trust : {kRoot, kSomebody, kRoot}) {
    EXPECT_EQ(Ask(*pool, "", trust).value_or(0), 1);
  }
  EXPECT_EQ(pool->counters().started, 3U);
  EXPECT_EQ(pool->counters().living, 1U);
}

TEST_F(ReaderPoolTest, EndsReadersThatHadNoTaskForLong) {
  const auto clock = std::make_shared<FakeClock>();
  const auto pool = Start({.clock = clock, .longest_idle = seconds(10)});
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 1);
  clock->Advance(seconds(9));
  pool->EndLongIdle();
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 2);
  clock->Advance(seconds(9));
  pool->EndLongIdle();  // the first one, of root
  EXPECT_TRUE(Eventually([&] { return pool->counters().living == 1; }));
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 3);
  clock->Advance(seconds(10));
  pool->EndLongIdle();
  EXPECT_TRUE(Eventually([&] { return pool->counters().living == 0; }));
  EXPECT_EQ(Ask(*pool, "", kSomebody).value_or(0), 1);
}

TEST_F(ReaderPoolTest, GoesOnWhenItsNurseryIsKilled) {
  const auto pool = Start(by_default_);
  const auto answers = [&] { return Ask(*pool, "").has_value(); };
  for (int i = 0; i < 3; ++i) {
    const pid_t nursery = pool->nursery();
    ::kill(nursery, SIGKILL);
    // What it had forked goes with it, when the kernel comes to it.
    EXPECT_TRUE(Eventually([&] { return answers() && pool->nursery() != nursery; }));
  }
}

}  // namespace
}  // namespace pyrometer
