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
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

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

// Where the kernel serves softirqs; nothing if it does not tell.
std::optional<std::pair<uint64_t, uint64_t>> ServingSoftirqs() {
  std::ifstream symbols("/proc/kallsyms");
  std::string line;
  while (std::getline(symbols, line)) {
    if (!line.ends_with(" handle_softirqs") && !line.ends_with(" __do_softirq")) continue;
    const uint64_t start = std::stoull(line, nullptr, 16);
    if (start != 0) return std::pair(start, start + 2048);
  }
  return std::nullopt;
}

TEST_F(SamplerLive, TakesSoftirqsOverTheIdleTaskForCpuTime) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two CPUs";
  const SteeredToCpu1 steered;
  if (!steered.works()) GTEST_SKIP() << "this kernel does not steer packets (CONFIG_RPS)";
  BringUpLoopback();
  const Child sender([] { SendForever(); });
  const std::unique_ptr<Sampler> sampler = LoadOrFail(WithoutColdSamples({.frequency = {1999}}));
  ASSERT_TRUE(sampler && sampler->windows().Start());
  const auto softirqs = ServingSoftirqs();
  uint64_t over_idle = 0;
  uint64_t in_softirqs = 0;
  const auto look_at = [&](const Window& window, const Sample& sample) {
    const Stack& stack = window.stacks[sample.stack];
    EXPECT_TRUE(sample.comm.starts_with("swapper/")) << sample.comm;
    EXPECT_EQ(sample.thread, sample.comm);
    EXPECT_EQ(sample.process.start_time, StartTime(0));
    EXPECT_TRUE(stack.end == StackEnd::kNoUserStack);
    EXPECT_GT(stack.kernel_frames, 0U);
    over_idle += sample.count;
    const auto frames = window.FramesOf(stack);
    const bool serves = softirqs && std::ranges::any_of(frames, [&](Frame frame) {
                          return frame.bits() >= softirqs->first && frame.bits() < softirqs->second;
                        });
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
  if (softirqs) {
    EXPECT_GT(in_softirqs, over_idle / 2);
  }
  RecordProperty("over_idle", static_cast<int>(over_idle));
  RecordProperty("in_softirqs", static_cast<int>(in_softirqs));
}

}  // namespace
}  // namespace pyrometer
