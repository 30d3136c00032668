// SPDX-License-Identifier: Apache-2.0
#include "doctor/agent_facts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

AgentFacts Gather(const TemporaryTree& tree, const AgentSetup& setup = {}) {
  return GatherAgentFacts(tree.AsProcfs(), setup, tree.Path("root"));
}

TEST(GatherAgentFacts, FindsNothingInAnEmptyTree) {
  const AgentFacts facts = Gather(TemporaryTree());
  EXPECT_EQ(facts.unit, UnitState::kNotInstalled);
  EXPECT_FALSE(facts.systemd_runs);
  EXPECT_FALSE(facts.service_runs);
  EXPECT_TRUE(facts.config_readable);
  EXPECT_EQ(facts.answer, AgentAnswer::kNobody);
}

TEST(GatherAgentFacts, FollowsTheUnitThroughItsStates) {
  TemporaryTree tree;
  tree.File("root/usr/lib/systemd/system/pyrometer.service", "[Unit]\n");
  EXPECT_EQ(Gather(tree).unit, UnitState::kDisabled);
  // A link of systemd's, into a directory that need not be there.
  tree.Link("root/etc/systemd/system/multi-user.target.wants/pyrometer.service",
            "/usr/lib/systemd/system/pyrometer.service");
  EXPECT_EQ(Gather(tree).unit, UnitState::kEnabled);
  tree.Link("root/etc/systemd/system/pyrometer.service", "/dev/null");
  EXPECT_EQ(Gather(tree).unit, UnitState::kMasked);
}

TEST(GatherAgentFacts, SeesTheServiceInItsCgroup) {
  TemporaryTree tree;
  const std::string cgroups = tree.Path("cgroup");
  tree.File("proc/self/mountinfo", "5 0 0:5 / " + cgroups + " rw - cgroup2 cgroup2 rw\n");
  tree.Directory("root/run/systemd/system");
  tree.File("cgroup/system.slice/pyrometer.service/cgroup.procs", "");
  EXPECT_TRUE(Gather(tree).systemd_runs);
  EXPECT_FALSE(Gather(tree).service_runs);
  tree.File("cgroup/system.slice/pyrometer.service/cgroup.procs", "4711\n");
  EXPECT_TRUE(Gather(tree).service_runs);
}

TEST(GatherAgentFacts, LooksForDirectoriesThatCanBeWrittenOrMade) {
  TemporaryTree tree;
  tree.Directory("there");
  tree.File("file", "");
  AgentSetup setup;
  setup.directories = {tree.Path("there"), tree.Path("there/not/yet"), tree.Path("file"),
                       tree.Path("file/below")};
  const AgentFacts facts = Gather(tree, setup);
  const std::vector<DirectoryFact> expected = {{tree.Path("there"), true},
                                               {tree.Path("there/not/yet"), true},
                                               {tree.Path("file"), false},
                                               {tree.Path("file/below"), false}};
  EXPECT_EQ(facts.directories, expected);
}

TEST(GatherAgentFacts, KnowsAConfigurationThatWeMayNotRead) {
  TemporaryTree tree;
  tree.File("pyrometer.yaml", "");
  AgentSetup setup;
  setup.config_file = tree.Path("pyrometer.yaml");
  EXPECT_TRUE(Gather(tree, setup).config_readable);
  ASSERT_EQ(::chmod(setup.config_file.c_str(), 0), 0);
  EXPECT_EQ(Gather(tree, setup).config_readable, ::geteuid() == 0);
}

}  // namespace
}  // namespace pyrometer
