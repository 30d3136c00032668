// SPDX-License-Identifier: Apache-2.0
// The sampler on the running kernel. The measure of truth is the kernel's own count of the
// program's runs. On an emulated CPU (tests/vm) most ticks are never delivered, so that nothing
// here may depend on how many there are.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "sampler/sampler.h"
#include "tests/unit/sampler/may_load_bpf.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

void SpinFor(milliseconds time) {
  const auto until = steady_clock::now() + time;
  volatile uint64_t work = 0;
  while (steady_clock::now() < until) {
    for (int i = 0; i < 1000; ++i) work = work + 1;
  }
}

// Runs `body` in a child process, which does not outlive us.
pid_t Fork(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  return pid;
}

// False if `condition` does not come true in time; an emulated CPU takes a while.
bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + seconds(120);
  while (steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

std::unique_ptr<Sampler> LoadOrFail(const Sampler::Options& options) {
  Result<std::unique_ptr<Sampler>> sampler = Sampler::Load(options);
  if (sampler) return *std::move(sampler);
  ADD_FAILURE() << sampler.error().message();
  return nullptr;
}

class SamplerLive : public testing::Test {
 protected:
  void SetUp() override {
    if (!MayLoadBpf()) GTEST_SKIP() << "needs root";
    statistics_ = UniqueFd(bpf_enable_stats(BPF_STATS_RUN_TIME));
    ASSERT_TRUE(statistics_.valid()) << "bpf_enable_stats";
  }

  static uint64_t RunsOf(uint32_t program_id) {
    const UniqueFd fd(bpf_prog_get_fd_by_id(program_id));
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    EXPECT_EQ(bpf_obj_get_info_by_fd(fd.get(), &info, &size), 0);
    return info.run_cnt;
  }

  // Samples `work`, draining on the way, and holds the books against the kernel's.
  static Accounting Record(const Sampler::Options& options, const std::function<void()>& work) {
    const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
    if (!sampler) return {};
    EXPECT_TRUE(sampler->Start().has_value());
    std::atomic<bool> done = false;
    std::thread worker([&] {
      work();
      done = true;
    });
    uint64_t cold = 0;
    while (!done) {
      std::this_thread::sleep_for(milliseconds(100));  // windows of about that length
      EXPECT_TRUE(sampler->Drain().has_value());
      cold += sampler->TakeCold().size();
    }
    worker.join();
    sampler->Stop();
    EXPECT_TRUE(sampler->Drain().has_value());
    cold += sampler->TakeCold().size();
    const Accounting books = sampler->accounting();
    EXPECT_EQ(RunsOf(sampler->tick_program_id()), books.Ticks());
    EXPECT_EQ(sampler->drained() + cold, books.exported);
    const ColdCounters counters = sampler->cold_counters();
    EXPECT_EQ(cold, counters.unknown_process + counters.unknown_place + counters.exotic_rule +
                        counters.hand_written);
    return books;
  }

 private:
  UniqueFd statistics_;
};

// Nobody tells the kernel side of any mapping here. This leaves all it cannot unwind to it.
Sampler::Options WithoutColdSamples(Sampler::Options options) {
  options.cold_per_second = 0;
  return options;
}

TEST_F(SamplerLive, AccountsForEveryRunWithTwoBusyProcesses) {
  const Accounting books = Record({.frequency = {999}}, [] {
    const pid_t one = Fork([] { SpinFor(milliseconds(1500)); });
    const pid_t two = Fork([] { SpinFor(milliseconds(1500)); });
    waitpid(one, nullptr, 0);
    waitpid(two, nullptr, 0);
  });
  EXPECT_GT(books.exported, 0U);
  EXPECT_EQ(books.TotalLost(), 0U);
}

TEST_F(SamplerLive, AccountsForEveryRunWithTwoHundredShortProcesses) {
  const Accounting books = Record({.frequency = {999}}, [] {
    for (int i = 0; i < 200; ++i) {
      waitpid(Fork([] { SpinFor(milliseconds(5)); }), nullptr, 0);
    }
  });
  EXPECT_GT(books.exported, 0U);
  EXPECT_EQ(books.TotalLost(), 0U);
}

TEST_F(SamplerLive, AccountsForEveryRunWithThreadsThatMigrate) {
  const Accounting books = Record({.frequency = {999}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) {
          cpu_set_t one;
          CPU_ZERO(&one);
          CPU_SET((t + i) % static_cast<int>(std::thread::hardware_concurrency()), &one);
          sched_setaffinity(0, sizeof(one), &one);
          SpinFor(milliseconds(3));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_GT(books.exported, 0U);
}

// Two thousand different call chains: each bit of `path` decides which of two functions calls on.
[[gnu::noinline]] void Left(uint32_t path, int depth);
[[gnu::noinline]] void Right(uint32_t path, int depth);
[[gnu::noinline]] void Branch(uint32_t path, int depth) {
  if (depth == 0) return SpinFor(milliseconds(1));
  (path & 1) != 0 ? Left(path >> 1, depth - 1) : Right(path >> 1, depth - 1);
  asm volatile("" ::: "memory");  // no tail call
}
void Left(uint32_t path, int depth) {
  Branch(path, depth);
  asm volatile("" ::: "memory");
}
void Right(uint32_t path, int depth) {
  Branch(path, depth);
  asm volatile("" ::: "memory");
}

TEST_F(SamplerLive, CountsWhatDoesNotFitIntoTheStackMaps) {
  const MapSizes tiny{.counts = 4096, .small_stacks = 4, .medium_stacks = 4, .large_stacks = 4};
  const Accounting books = Record({.frequency = {999}, .sizes = tiny}, [] {
    for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
  });
  EXPECT_GT(books.lost[Accounting::kStackMapFull], 0U);
  EXPECT_GT(books.exported, 0U);
}

TEST_F(SamplerLive, CountsWhatDoesNotFitIntoTheCountMap) {
  const MapSizes tiny{.counts = 4};
  const Accounting books = Record({.frequency = {999}, .sizes = tiny}, [] {
    for (uint32_t path = 0; path < 1500; ++path) Branch(path, 11);
  });
  EXPECT_GT(books.lost[Accounting::kCountMapFull], 0U);
}

TEST_F(SamplerLive, FollowsCpusThatComeAndGo) {
  const std::string sys = testing::TempDir() + "/sampler_live_" + std::to_string(getpid());
  const std::string directory = sys + "/devices/system/cpu";
  std::filesystem::create_directories(directory);
  const auto set_online = [&](const char* list) { std::ofstream(directory + "/online") << list; };
  // Ticks that are due in a while: one CPU's or two CPUs' worth.
  const auto due_per_second = [](const Sampler& sampler) {
    const auto due = [&] {
      const Accounting books = sampler.accounting();
      return static_cast<double>(books.Ticks() + books.undelivered);
    };
    const double before = due();
    const auto began = steady_clock::now();
    SpinFor(milliseconds(300));
    return (due() - before) / std::chrono::duration<double>(steady_clock::now() - began).count();
  };
  set_online("0\n");
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.procfs.sys = sys;
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  EXPECT_NEAR(due_per_second(*sampler), 999, 100);
  if (std::thread::hardware_concurrency() > 1) {
    set_online("0-1\n");
    ASSERT_TRUE(sampler->FollowCpus().has_value());
    EXPECT_NEAR(due_per_second(*sampler), 2 * 999, 200);
    set_online("1\n");
    ASSERT_TRUE(sampler->FollowCpus().has_value());
    EXPECT_NEAR(due_per_second(*sampler), 999, 100);
  }
  sampler->Stop();
  EXPECT_EQ(RunsOf(sampler->tick_program_id()), sampler->accounting().Ticks());
  std::filesystem::remove_all(sys);
}

TEST_F(SamplerLive, FiltersBeforeAnythingElse) {
  const pid_t wanted = Fork([] { SpinFor(seconds(60)); });
  const pid_t other = Fork([] { SpinFor(seconds(60)); });
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.filter.pids = {Pid(static_cast<uint32_t>(wanted))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  WaitFor([&] { return sampler->accounting().exported >= 100; });
  sampler->Stop();
  for (const pid_t pid : {wanted, other}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  const Result<Window> window = sampler->Drain();
  ASSERT_TRUE(window.has_value());
  EXPECT_GE(sampler->accounting().exported, 100U);
  EXPECT_GT(sampler->accounting().filtered, 0U);
  for (const Sample& sample : window->samples) {
    EXPECT_EQ(sample.process.pid, Pid(static_cast<uint32_t>(wanted)));
  }
}

TEST_F(SamplerLive, FollowsChildrenOfAWantedProcess) {
  Sampler::Options options = WithoutColdSamples({.frequency = {999}});
  options.filter.pids = {Pid(static_cast<uint32_t>(getpid()))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  const pid_t child = Fork([] {
    waitpid(Fork([] {
              prctl(PR_SET_NAME, "grandchild");
              SpinFor(seconds(1));
            }),
            nullptr, 0);
  });
  waitpid(child, nullptr, 0);
  sampler->Stop();
  const Result<Window> window = sampler->Drain();
  ASSERT_TRUE(window.has_value());
  uint64_t of_grandchild = 0;
  for (const Sample& sample : window->samples) {
    if (sample.comm == "grandchild") of_grandchild += sample.count;
  }
  EXPECT_GT(of_grandchild, 0U);
  EXPECT_EQ(sampler->missed_children(), 0U);
}

// A process that is all system calls, with a call chain known to the last frame: Root has no
// caller, as its saved frame pointer is null.
enum class Call { kShort, kLong };

[[gnu::noinline]] void CallKernel(Call call) {
  static char buffer[1 << 20];
  const UniqueFd zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  while (true) {
    const long result = call == Call::kShort
                            ? syscall(SYS_getppid)
                            : syscall(SYS_read, zero.get(), buffer, sizeof(buffer));
    if (result < 0) _exit(1);
  }
}
[[gnu::noinline]] void Middle(Call call) {
  CallKernel(call);
  asm volatile("" ::: "memory");  // no tail call
}
[[gnu::noinline]] void Root(Call call) {
  *static_cast<void**>(__builtin_frame_address(0)) = nullptr;
  Middle(call);
  asm volatile("" ::: "memory");
}

// Whether `frame` lies in the code of `function`, which is not longer than that.
template <typename Function>
bool LiesIn(Frame frame, Function* function) {
  constexpr uint64_t kLongest = 512;
  const auto start = reinterpret_cast<uint64_t>(function);
  return frame.kind() == Frame::Kind::kUserAddress && frame.user_address().value() >= start &&
         frame.user_address().value() < start + kLongest;
}

class SamplerLiveInSystemCalls : public SamplerLive, public testing::WithParamInterface<Call> {};

TEST_P(SamplerLiveInSystemCalls, SeesTheWholeUserStack) {
  const pid_t child = Fork([] { Root(GetParam()); });
  Sampler::Options options = WithoutColdSamples({.frequency = {199}});
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->accounting().exported >= 50; }));
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Result<Window> window = sampler->Drain();
  ASSERT_TRUE(window.has_value());

  uint64_t in_system_call = 0;
  uint64_t whole = 0;
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    const auto user = window->FramesOf(stack).subspan(stack.kernel_frames);
    // A tick may also meet the child on its way there, or in an interrupt, or at its end.
    if (stack.kernel_frames == 0 || user.empty() || !LiesIn(user[0], &syscall)) continue;
    in_system_call += sample.count;
    // syscall() has no frame of its own: its caller is what a frame pointer walk leaves out.
    if (stack.end == StackEnd::kNotReady && user.size() == 4 && LiesIn(user[1], &Middle) &&
        LiesIn(user[2], &Root)) {
      whole += sample.count;
    }
  }
  EXPECT_GT(in_system_call, 10U);
  EXPECT_EQ(whole, in_system_call);
}

INSTANTIATE_TEST_SUITE_P(Calls, SamplerLiveInSystemCalls,
                         testing::Values(Call::kShort, Call::kLong), [](const auto& test) {
                           return test.param == Call::kShort ? "Short" : "Long";
                         });

// Has a thread of the kernel look for requests, of which there are none. Returns an errno, or
// never.
int PollInTheKernel() {
  io_uring_params params{};
  params.flags = IORING_SETUP_SQPOLL;
  params.sq_thread_idle = 60'000;  // milliseconds, from when it was woken on
  const long ring = syscall(SYS_io_uring_setup, 8, &params);
  if (ring < 0) return errno;
  while (true) {
    syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    std::this_thread::sleep_for(milliseconds(10));
  }
}

TEST_F(SamplerLive, SeesThatAThreadOfTheKernelInAProcessHasNoUserStack) {
  const pid_t child = Fork([] { _exit(PollInTheKernel()); });
  Sampler::Options options = WithoutColdSamples({.frequency = {199}});
  // As of 5.12, and before, when it was no thread of the process.
  options.filter.comms = {"iou-sqp-" + std::to_string(child), "io_uring-sq"};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  int status = 0;
  pid_t ended = 0;
  EXPECT_TRUE(WaitFor([&] {
    ended = waitpid(child, &status, WNOHANG);
    return ended != 0 || sampler->accounting().exported >= 20;
  }));
  sampler->Stop();
  if (ended != 0) {
    const int error = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    ASSERT_TRUE(error == ENOSYS || error == EPERM) << std::strerror(error);
    GTEST_SKIP() << "io_uring_setup: " << std::strerror(error);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Result<Window> window = sampler->Drain();
  ASSERT_TRUE(window.has_value());
  EXPECT_FALSE(window->samples.empty());
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    EXPECT_TRUE(stack.end == StackEnd::kNoUserStack) << static_cast<int>(stack.end);
    EXPECT_EQ(window->FramesOf(stack).size(), stack.kernel_frames);
  }
}

TEST_F(SamplerLive, ShipsWhatItCannotUnwind) {
  const pid_t child = Fork([] { SpinFor(milliseconds(60000)); });
  Sampler::Options options{.frequency = {199}};
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->cold_counters().unknown_process >= 20; }));
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  uint64_t spinning = 0;
  const std::vector<ColdSample> samples = sampler->TakeCold();
  for (const ColdSample& sample : samples) {
    EXPECT_EQ(sample.process.pid, Pid(static_cast<uint32_t>(child)));
    EXPECT_GT(sample.exec_pages, 0U);
    EXPECT_FALSE(sample.stack.empty());
    // The stack holds a return address into SpinFor's caller, which lies in this test.
    spinning += LiesIn(Frame::User(sample.pc), &SpinFor) ? 1 : 0;
  }
  EXPECT_GE(samples.size(), 20U);
  EXPECT_GT(spinning, 0U);
}

// The first sample of `process` that could not be unwound: it says what the kernel side compares.
ColdSample FirstColdSampleOf(pid_t process, Sampler& sampler) {
  ColdSample found;
  EXPECT_TRUE(WaitFor([&] {
    std::vector<ColdSample> samples = sampler.TakeCold();
    const auto of_process =
        std::ranges::find(samples, Pid(static_cast<uint32_t>(process)),
                          [](const ColdSample& sample) { return sample.process.pid; });
    if (of_process == samples.end()) return false;
    found = std::move(*of_process);
    return true;
  }));
  return found;
}

TEST_F(SamplerLive, TakesAStartTimeThatIsATickLate) {
  const pid_t child = Fork([] { SpinFor(seconds(60)); });
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  const ColdSample sample = FirstColdSampleOf(child, *sampler);
  const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  const auto publish = [&](int64_t ticks_late) {
    ProcessKey process = sample.process;
    process.start_time = StartTime(process.start_time.value() + static_cast<uint64_t>(ticks_late));
    sampler->Publish(process, sample.exec, sample.exec_pages, std::span(&all, 1));
  };
  const auto is_refused = [&] {
    const uint64_t refused = sampler->cold_counters().unknown_process;
    return WaitFor([&] { return sampler->cold_counters().unknown_process > refused + 2; });
  };
  publish(2);
  EXPECT_TRUE(is_refused());
  publish(-1);
  EXPECT_TRUE(is_refused());
  for (const int64_t late : {1, 0}) {
    publish(late);
    const Accounting before = sampler->accounting();
    const uint64_t refused = sampler->cold_counters().unknown_process;
    EXPECT_TRUE(WaitFor([&] { return sampler->accounting().exported > before.exported + 20; }));
    EXPECT_LE(sampler->cold_counters().unknown_process, refused + 1) << "one tick may have begun";
  }
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SamplerLive, GivesAChildWhatIsKnownOfItsParentAndOfNoEarlierProcess) {
  const pid_t parent = Fork([] {
    while (true) {
      const pid_t child = Fork([] { SpinFor(milliseconds(20)); });
      SpinFor(milliseconds(5));
      waitpid(child, nullptr, 0);
    }
  });
  Sampler::Options options{.frequency = {999}};
  options.filter.pids = {Pid(static_cast<uint32_t>(parent))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  const ColdSample sample = FirstColdSampleOf(parent, *sampler);
  const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), {}, 0}};
  const auto publish = [&](uint64_t ticks_late) {
    ProcessKey process = sample.process;
    process.start_time = StartTime(process.start_time.value() + ticks_late);
    sampler->Publish(process, sample.exec, sample.exec_pages, std::span(&all, 1));
  };
  const auto known_samples_of_children = [&] {
    const Result<Window> window = sampler->Drain();
    return std::ranges::count_if(window->samples, [&](const Sample& of) {
      const StackEnd end = window->stacks[of.stack].end;
      return of.process.pid != sample.process.pid && end != StackEnd::kNotReady &&
             end != StackEnd::kNoUserStack;
    });
  };
  EXPECT_EQ(known_samples_of_children(), 0);
  publish(2);
  const uint64_t unknown = sampler->cold_counters().unknown_process;
  EXPECT_TRUE(WaitFor([&] { return sampler->cold_counters().unknown_process > unknown + 50; }));
  EXPECT_EQ(known_samples_of_children(), 0);
  publish(0);
  EXPECT_TRUE(WaitFor([&] { return known_samples_of_children() > 0; }));
  sampler->Stop();
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
}

TEST_F(SamplerLive, KeepsAddressesThatDoNotFitIntoAnObjectFrame) {
  const pid_t child = Fork([] { SpinFor(seconds(60)); });
  Sampler::Options options{.frequency = {999}};
  options.cold_per_second = 1;  // the others stay in the kernel
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  const ColdSample sample = FirstColdSampleOf(child, *sampler);
  const auto spinning = reinterpret_cast<uint64_t>(&SpinFor);
  const auto frames_at = [&](uint64_t elf_address) {
    const PublishedMapping all{.mapping = {Address(0x1000), Address(0x7fff'ffff'f000), ObjectId(7),
                                           spinning - elf_address}};
    sampler->Publish(sample.process, sample.exec, sample.exec_pages, std::span(&all, 1));
    EXPECT_TRUE(sampler->Drain().has_value());
    const uint64_t before = sampler->accounting().exported;
    EXPECT_TRUE(WaitFor([&] { return sampler->accounting().exported > before + 50; }));
    std::vector<Frame> frames;
    const Result<Window> window = sampler->Drain();
    for (const Stack& stack : window->stacks) {
      const auto user = window->FramesOf(stack).subspan(stack.kernel_frames);
      if (!user.empty()) frames.push_back(user[0]);
    }
    return frames;
  };
  const auto of_spinning = [&](Frame frame) { return LiesIn(frame, &SpinFor); };
  const auto of_object = [](Frame frame) { return frame.kind() == Frame::Kind::kObject; };
  EXPECT_THAT(frames_at(0x1000), testing::Contains(testing::ResultOf(of_object, true)));
  const std::vector<Frame> beyond = frames_at(uint64_t{1} << 41);
  EXPECT_THAT(beyond, testing::Contains(testing::ResultOf(of_spinning, true)));
  EXPECT_THAT(beyond, testing::Each(testing::ResultOf(of_object, false)));
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Longer than any test may take.
constexpr std::chrono::minutes kForever{30};

TEST_F(SamplerLive, WakesWhoWaitsForColdSamples) {
  Sampler::Options options{.frequency = {199}};
  options.sizes.cold_bytes = 1 << 18;
  const pid_t child = Fork([] { SpinFor(milliseconds(60000)); });
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  size_t taken = 0;
  while (taken < 50) {
    sampler->WaitForCold(kForever);
    taken += sampler->TakeCold().size();
  }
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(SamplerLive, WakesWhoWaitsForTables) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail({});
  ASSERT_TRUE(sampler);
  sampler->WakeCold();
  sampler->WaitForCold(kForever);
  const PublishedMapping mapping{.mapping = {Address(0x1000), Address(0x2000), ObjectId(7), 0}};
  sampler->Publish({Pid(4'000'000), StartTime(1)}, ExecId(1), 1, std::span(&mapping, 1));
  sampler->WaitForCold(kForever);
  EXPECT_EQ(sampler->TakeWantedTables(), std::vector{ObjectId(7)});
}

TEST_F(SamplerLive, ShipsNoMoreThanItMay) {
  Sampler::Options options{.frequency = {999}};
  options.cold_per_second_of_process = 20;
  const pid_t child = Fork([] { SpinFor(milliseconds(60000)); });
  options.filter.pids = {Pid(static_cast<uint32_t>(child))};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler && sampler->Start());
  EXPECT_TRUE(WaitFor([&] { return sampler->cold_counters().refused >= 100; }));
  sampler->Stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Result<Window> window = sampler->Drain();
  ASSERT_TRUE(window.has_value());
  uint64_t stayed = 0;
  for (const Sample& sample : window->samples) {
    const Stack& stack = window->stacks[sample.stack];
    if (stack.end == StackEnd::kNotReady) stayed += sample.count;
    EXPECT_TRUE(stack.end != StackEnd::kComplete) << "a stack that stops early says so";
  }
  EXPECT_EQ(stayed, sampler->cold_counters().refused);
}

TEST_F(SamplerLive, ListsItselfAmongTheTasks) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail({});
  ASSERT_TRUE(sampler);
  const MonotonicTime before = MonotonicNow();
  const Result<std::vector<pyro_task_record>> tasks = sampler->ListTasks();
  ASSERT_TRUE(tasks.has_value());
  const auto self =
      std::ranges::find(*tasks, static_cast<uint32_t>(getpid()), &pyro_task_record::tid);
  ASSERT_NE(self, tasks->end());
  EXPECT_EQ(self->pid, self->tid);
  EXPECT_GE(self->now_ns, before.value());
  EXPECT_GT(self->start_boottime_ns, 0U);
}

}  // namespace
}  // namespace pyrometer
