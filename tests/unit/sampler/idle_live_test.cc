// SPDX-License-Identifier: Apache-2.0
// What runs over the idle task.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

constexpr const char* kSteering = "/sys/class/net/lo/queues/rx-0/rps_cpus";

// Has CPU 1 receive, in softirqs, what CPU 0 sends to itself; as before when this goes.
class SteeredToCpu1 {
 public:
  SteeredToCpu1() {
    std::ifstream(kSteering) >> before_;
    std::ofstream(kSteering) << "2\n" << std::flush;
    std::string now;
    std::ifstream(kSteering) >> now;
    works_ = !now.empty() && now.back() == '2';
  }
  ~SteeredToCpu1() { std::ofstream(kSteering) << before_ << "\n"; }
  SteeredToCpu1(const SteeredToCpu1&) = delete;
  SteeredToCpu1& operator=(const SteeredToCpu1&) = delete;
  bool works() const { return works_; }

 private:
  std::string before_;
  bool works_ = false;
};

void BringUpLoopback() {
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  ioctl(any.get(), SIOCSIFFLAGS, &request);
}

// From CPU 0 to a port of which nobody reads: received, and dropped.
[[noreturn]] void SendForever() {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof(first), &first);
  const UniqueFd receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const to = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  bind(receiver.get(), to, length);
  getsockname(receiver.get(), to, &length);
  const std::string bytes(1000, 'x');
  while (true) {
    // Not so much at a time that ksoftirqd takes over.
    for (int i = 0; i < 8; ++i) sendto(sender.get(), bytes.data(), bytes.size(), 0, to, length);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// The kernel's functions by their addresses; none if it does not tell.
class KernelFunctions {
 public:
  KernelFunctions() {
    std::ifstream symbols("/proc/kallsyms");
    std::string line;
    while (std::getline(symbols, line)) {
      std::istringstream words(line);
      uint64_t address = 0;
      char type = 0;
      std::string name;
      words >> std::hex >> address >> type >> name;
      if (address != 0 && (type == 't' || type == 'T')) names_[address].insert(name);
    }
  }
  bool known() const { return !names_.empty(); }
  bool IsIn(Frame frame, const std::set<std::string>& functions) const {
    const auto after = names_.upper_bound(frame.bits());
    return after != names_.begin() &&
           std::ranges::any_of(std::prev(after)->second,
                               [&](auto& name) { return functions.contains(name); });
  }

 private:
  std::map<uint64_t, std::set<std::string>> names_;
};

const std::set<std::string> kServingSoftirqs = {"handle_softirqs", "__do_softirq"};
const std::set<std::string> kIdling = {
    "do_idle",          "default_idle",        "default_idle_call", "arch_cpu_idle",
    "native_safe_halt", "pv_native_safe_halt", "mwait_idle",        "acpi_idle_do_entry",
    "acpi_safe_halt",   "intel_idle",          "intel_idle_irq",    "poll_idle",
    "cpu_idle_poll",    "cpuidle_enter_state", "cpu_do_idle",       "haltpoll_enter_idle"};

TEST_F(SamplerLive, TakesSoftirqsOverTheIdleTaskForCpuTime) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two CPUs";
  const SteeredToCpu1 steered;
  if (!steered.works()) GTEST_SKIP() << "this kernel does not steer packets (CONFIG_RPS)";
  BringUpLoopback();
  const Child sender([] { SendForever(); });
  const std::unique_ptr<Sampler> sampler = LoadOrFail(WithoutColdSamples({.frequency = {1999}}));
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const KernelFunctions functions;
  uint64_t over_idle = 0;
  uint64_t in_softirqs = 0;
  const auto look_at = [&](const Window& window, const Sample& sample) {
    const Stack& stack = window.stacks[sample.stack];
    EXPECT_TRUE(sample.comm.starts_with("swapper/")) << sample.comm;
    EXPECT_EQ(sample.thread, sample.comm);
    EXPECT_EQ(sample.process.start_time, StartTime(0));
    EXPECT_TRUE(stack.end == StackEnd::kNoUserStack);
    ASSERT_GT(stack.kernel_frames, 0U);
    over_idle += sample.count;
    const auto frames = window.FramesOf(stack);
    EXPECT_FALSE(functions.IsIn(frames.front(), kIdling));
    const bool serves = std::ranges::any_of(
        frames, [&](Frame frame) { return functions.IsIn(frame, kServingSoftirqs); });
    in_softirqs += serves ? sample.count : 0;
  };
  EXPECT_TRUE(WaitFor([&] {
    const Result<Window> window = sampler->windows().Drain();
    if (!window) return false;
    for (const Sample& sample : window->samples) {
      if (sample.process.pid == Pid(0)) look_at(*window, sample);
    }
    return over_idle >= 20 && window->accounting.idle > 0;
  }));
  if (functions.known()) {
    EXPECT_GT(in_softirqs, over_idle / 2);
  }
  RecordProperty("over_idle", static_cast<int>(over_idle));
  RecordProperty("in_softirqs", static_cast<int>(in_softirqs));
}

TEST_F(SamplerLive, TakesTheIdleTaskItselfForIdle) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail(WithoutColdSamples({.frequency = {999}}));
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const KernelFunctions functions;
  uint64_t over_idle = 0;
  uint64_t idle = 0;
  const bool rests = WaitFor([&] {
    const Result<Window> window = sampler->windows().Drain();
    if (!window) return false;
    idle += window->accounting.idle;
    for (const Sample& sample : window->samples) {
      if (sample.process.pid != Pid(0)) continue;
      over_idle += sample.count;
      const auto frames = window->FramesOf(window->stacks[sample.stack]);
      EXPECT_FALSE(!frames.empty() && functions.IsIn(frames.front(), kIdling));
    }
    return idle >= 200;
  });
  if (!rests) GTEST_SKIP() << "no CPU is ever idle here";
  EXPECT_LT(over_idle, idle / 4);
}

}  // namespace
}  // namespace pyrometer
