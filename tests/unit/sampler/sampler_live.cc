// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sampler/sampler_live.h"

#include <bpf/bpf.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>
#include <utility>

#include "tests/unit/sampler/may_load_bpf.h"

namespace pyrometer {

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

pid_t Fork(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  return pid;
}

void Child::End() {
  if (std::exchange(ended_, true)) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::AwaitStop() const {
  int status = 0;
  waitpid(pid_, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status));
}

void Child::Continue() const {
  kill(pid_, SIGCONT);
}

void Child::Finish() {
  if (std::exchange(ended_, true)) return;
  Continue();
  waitpid(pid_, nullptr, 0);
}

void ExpectDue(uint64_t ticks, uint64_t cpus, Hertz frequency, const Reading& first,
               const Reading& last) {
  using Seconds = std::chrono::duration<double>;
  // The kernel counts by a clock that nothing corrects; ours may be made to go so much slower or
  // faster (adjtimex(2)).
  constexpr double kSlew = 500e-6;
  const auto due = [&](Seconds time) {
    return time.count() * static_cast<double>(cpus) * frequency.value;
  };
  const auto parts = static_cast<double>(2 * cpus);
  EXPECT_GE(static_cast<double>(ticks), due(last.begin - first.end) * (1 - kSlew) - parts);
  EXPECT_LE(static_cast<double>(ticks), due(last.end - first.begin) * (1 + kSlew) + parts);
}

bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + seconds(120);
  while (steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}

std::unique_ptr<Sampler> LoadOrFail(const Sampler::Options& options) {
  static const Clock clock;
  Result<std::unique_ptr<Sampler>> sampler = Sampler::Load(options, clock);
  if (sampler) return *std::move(sampler);
  ADD_FAILURE() << sampler.error().message();
  return nullptr;
}

Sampler::Options WithoutColdSamples(Sampler::Options options) {
  options.cold_per_second = 0;
  return options;
}

uint64_t TicksIn(const Window& window) {
  uint64_t ticks = 0;
  for (const Sample& sample : window.samples) ticks += sample.count;
  return ticks;
}

ColdSample FirstColdSampleOf(Pid process, Sampler& sampler) {
  ColdSample found;
  EXPECT_TRUE(WaitFor([&] {
    std::vector<ColdSample> samples = sampler.cold().Take();
    const auto of_process = std::ranges::find(
        samples, process, [](const ColdSample& sample) { return sample.process.pid; });
    if (of_process == samples.end()) return false;
    found = std::move(*of_process);
    return true;
  }));
  return found;
}

void SamplerLive::SetUp() {
  if (!MayLoadBpf()) GTEST_SKIP() << "needs root";
  statistics_ = UniqueFd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  ASSERT_TRUE(statistics_.valid()) << "bpf_enable_stats";
}

namespace {

bpf_prog_info InfoOf(uint32_t program_id) {
  const UniqueFd fd(bpf_prog_get_fd_by_id(program_id));
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  EXPECT_EQ(bpf_obj_get_info_by_fd(fd.get(), &info, &size), 0);
  return info;
}

// What the program measures of itself is what the kernel measures from outside, without idle ticks.
void ExpectTickTime(std::chrono::nanoseconds measured, const bpf_prog_info& info,
                    const Accounting& books) {
  const std::chrono::nanoseconds run_time(info.run_time_ns);
  EXPECT_LE(measured, run_time);
  if (books.exported > books.idle) {
    EXPECT_GE(4 * measured, run_time);
  }
}

}  // namespace

uint64_t SamplerLive::RunsOf(uint32_t program_id) {
  return InfoOf(program_id).run_cnt;
}

Accounting SamplerLive::Record(const Sampler::Options& options, const std::function<void()>& work,
                               const std::function<void(const ColdSample&)>& look) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  if (!sampler) return {};
  WindowSource& windows = sampler->windows();
  EXPECT_TRUE(windows.Start().has_value());
  std::atomic<bool> done = false;
  std::thread worker([&] {
    work();
    done = true;
  });
  uint64_t cold = 0;
  Accounting of_windows;
  const auto drain = [&] {
    const Result<Window> window = windows.Drain();
    ASSERT_TRUE(window.has_value());
    EXPECT_LE(TicksIn(*window), window->accounting.exported);
    of_windows += window->accounting;
    const std::vector<ColdSample> taken = sampler->cold().Take();
    cold += taken.size();
    for (const ColdSample& sample : taken) look(sample);
  };
  while (!done) {
    std::this_thread::sleep_for(milliseconds(100));  // windows of about that length
    drain();
  }
  worker.join();
  windows.Stop();
  drain();
  const Accounting books = windows.accounting();
  EXPECT_EQ(of_windows, books);
  EXPECT_EQ(RunsOf(sampler->tick_program_id()), books.Ticks());
  const SamplerCounters counters = sampler->counters();
  ExpectTickTime(counters.tick_time, InfoOf(sampler->tick_program_id()), books);
  EXPECT_EQ(counters.drained_ticks + cold, books.exported);
  EXPECT_EQ(cold, counters.cold.shipped());
  EXPECT_EQ(counters.cold_bytes_waiting, 0U);
  return books;
}

}  // namespace pyrometer
