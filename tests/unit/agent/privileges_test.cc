// SPDX-License-Identifier: Apache-2.0
#include "agent/privileges.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

[[noreturn]] void Exit(bool good) {
  std::exit(good ? 0 : 1);
}

TEST(PrivilegesDeathTest, ThreadsThatSpeakWithTheNetworkHaveNone) {
  const auto run = [] {
    const bool none = WithoutPrivileges([] {
      std::ifstream status("/proc/thread-self/status");
      const std::string text{std::istreambuf_iterator<char>(status), {}};
      return text.find("CapEff:\t0000000000000000") != std::string::npos;
    });
    Exit(none);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// Before Linux 5.11 BPF maps count against it, and to raise it later needs CAP_SYS_RESOURCE.
TEST(PrivilegesDeathTest, TheLimitOfLockedMemoryIsRaisedWhileThatIsAllowed) {
  const auto run = [] {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const rlim_t hard = limit.rlim_max;
    limit.rlim_cur = 65536;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    const bool kept = KeepOnlyProfilingPrivileges(Procfs{}).has_value();
    getrlimit(RLIMIT_MEMLOCK, &limit);
    Exit(kept && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur == hard));
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// True if this thread's effective capabilities have that one.
bool Holds(unsigned capability) {
  std::ifstream status("/proc/thread-self/status");
  std::string word;
  while (status >> word && word != "CapEff:") {
  }
  uint64_t capabilities = 0;
  status >> std::hex >> capabilities;
  return (capabilities >> capability & 1) != 0;
}

// Kernels of Debian and Ubuntu.
TEST(PrivilegesDeathTest, TheCapabilityThatADistributionAsksForIsKeptThereOnly) {
  const bool held = Holds(CAP_SYS_ADMIN);
  for (const auto& [level, kept] : {std::pair("2\n", false), std::pair("3\n", true)}) {
    TemporaryTree tree;
    tree.File("proc/sys/kernel/perf_event_paranoid", level);
    const auto run = [&] {
      const bool done = KeepOnlyProfilingPrivileges(tree.AsProcfs()).has_value();
      Exit(done && Holds(CAP_SYS_ADMIN) == (held && kept) && !Holds(CAP_NET_ADMIN));
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(0), "") << level;
  }
}

}  // namespace
}  // namespace pyrometer
