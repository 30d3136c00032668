// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

MachineFacts Gather(const TemporaryTree& tree) {
  return GatherFacts(tree.AsProcfs(),
                     {.build_id_directory = tree.Path("debug"), .debuginfod_urls = ""}, {});
}

TEST(GatherFacts, ReadsAMachineAsItIs) {
  TemporaryTree tree;
  tree.File("proc/self/status", "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n");
  tree.File("proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units\n"
            "Max locked memory         8388608              unlimited            bytes\n");
  tree.File("proc/self/mountinfo", "5 0 0:5 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.Link("proc/self/ns/pid", "pid:[4026531836]");
  tree.Link("proc/self/ns/user", "user:[4026531837]");
  tree.File("proc/sys/kernel/perf_event_paranoid", "-1\n");
  tree.File("proc/sys/kernel/kptr_restrict", "1\n");
  tree.File("proc/sys/kernel/bpf_stats_enabled", "1\n");
  tree.File("proc/sys/kernel/perf_event_max_sample_rate", "50000\n");
  tree.File("proc/kallsyms", "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n");
  tree.File("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  tree.File("debug/ab/cdef.debug", "");
  const MachineFacts facts = Gather(tree);
  EXPECT_EQ(facts.capabilities, uint64_t{0x1ffffffffff});
  EXPECT_EQ(facts.memlock_limit, uint64_t{8388608});
  EXPECT_EQ(facts.cgroups.size(), 1U);
  EXPECT_TRUE(facts.pid_namespace.has_value());
  EXPECT_TRUE(facts.initial_user_namespace);
  EXPECT_EQ(facts.perf_event_paranoid, -1);
  EXPECT_EQ(facts.kptr_restrict, 1);
  EXPECT_TRUE(facts.bpf_stats);
  EXPECT_EQ(facts.sample_rate_limit, Hertz{50'000});
  EXPECT_TRUE(facts.kernel_addresses_visible);
  EXPECT_EQ(facts.lockdown, Lockdown::kIntegrity);
  EXPECT_TRUE(facts.debug_files);
}

TEST(GatherFacts, KnowsLittleOfAnEmptyTree) {
  const MachineFacts facts = Gather(TemporaryTree());
  EXPECT_EQ(facts.capabilities, std::nullopt);
  EXPECT_EQ(facts.memlock_limit, std::nullopt);
  EXPECT_EQ(facts.perf_event_paranoid, std::nullopt);
  EXPECT_EQ(facts.sample_rate_limit, std::nullopt);
  EXPECT_EQ(facts.lockdown, Lockdown::kNone);
  EXPECT_FALSE(facts.kernel_addresses_visible);
  EXPECT_FALSE(facts.debug_files);
  EXPECT_TRUE(facts.cgroups.empty());
  EXPECT_FALSE(facts.pid_namespace.has_value()) << "record refuses a /proc that does not show it";
}

TEST(GatherFacts, SeesThatAddressesAreHidden) {
  TemporaryTree tree;
  tree.File("proc/kallsyms", "0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n");
  EXPECT_FALSE(Gather(tree).kernel_addresses_visible);
}

TEST(GatherFacts, SeesThatItIsInAContainer) {
  TemporaryTree tree;
  tree.Link("proc/self/ns/pid", "pid:[4026532000]");
  tree.Link("proc/self/ns/user", "user:[4026532001]");
  const MachineFacts facts = Gather(tree);
  EXPECT_FALSE(facts.pid_namespace.has_value());
  EXPECT_FALSE(facts.initial_user_namespace);
}

TEST(GatherFacts, SeesThatItsChildrenWouldBeInAnotherPidNamespace) {
  TemporaryTree tree;
  tree.Link("proc/self/ns/pid", "pid:[4026531836]");
  tree.Link("proc/self/ns/pid_for_children", "pid:[4026532000]");
  EXPECT_FALSE(Gather(tree).pid_namespace.has_value());
}

TEST(GatherFacts, TakesUnlimitedLockedMemoryForNoLimit) {
  TemporaryTree tree;
  tree.File("proc/self/limits",
            "Max locked memory         unlimited            unlimited  bytes\n");
  EXPECT_EQ(Gather(tree).memlock_limit, std::nullopt);
}

TEST(GatherFacts, ReadsConfidentiality) {
  TemporaryTree tree;
  tree.File("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(Gather(tree).lockdown, Lockdown::kConfidentiality);
}

}  // namespace
}  // namespace pyrometer
