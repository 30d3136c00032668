// SPDX-License-Identifier: Apache-2.0
#include "agent/label_explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tests/shared/fake_clock.h"
#include "tests/unit/agent/process_in_cgroup.h"

namespace pyrometer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const Clock kRunning;
// With this nobody's patience ends.
const FakeClock kStopped;

TEST(ExplainLabels, TellsWhatEachRuleDoes) {
  const InCgroup process("0::/system.slice/nginx.service\n");
  AgentConfig config;
  config.labels = {{"cluster", "blue"}, {"zone", "mine"}};
  config.relabel_configs = {
      {.source_labels = {"__meta_systemd_slice", "__meta_process_comm"}, .target_label = "zone"},
      {.target_label = "service_name", .replacement = "web"},
      {.action = RelabelAction::kDrop, .source_labels = {"zone"}, .regex = "no"},
      {.action = RelabelAction::kLabelDrop, .regex = "systemd_unit"}};
  const Result<std::string> text =
      ExplainLabels(process.procfs(), config, {.clock = kStopped}, Pid(18));
  ASSERT_TRUE(text.has_value()) << text.error().message();
  EXPECT_EQ(*text, R"(process 18 (x)
before the rules:
  __meta_cgroup_path         "/system.slice/nginx.service"
  __meta_process_comm        "x"
  __meta_process_executable  "/usr/bin/x"
  __meta_process_pid         "18"
  __meta_systemd_slice       "system.slice"
  __meta_systemd_unit        "nginx.service"
  service_name               "nginx"
  systemd_unit               "nginx.service"
rules:
  relabel_configs[0]: replace [__meta_systemd_slice, __meta_process_comm] = "system.slice;x"
    adds zone = "system.slice;x"
  relabel_configs[1]: replace
    changes service_name from "nginx" to "web"
  relabel_configs[2]: drop [zone] = "system.slice;x"
    no effect
  relabel_configs[3]: labeldrop
    removes systemd_unit, was "nginx.service"
labels of its samples:
  cluster                    "blue"
  service_name               "web"
  zone                       "mine"
)");
}

// Has one container in the pod web, which opts out if it is called "out".
class OneContainer final : public ContainerSource {
 public:
  explicit OneContainer(std::string name) : name_(std::move(name)) {}

  Result<std::vector<ContainerMetadata>> List() override {
    PodMetadata pod{.name = "web", .name_space = "shop", .labels = {{"app/tier", "front"}}};
    if (name_ == "out") pod.annotations = {{"pyrometer.io/profile", "false"}};
    return std::vector<ContainerMetadata>{
        {.id = kId, .name = name_, .pod = std::make_shared<const PodMetadata>(std::move(pod))}};
  }
  void Cancel() override {}

  static inline const std::string kId = std::string(64, 'a');

 private:
  const std::string name_;
};

std::string ExplainedIn(std::string_view container, ContainerDirectory* containers) {
  const InCgroup process(fmt::format("0::/docker/{}\n", container));
  AgentConfig config;
  config.relabel_configs = {{.source_labels = {"namespace"}, .target_label = "team"}};
  return *ExplainLabels(process.procfs(), config, {.clock = kStopped, .containers = containers},
                        Pid(18));
}

TEST(ExplainLabels, AsksForTheContainer) {
  ContainerDirectory containers({.pause = std::chrono::milliseconds(1)},
                                std::make_unique<OneContainer>("app"), kRunning);
  const std::string text = ExplainedIn(OneContainer::kId, &containers);
  EXPECT_THAT(text, HasSubstr("  __meta_kubernetes_pod_container_name        \"app\"\n"));
  EXPECT_THAT(text, HasSubstr("adds team = \"shop\"\n"));
  EXPECT_THAT(text, EndsWith(R"(labels of its samples:
  container                  "app"
  namespace                  "shop"
  pod                        "web"
  service_name               "app"
  team                       "shop"
)"));
  EXPECT_THAT(ExplainedIn(std::string(64, 'b'), &containers),
              HasSubstr("process 18 (x)\nits container: unknown to those who could be asked\n"));
}

TEST(ExplainLabels, TellsOfPodLabelsBeforeTheRules) {
  ContainerDirectory containers({.pause = std::chrono::milliseconds(1)},
                                std::make_unique<OneContainer>("app"), kRunning);
  const InCgroup process(fmt::format("0::/docker/{}\n", OneContainer::kId));
  AgentConfig config;
  config.kubernetes.pod_labels = {"app/tier", "absent"};
  config.relabel_configs = {{.source_labels = {"app_tier"}, .target_label = "tier"}};
  EXPECT_THAT(*ExplainLabels(process.procfs(), config,
                             {.clock = kStopped, .containers = &containers}, Pid(18)),
              EndsWith(R"(rules:
  kubernetes.pod_labels[0]: replace [__meta_kubernetes_pod_label_app_tier] = "front"
    adds app_tier = "front"
  kubernetes.pod_labels[1]: replace [__meta_kubernetes_pod_label_absent] = ""
    no effect
  relabel_configs[0]: replace [app_tier] = "front"
    adds tier = "front"
labels of its samples:
  app_tier                   "front"
  container                  "app"
  namespace                  "shop"
  pod                        "web"
  service_name               "app"
  tier                       "front"
)"));
}

TEST(ExplainLabels, SaysThatThePodOptsOut) {
  ContainerDirectory containers({.pause = std::chrono::milliseconds(1)},
                                std::make_unique<OneContainer>("out"), kRunning);
  EXPECT_THAT(ExplainedIn(OneContainer::kId, &containers),
              EndsWith("samples: none, since the pod's annotation pyrometer.io/profile is "
                       "\"false\"\n"));
}

TEST(ExplainLabels, SaysThatNobodyIsAsked) {
  EXPECT_THAT(ExplainedIn(OneContainer::kId, nullptr),
              HasSubstr("its container: nobody is asked for it, since kubernetes.mode is off\n"));
}

TEST(ExplainLabels, TellsWhichRuleDropsTheProcess) {
  const InCgroup process("0::/a\n");
  AgentConfig config;
  config.relabel_configs = {
      {.target_label = "a", .replacement = "b"},
      {.action = RelabelAction::kDrop, .source_labels = {"__meta_process_pid"}, .regex = "1."},
      {.target_label = "never", .replacement = "x"}};
  const Result<std::string> text =
      ExplainLabels(process.procfs(), config, {.clock = kStopped}, Pid(18));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("drop [__meta_process_pid] = \"18\"\n    drops the process\n"));
  EXPECT_THAT(*text, EndsWith("samples: none, since relabel_configs[1] drops the process\n"));
}

TEST(ExplainLabels, SaysSoIfThereIsNoSuchProcess) {
  const InCgroup process("0::/a\n");
  const Result<std::string> text =
      ExplainLabels(process.procfs(), AgentConfig(), {.clock = kStopped}, Pid(19));
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(text.error().message(), "there is no process 19");
}

TEST(ExplainLabels, CallsKernelThreadsKernel) {
  TemporaryTree tree;
  tree.File(
      "proc/17/stat",
      "17 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
  const Result<std::string> text =
      ExplainLabels(tree.AsProcfs(), AgentConfig(), {.clock = kStopped}, Pid(17));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("rules:\n  none\n"));
  EXPECT_THAT(*text, EndsWith("labels of its samples:\n  service_name               \"kernel\"\n"));
}

}  // namespace
}  // namespace pyrometer
