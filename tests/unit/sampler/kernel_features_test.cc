// SPDX-License-Identifier: Apache-2.0
#include "sampler/kernel_features.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace pyrometer {
namespace {

TEST(ParseKernelVersion, ReadsReleasesOfDistributions) {
  EXPECT_EQ(ParseKernelVersion("6.1.0-44-amd64"), (KernelVersion{6, 1}));
  EXPECT_EQ(ParseKernelVersion("5.10.235"), (KernelVersion{5, 10}));
  EXPECT_EQ(ParseKernelVersion("4.18-rc1"), (KernelVersion{4, 18}));
}

TEST(ParseKernelVersion, RefusesWhatIsNone) {
  for (const char* release : {"", "6", "6.", "next", ".1"}) {
    EXPECT_EQ(ParseKernelVersion(release), std::nullopt) << release;
  }
}

TEST(KernelVersion, ComparesByNumber) {
  EXPECT_LT((KernelVersion{5, 9}), (KernelVersion{5, 10}));
  EXPECT_LT((KernelVersion{5, 19}), (KernelVersion{6, 0}));
}

// One way only: distributions carry features back into older versions.
TEST(ProbeKernelFeatures, FindsWhatTheVersionPromises) {
  const KernelFeatures features = ProbeKernelFeatures();
  const auto version = ParseKernelVersion(features.release);
  ASSERT_TRUE(version.has_value());
  utsname machine{};
  ASSERT_EQ(uname(&machine), 0);
  EXPECT_EQ(features.machine, machine.machine);
  if (features.perf_event_program != Support::kYes) {
    GTEST_SKIP() << "loading BPF programs is not possible here";
  }
  const struct {
    const char* name;
    Support found;
    KernelVersion since;
  } promises[] = {
      {"map in map", features.map_in_map, {4, 12}},
      {"batch operations", features.batch_operations, {5, 6}},
      {"raw tracepoint", features.raw_tracepoint, {4, 17}},
      {"ring buffer", features.ring_buffer, {5, 8}},
      {"perf link", features.perf_link, {5, 15}},
      {"task registers", features.task_pt_regs, {5, 15}},
      {"mmap2 build id", features.mmap2_build_id, {5, 12}},
  };
  for (const auto& promise : promises) {
    if (*version < promise.since) continue;
    EXPECT_EQ(promise.found, Support::kYes) << promise.name;
  }
  EXPECT_EQ(features.task_iterator, features.btf);
}

}  // namespace
}  // namespace pyrometer
