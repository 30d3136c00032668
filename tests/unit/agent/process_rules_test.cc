// SPDX-License-Identifier: Apache-2.0
// ProcessLabels with rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/process_labels.h"
#include "tests/unit/agent/process_in_cgroup.h"
#include "tests/unit/agent/rule_texts.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using Action = RelabelAction;
using Rules = std::vector<RelabelRule>;

constexpr const char* kDropped = "dropped";

Relabeling Compiled(const Rules& rules) {
  return *Relabeling::Compile(rules);
}

class ProcessRulesTest : public testing::Test {
 protected:
  bool SetRules(const Rules& rules) { return labels_.SetRules(Compiled(rules)); }

  // What samples of this process carry.
  std::string Carried(const LabelSet& labels, uint32_t pid = 18) {
    std::vector<Sample> samples(1);
    samples[0].process = {Pid(pid), StartTime(1)};
    samples[0].labels = labels;
    labels_.OnSamples(samples);
    return samples.empty() ? kDropped : Text(*samples[0].labels);
  }

  // A process of this name in this cgroup, which is held as long as the test.
  LabelSet See(std::string_view comm, std::string_view cgroups) {
    held_.push_back(labels_.OnProcess(InCgroup(cgroups).Seen(comm)));
    return held_.back();
  }

  ProcessLabels labels_;
  std::vector<LabelSet> held_;
};

TEST_F(ProcessRulesTest, LeavesLabelsAloneWithoutRules) {
  const LabelSet nginx = See("nginx", "0::/a\n");
  EXPECT_EQ(Text(*nginx), "service_name=nginx");
  EXPECT_EQ(Carried(nginx), "service_name=nginx");
  EXPECT_EQ(labels_.TakeDroppedCgroups(), std::nullopt);
}

TEST_F(ProcessRulesTest, OffersMetaLabelsThatAreGoneAfterwards) {
  EXPECT_TRUE(SetRules({{.source_labels = {"__meta_process_comm"}, .target_label = "comm_copy"}}));
  const LabelSet worker = See("worker", "0::/system.slice/nginx.service\n");
  EXPECT_EQ(Text(*worker),
            "__meta_cgroup_path=/system.slice/nginx.service __meta_process_comm=worker "
            "__meta_process_executable=/usr/bin/x __meta_systemd_slice=system.slice "
            "__meta_systemd_unit=nginx.service service_name=nginx systemd_unit=nginx.service");
  EXPECT_EQ(Carried(worker), "comm_copy=worker service_name=nginx systemd_unit=nginx.service");
}

TEST_F(ProcessRulesTest, TellsTheCgroupOfVersion2WhereItIsAnother) {
  SetRules({{.source_labels = {"__meta_cgroup_v2_path"}, .target_label = "v2"},
            {.source_labels = {"__meta_container_id"}, .regex = "(.{4}).*", .target_label = "id"}});
  const std::string id(64, 'a');
  EXPECT_EQ(Carried(See("x", "4:cpu:/docker/" + id + "\n0::/system.slice/docker.service\n")),
            "container_id=" + id + " id=aaaa service_name=x v2=/system.slice/docker.service");
}

TEST_F(ProcessRulesTest, KeepsAServiceNameWhateverTheRulesDo) {
  SetRules({{.action = Action::kLabelDrop, .regex = "service_.*"}});
  EXPECT_EQ(Carried(See("worker", "0::/system.slice/nginx.service\n")),
            "service_name=worker systemd_unit=nginx.service");
  EXPECT_EQ(Carried(labels_.OfUnknown(Pid(0), "swapper/1")), "service_name=kernel");
}

TEST_F(ProcessRulesTest, TakesOutSamplesOfDroppedProcesses) {
  SetRules({Drop("__meta_process_comm", "noisy")});
  std::vector<Sample> samples(3);
  samples[0].labels = samples[2].labels = See("noisy", "0::/a\n");
  samples[1].labels = See("quiet", "0::/a\n");
  labels_.OnSamples(samples);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(Text(*samples[0].labels), "service_name=quiet");
}

TEST_F(ProcessRulesTest, AppliesChangedRulesToProcessesThatAreKnown) {
  EXPECT_TRUE(SetRules({Drop("service_name", "nginx")}));
  const LabelSet nginx = See("nginx", "0::/a\n");
  EXPECT_EQ(Carried(nginx), kDropped);
  EXPECT_FALSE(SetRules({{.target_label = "zone", .replacement = "a"}}));
  EXPECT_EQ(Carried(nginx), "service_name=nginx zone=a");
  EXPECT_FALSE(SetRules({}));
  EXPECT_EQ(Carried(nginx), "service_name=nginx");
  EXPECT_FALSE(SetRules({Drop("__meta_process_executable", "/usr/bin/x")}));
  EXPECT_EQ(Carried(nginx), kDropped);
}

TEST_F(ProcessRulesTest, AppliesRulesToWhatWasCapturedWithoutThem) {
  const LabelSet nginx = See("nginx", "0::/a\n");
  EXPECT_TRUE(SetRules({{.source_labels = {"service_name"}, .target_label = "app"}}));
  EXPECT_EQ(Carried(nginx), "app=nginx service_name=nginx");
}

TEST_F(ProcessRulesTest, LeavesAProcessThatEndedWhereItsParentWas) {
  SetRules({{.source_labels = {"__meta_cgroup_path"}, .target_label = "cgroup"},
            {.action = Action::kLabelDrop, .regex = "container_id"}});
  const std::string path = "/docker/" + std::string(64, 'a');
  const SeenProcess gone{.key = {Pid(19), StartTime(1)},
                         .comm = "ls",
                         .directory = nullptr,
                         .inherited = See("sh", "0::" + path + "\n")};
  EXPECT_EQ(Carried(labels_.OnProcess(gone)), "cgroup=" + path + " service_name=ls");
}

TEST_F(ProcessRulesTest, TellsProcessesApartIfTheRulesAskForThePid) {
  SetRules({{.action = Action::kHashMod,
             .source_labels = {"__meta_process_pid"},
             .modulus = 1000,
             .target_label = "shard"},
            Drop("__meta_process_pid", "13")});
  const LabelSet nginx = See("nginx", "0::/a\n");
  EXPECT_EQ(Carried(nginx, 4711), "service_name=nginx shard=31");
  EXPECT_NE(Carried(nginx, 4712), "service_name=nginx shard=31");
  EXPECT_EQ(Carried(nginx, 13), kDropped);
}

TEST_F(ProcessRulesTest, BoundsTheNumberOfSetsThatRulesMake) {
  ProcessLabels labels({.sets = 2, .inputs = 10});
  labels.SetRules(Compiled({{.source_labels = {"__meta_process_pid"}, .target_label = "pid"}}));
  std::vector<Sample> samples(5);
  for (uint32_t i = 0; i < samples.size(); ++i) {
    samples[i].process = {Pid(i), StartTime(1)};
    samples[i].labels = labels.OfUnknown(Pid(100), "x");
  }
  labels.OnSamples(samples);
  EXPECT_EQ(Text(*samples[1].labels), "pid=1 service_name=x");
  EXPECT_EQ(Text(*samples[2].labels), "service_name=other");
  EXPECT_EQ(samples[4].labels, samples[2].labels);
}

TEST_F(ProcessRulesTest, BoundsWhatItCaptures) {
  ProcessLabels labels({.sets = 10, .inputs = 2});
  labels.SetRules(Compiled({{.target_label = "zone", .replacement = "a"}}));
  std::vector<LabelSet> held;
  for (const char* comm : {"a", "b", "c"}) held.push_back(labels.OfUnknown(Pid(100), comm));
  EXPECT_EQ(Text(*held[2]), "service_name=other");
  held.clear();
  held.push_back(labels.OfUnknown(Pid(100), "d"));
  EXPECT_EQ(Text(*held[0]), "__meta_process_comm=d service_name=d");
}

TEST_F(ProcessRulesTest, NamesCgroupsThatAreDroppedWhole) {
  SetRules({Drop("__meta_cgroup_path", "/batch(/.*)?"), Drop("service_name", "nginx|noisy"),
            Drop("__meta_process_comm", "late")});
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
  EXPECT_EQ(labels_.TakeDroppedCgroups(), std::nullopt) << "nothing has changed";
  See("job", "0::/batch\n");
  See("job", "0::/batch/1\n");
  See("worker", "0::/system.slice/nginx.service\n");
  See("noisy", "0::/noisy\n");  // for its own name
  See("late", "0::/late\n");
  See("other", "0::/batches\n");
  EXPECT_THAT(labels_.TakeDroppedCgroups(),
              Optional(ElementsAre("/batch", "/batch/1", "/system.slice/nginx.service")));
  SetRules({Drop("__meta_process_comm", ".*")});
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
  SetRules({});
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
}

TEST_F(ProcessRulesTest, DeniesNoCgroupThatHasOthersBelowIt) {
  SetRules({Drop("__meta_cgroup_path", "/batch|/|/\\.\\./x")});
  See("job", "0::/batch\n");
  See("job", "0::/\n");
  See("job", "0::/../x\n");
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(ElementsAre("/batch")));
  See("kept", "0::/batch/1\n");
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
  held_.pop_back();
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(ElementsAre("/batch"))) << "it is gone";
}

TEST_F(ProcessRulesTest, DeniesNoCgroupOfVersion2ThatHasProcessesOfContainers) {
  SetRules({Drop("systemd_unit", "docker.service")});
  See("dockerd", "4:cpu:/system.slice/docker.service\n0::/system.slice/docker.service\n");
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(ElementsAre("/system.slice/docker.service")));
  const std::string path = "/docker/" + std::string(64, 'a');
  See("mongod", "4:cpu:" + path + "\n0::/system.slice/docker.service\n");
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
}

TEST_F(ProcessRulesTest, DeniesNothingWhileItCannotTellProcessesApart) {
  ProcessLabels labels({.sets = 10, .inputs = 1});
  labels.SetRules(Compiled({Drop("__meta_cgroup_path", "/batch")}));
  const LabelSet job = labels.OnProcess(InCgroup("0::/batch\n").Seen("job"));
  EXPECT_THAT(labels.TakeDroppedCgroups(), Optional(IsEmpty()));
}

}  // namespace
}  // namespace pyrometer
