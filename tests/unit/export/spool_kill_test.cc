// SPDX-License-Identifier: Apache-2.0
// Processes that are killed while they write the spool, and while they send from it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "export/outbox.h"
#include "export/spool_directory.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {
namespace {

// A child that runs `run(fd)`, and tells on the pipe `fd` what it has done, a line each.
class Child {
 public:
  explicit Child(const std::function<void(int)>& run) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.Reset(ends[0]);
    UniqueFd writer(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    run(writer.get());
    ::_exit(0);
  }
  ~Child() {
    if (pid_ > 0) Kill();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for so many lines, or the child's end.
  void AwaitLines(size_t lines) {
    char c = 0;
    while (lines != 0 && ::read(reader_.get(), &c, 1) == 1) {
      told_.push_back(c);
      if (c == '\n') --lines;
    }
  }

  // Everything it told before it died.
  std::vector<std::string> Kill() {
    ::kill(std::exchange(pid_, 0), SIGKILL);
    ::wait(nullptr);
    told_ += *ReadAll(reader_.get(), size_t{1} << 20);
    std::vector<std::string> lines;
    for (const std::string_view line : Split(told_, '\n')) {
      if (!line.empty()) lines.emplace_back(line);
    }
    return lines;
  }

 private:
  UniqueFd reader_;
  pid_t pid_ = 0;
  std::string told_;
};

OutboxOptions OptionsFor(const std::string& spool) {
  OutboxOptions options;
  options.name = "test";
  options.retry.min_backoff = std::chrono::microseconds(100);
  options.retry.max_backoff = std::chrono::milliseconds(1);
  options.spool = SpoolOptions{.directory = spool};
  options.spool_after = {};
  return options;
}

// Offers windows of one tick to a sink that is down, and tells of each that is in the spool.
void FillSpool(const std::string& spool, int tell) {
  const Clock clock;
  ReadableLog log(clock);
  ScriptedSink sink([](const Parcel&) { return Refused(); });
  Outbox outbox(OptionsFor(spool), sink, clock, log.log());
  for (int i = 0; i < 1000; ++i) {
    const std::string name = std::to_string(i);
    outbox.Offer(WindowOf({ProfileNamed(name, 1, clock.WallNow())}));
    if (!Eventually([&] { return outbox.counters().ticks.in_memory == 0; })) return;
    WriteMessage(tell, name + "\n");
  }
}

// Sends what is in the spool, and tells of what has arrived at the very moment it does.
void EmptySpool(const std::string& spool, int tell) {
  const Clock clock;
  ReadableLog log(clock);
  ScriptedSink sink([&](const Parcel& parcel) {
    WriteMessage(tell, parcel.series + "\n");
    return Taken();
  });
  Outbox outbox(OptionsFor(spool), sink, clock, log.log());
  Eventually([&] {
    const DeliveryCounters counters = outbox.counters();
    return counters.has_spool && counters.spool_files == 0;
  });
}

// Kills a child at a random moment after it told a random number of lines.
std::vector<std::string> RunAndKill(std::mt19937& random, const std::function<void(int)>& run) {
  Child child(run);
  child.AwaitLines(random() % 12);
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 3000);
  while (std::chrono::steady_clock::now() < end) {
  }
  return child.Kill();
}

// What was being sent, as the disk says: the next run counts it as dropped.
void AddDoubtful(const std::string& spool, std::set<std::string>& doubtful) {
  const Result<SpoolDirectory> directory = SpoolDirectory::Open(spool);
  ASSERT_TRUE(directory.has_value());
  const Result<std::vector<uint64_t>> numbers = directory->List();
  ASSERT_TRUE(numbers.has_value());
  for (const uint64_t number : *numbers) {
    const Result<SpoolFile> file = directory->OpenFile(number);
    ASSERT_TRUE(file.has_value());
    for (uint32_t i = 0; i < file->entries().size(); ++i) {
      if (file->entries()[i].status != SpoolFile::Status::kSending) continue;
      doubtful.insert(file->Read(i)->series);
    }
  }
}

TEST(SpoolKilledAtAnyMoment, KeepsWhatWasAcknowledgedAndSendsNothingTwice) {
  constexpr uint64_t kSeed = 20;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 24; ++round) {
    const TemporaryTree tree;
    const std::string spool = tree.Path("spool");
    const std::vector<std::string> acknowledged =
        RunAndKill(random, [&](int tell) { FillSpool(spool, tell); });
    std::set<std::string> doubtful;
    AddDoubtful(spool, doubtful);
    std::map<std::string, int> arrived;
    for (int run = 0; run < 2; ++run) {
      for (const std::string& name :
           RunAndKill(random, [&](int tell) { EmptySpool(spool, tell); })) {
        ++arrived[name];
      }
      AddDoubtful(spool, doubtful);
    }
    const SteppedClock clock;
    ReadableLog log(clock);
    ScriptedSink sink;
    OutboxOptions options = OptionsFor(spool);
    options.max_age = options.spool->max_age = kForEver;
    Outbox outbox(std::move(options), sink, clock, log.log());
    ASSERT_TRUE(Eventually([&] {
      const DeliveryCounters counters = outbox.counters();
      return counters.has_spool && counters.spool_files == 0;
    }));
    const DeliveryCounters last = outbox.counters();
    EXPECT_TRUE(IsBalanced(last));
    EXPECT_EQ(last.unreadable, 0);
    for (const std::string& name : sink.delivered()) ++arrived[name];
    for (const std::string& name : acknowledged) {
      EXPECT_TRUE(arrived.contains(name) || doubtful.contains(name)) << name << " is missing";
    }
    for (const auto& [name, times] : arrived) EXPECT_EQ(times, 1) << name << " in round " << round;
  }
}

TEST(SpoolKilledAtAnyMoment, SendsEverythingAgainThatMayNotHaveArrivedIfItShall) {
  std::mt19937 random(21);
  for (int round = 0; round < 8; ++round) {
    const TemporaryTree tree;
    const std::string spool = tree.Path("spool");
    const std::vector<std::string> acknowledged =
        RunAndKill(random, [&](int tell) { FillSpool(spool, tell); });
    const Clock clock;
    ReadableLog log(clock);
    ScriptedSink sink;
    OutboxOptions options = OptionsFor(spool);
    options.retry.at_least_once = true;
    Outbox outbox(std::move(options), sink, clock, log.log());
    ASSERT_TRUE(Eventually([&] {
      const DeliveryCounters counters = outbox.counters();
      return counters.has_spool && counters.spool_files == 0;
    }));
    const std::vector<std::string> delivered = sink.delivered();
    for (const std::string& name : acknowledged) {
      EXPECT_EQ(std::ranges::count(delivered, name), 1) << name << " in round " << round;
    }
  }
}

}  // namespace
}  // namespace pyrometer
