// SPDX-License-Identifier: Apache-2.0
#include "agent/privileges.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

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
    const bool kept = KeepOnlyProfilingPrivileges().has_value();
    getrlimit(RLIMIT_MEMLOCK, &limit);
    Exit(kept && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur == hard));
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pyrometer
