// SPDX-License-Identifier: Apache-2.0
// Cgroups that are not to be sampled.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "pyrometer/abi/sampler.h"
#include "tests/shared/cgroup_directory.h"
#include "tests/unit/sampler/sampler_live.h"

namespace pyrometer {
namespace {

class DeniedCgroupLive : public SamplerLive {
 protected:
  void SetUp() override {
    SamplerLive::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::filesystem::create_directories(mount_);
    ASSERT_EQ(::mount("none", mount_.c_str(), "cgroup2", 0, nullptr), 0);
  }
  void TearDown() override {
    ::umount2(mount_.c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove(mount_, ignored);
  }
  std::string Name(const char* suffix) const {
    return mount_ + "/pyrometer-test-" + std::to_string(::getpid()) + suffix;
  }

  const std::string mount_ = testing::TempDir() + "/cgroup2_" + std::to_string(::getpid());
};

pid_t PidOf(const Child& child) {
  return static_cast<pid_t>(child.pid().value());
}

uint64_t TicksOf(const Window& window, const Child& child) {
  uint64_t ticks = 0;
  for (const Sample& sample : window.samples) {
    if (sample.process.pid == child.pid()) ticks += sample.count;
  }
  return ticks;
}

TEST_F(DeniedCgroupLive, SamplesNeitherItNorWhatIsBelowIt) {
  const CgroupDirectory outer(Name(""));
  const CgroupDirectory inner(outer.path() + "/inner");
  Child inside;
  const Child outside;
  ASSERT_TRUE(inner.Add(PidOf(inside)));
  Sampler::Options options = WithoutColdSamples({.frequency = {499}});
  options.filter.pids = {inside.pid(), outside.pid()};
  const std::unique_ptr<Sampler> sampler = LoadOrFail(options);
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  ASSERT_TRUE(windows.Start().has_value());
  Window window;
  const auto drain_until = [&](const auto& condition) {
    return WaitFor([&] {
      Result<Window> drained = windows.Drain();
      if (!drained) return false;
      window = *std::move(drained);
      return condition();
    });
  };
  EXPECT_TRUE(drain_until([&] { return TicksOf(window, inside) > 0; }));

  for (const uint64_t denied : {outer.id(), inner.id()}) {
    ASSERT_TRUE(windows.Deny(denied).has_value());
    EXPECT_EQ(sampler->counters().denied_cgroups, 1U);
    ASSERT_TRUE(windows.Drain().has_value());  // of before and after
    uint64_t filtered = 0;
    uint64_t exported = 0;
    uint64_t of_inside = 0;
    EXPECT_TRUE(drain_until([&] {
      filtered += window.accounting.filtered;
      exported += window.accounting.exported;
      of_inside += TicksOf(window, inside);
      return filtered > 20 && exported > 20;
    }));
    EXPECT_EQ(of_inside, 0U);
    windows.Allow(denied);
    EXPECT_EQ(sampler->counters().denied_cgroups, 0U);
    EXPECT_TRUE(drain_until([&] { return TicksOf(window, inside) > 0; }));
  }
  inside.End();
}

// What a tick once found out about a cgroup must not outlive the set it was found in.
TEST_F(DeniedCgroupLive, KeepsOneDeniedAmongManyThatAreAllowedAgain) {
  const CgroupDirectory cgroup(Name("-one"));
  Child inside;
  const Child outside;
  ASSERT_TRUE(cgroup.Add(PidOf(inside)));
  // Without a filter: what is filtered is denied.
  const std::unique_ptr<Sampler> sampler = LoadOrFail(WithoutColdSamples({.frequency = {499}}));
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  constexpr uint64_t kOthers = PYRO_MAX_DENIED - 1;
  const auto made_up = [](uint64_t number) { return uint64_t{1} << 40 | number; };
  for (uint64_t i = 0; i < kOthers; ++i) ASSERT_TRUE(windows.Deny(made_up(i)).has_value());
  ASSERT_TRUE(windows.Deny(cgroup.id()).has_value());
  ASSERT_TRUE(windows.Start().has_value());
  uint64_t of_inside = 0;
  const auto look = [&] {
    uint64_t filtered = 0;
    uint64_t of_outside = 0;
    EXPECT_TRUE(WaitFor([&] {
      const Result<Window> window = windows.Drain();
      if (!window) return false;
      filtered += window->accounting.filtered;
      of_inside += TicksOf(*window, inside);
      of_outside += TicksOf(*window, outside);
      return filtered > 20 && of_outside > 20;
    }));
  };
  look();
  for (uint64_t i = 0; i < kOthers; ++i) windows.Allow(made_up(i));
  look();
  EXPECT_EQ(of_inside, 0U);
  inside.End();
}

TEST_F(DeniedCgroupLive, DeniesNoMoreThanItCanHold) {
  const std::unique_ptr<Sampler> sampler = LoadOrFail({});
  ASSERT_TRUE(sampler);
  WindowSource& windows = sampler->windows();
  for (uint64_t id = 1; id <= PYRO_MAX_DENIED; ++id) {
    ASSERT_TRUE(windows.Deny(uint64_t{1} << 40 | id).has_value());
  }
  const Result<void> refused = windows.Deny(7);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kExhausted);
  EXPECT_TRUE(windows.Deny(uint64_t{1} << 40 | 1).has_value()) << "it is denied already";
  windows.Allow(uint64_t{1} << 40 | 1);
  EXPECT_TRUE(windows.Deny(7).has_value());
}

}  // namespace
}  // namespace pyrometer
