// SPDX-License-Identifier: Apache-2.0
// The kernel refuses a step of a drain.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>

#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

// Runs `work` in a thread for which bpf(2) with `command` ends with ENOMEM.
void WithoutCommand(bpf_cmd command, const std::function<void()>& work) {
  std::thread([&] {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(command), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{.len = std::size(program), .filter = program};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
    work();
  }).join();
}

// Samples `child` only, at 499 Hz. Null if that failed.
std::unique_ptr<Sampler> StartedOn(const Child& child) {
  Sampler::Options options = WithoutColdSamples({.frequency = {499}});
  options.filter.pids = {child.pid()};
  std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  if (sampler && !sampler->windows().Start()) sampler.reset();
  return sampler;
}

class FailingDrainLive : public SamplerLive, public testing::WithParamInterface<bpf_cmd> {
 protected:
  static Window Drain(WindowSource& windows) {
    Result<Window> window = windows.Drain();
    EXPECT_TRUE(window.has_value());
    return window ? *std::move(window) : Window{};
  }
};

TEST_P(FailingDrainLive, LosesNothing) {
  const Child child;
  const std::unique_ptr<Sampler> sampler = StartedOn(child);
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(WaitFor([&] { return windows.accounting().exported >= 10U * (i + 1); }));
    WithoutCommand(GetParam(), [&] { EXPECT_FALSE(windows.Drain().has_value()); });
  }
  EXPECT_TRUE(WaitFor([&] { return windows.accounting().exported >= 40; }));
  windows.Stop();
  const Window window = Drain(windows);
  EXPECT_EQ(TicksIn(window), window.accounting.exported);
  EXPECT_EQ(window.accounting, windows.accounting());
  EXPECT_EQ(RunsOf(sampler->tick_program_id()), window.accounting.Ticks());
}

TEST_P(FailingDrainLive, KeepsWindowsOfTwoFrequenciesApart) {
  const Child child;
  const std::unique_ptr<Sampler> sampler = StartedOn(child);
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  EXPECT_TRUE(WaitFor([&] { return windows.accounting().exported >= 10; }));
  ASSERT_TRUE(windows.Prepare({.frequency = Hertz{997}, .filter = {}}));
  WithoutCommand(GetParam(), [&] { EXPECT_FALSE(windows.Drain().has_value()); });
  EXPECT_TRUE(WaitFor([&] { return windows.accounting().exported >= 20; }));
  windows.Stop();
  const Window before = Drain(windows);
  const Window after = Drain(windows);
  EXPECT_EQ(before.frequency, Hertz{499});
  EXPECT_EQ(after.frequency, Hertz{997});
  EXPECT_EQ(before.end, after.begin);
  Accounting sum = before.accounting;
  sum += after.accounting;
  EXPECT_EQ(TicksIn(before), before.accounting.exported);
  EXPECT_EQ(TicksIn(after), after.accounting.exported);
  EXPECT_EQ(sum, windows.accounting());
}

TEST_F(SamplerLive, RefusesAFilterThatWouldMixWithOneThatCannotBeForgotten) {
  const Child first;
  const Child second;
  const Child third;
  const std::unique_ptr<Sampler> sampler = StartedOn(first);
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  const auto next = [](const Child& child) {
    SampleFilter filter;
    filter.pids = {child.pid()};
    return SamplingChange{.frequency = {}, .filter = filter};
  };
  ASSERT_TRUE(windows.Prepare(next(second)));
  WithoutCommand(BPF_MAP_LOOKUP_BATCH, [&] {
    EXPECT_TRUE(windows.Drain().has_value());
    const Result<void> refused = windows.Prepare(next(third));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::kExhausted);
  });
  ASSERT_TRUE(windows.Prepare(next(third)));
  EXPECT_TRUE(windows.Drain().has_value());
  EXPECT_TRUE(WaitFor([&] { return windows.accounting().exported >= 20; }));
  const Result<Window> window = windows.Drain();
  ASSERT_TRUE(window.has_value());
  for (const Sample& sample : window->samples) EXPECT_EQ(sample.process.pid, third.pid());
}

TEST_P(FailingDrainLive, SaysThatAWindowIsLeftOverBeforeAnyChangeIsMade) {
  const Child child;
  const std::unique_ptr<Sampler> sampler = StartedOn(child);
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  WithoutCommand(GetParam(), [&] { EXPECT_FALSE(windows.Drain().has_value()); });
  EXPECT_FALSE(windows.HasLeftover()) << "it becomes part of the next";
  Drain(windows);
  ASSERT_TRUE(windows.Prepare({.frequency = Hertz{997}, .filter = {}}));
  WithoutCommand(GetParam(), [&] { EXPECT_FALSE(windows.Drain().has_value()); });
  EXPECT_TRUE(windows.HasLeftover());
  ASSERT_TRUE(windows.Prepare({.frequency = Hertz{199}, .filter = {}}));
  EXPECT_EQ(Drain(windows).frequency, Hertz{499});
  EXPECT_FALSE(windows.HasLeftover());
  EXPECT_EQ(Drain(windows).frequency, Hertz{997});
  EXPECT_EQ(Drain(windows).frequency, Hertz{199});
}

INSTANTIATE_TEST_SUITE_P(Steps, FailingDrainLive,
                         testing::Values(BPF_MAP_UPDATE_ELEM, BPF_MAP_LOOKUP_AND_DELETE_BATCH),
                         [](const auto& test) {
                           return test.param == BPF_MAP_UPDATE_ELEM ? "Waiting" : "Reading";
                         });

}  // namespace
}  // namespace pyrometer
