// SPDX-License-Identifier: Apache-2.0
// A CPU that goes, and is back before anybody looks. Takes a CPU from the machine: for a virtual
// one.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "sampler/sampler.h"
#include "tests/unit/process/process_live_fixture.h"

namespace pyrometer {
namespace {

constexpr int kCpu = 1;

void PinTo(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cpu), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
}

void GoAndComeBack() {
  PinTo(0);
  for (const char* state : {"0", "1"}) {
    std::ofstream online("/sys/devices/system/cpu/cpu1/online");
    online << state << std::flush;
    ASSERT_TRUE(online.good()) << state;
  }
}

class CpuHotplug : public ProcessLiveTest {
 protected:
  void SetUp() override {
    if (!IsEmulated()) GTEST_SKIP() << "takes a CPU from the machine";
    ProcessLiveTest::SetUp();
  }
};

TEST_F(CpuHotplug, SamplingGoesOn) {
  Result<std::unique_ptr<Sampler>> sampler = Sampler::Load({.frequency = {99}}, clock_);
  ASSERT_TRUE(sampler && (*sampler)->windows().Start());
  GoAndComeBack();
  // One look may see that the clock went on until the CPU went.
  for (int look = 0; look < 2; ++look) ASSERT_TRUE((*sampler)->windows().FollowCpus().has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    PinTo(kCpu);
    while (true) {
    }
  }
  const Pid pid(static_cast<uint32_t>(child));
  int samples = 0;
  EXPECT_TRUE(WaitFor([&] {
    for (const ColdSample& sample : (*sampler)->cold().Take()) samples += sample.process.pid == pid;
    return samples > 10;
  }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(CpuHotplug, ProcessesAreSeenOn) {
  GoAndComeBack();
  const uint64_t scans = tracker_->counters().scans;
  ASSERT_TRUE(WaitFor([&] { return tracker_->counters().scans > scans; })) << "to make up leeway";
  PinTo(kCpu);
  const Pid pid = Spawn("/bin/sleep", {"60"});
  EXPECT_TRUE(WaitFor([&] { return !sink_.Of(pid).mappings.empty(); }));
  Kill(pid);
}

}  // namespace
}  // namespace pyrometer
