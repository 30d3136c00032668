// SPDX-License-Identifier: Apache-2.0
#include "agent/label_explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/process_in_cgroup.h"

namespace pyrometer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(ExplainLabels, TellsWhatEachRuleDoes) {
  const InCgroup process("0::/system.slice/nginx.service\n");
  AgentConfig config;
  config.labels = {{"cluster", "blue"}, {"zone", "mine"}};
  config.relabel_configs = {
      {.source_labels = {"__meta_systemd_slice", "__meta_process_comm"}, .target_label = "zone"},
      {.target_label = "service_name", .replacement = "web"},
      {.action = RelabelAction::kDrop, .source_labels = {"zone"}, .regex = "no"},
      {.action = RelabelAction::kLabelDrop, .regex = "systemd_unit"}};
  const Result<std::string> text = ExplainLabels(process.procfs(), config, Pid(18));
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

TEST(ExplainLabels, SaysWhatTheRuntimeMayAdd) {
  const std::string id(64, 'a');
  const InCgroup process("0::/docker/" + id + "\n");
  AgentConfig config;
  const char* const said = "take the place of container_id";
  const Result<std::string> asked = ExplainLabels(process.procfs(), config, Pid(18));
  ASSERT_TRUE(asked.has_value());
  EXPECT_THAT(*asked, HasSubstr(id));
  EXPECT_THAT(*asked, HasSubstr(said));
  config.kubernetes.mode = KubernetesMode::kOff;
  const Result<std::string> off = ExplainLabels(process.procfs(), config, Pid(18));
  ASSERT_TRUE(off.has_value());
  EXPECT_THAT(*off, testing::Not(HasSubstr(said)));
}

TEST(ExplainLabels, TellsWhichRuleDropsTheProcess) {
  const InCgroup process("0::/a\n");
  AgentConfig config;
  config.relabel_configs = {
      {.target_label = "a", .replacement = "b"},
      {.action = RelabelAction::kDrop, .source_labels = {"__meta_process_pid"}, .regex = "1."},
      {.target_label = "never", .replacement = "x"}};
  const Result<std::string> text = ExplainLabels(process.procfs(), config, Pid(18));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("drop [__meta_process_pid] = \"18\"\n    drops the process\n"));
  EXPECT_THAT(*text, EndsWith("samples: none, since relabel_configs[1] drops the process\n"));
}

TEST(ExplainLabels, SaysSoIfThereIsNoSuchProcess) {
  const InCgroup process("0::/a\n");
  const Result<std::string> text = ExplainLabels(process.procfs(), AgentConfig(), Pid(19));
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(text.error().message(), "there is no process 19");
}

TEST(ExplainLabels, CallsKernelThreadsKernel) {
  TemporaryTree tree;
  tree.File(
      "proc/17/stat",
      "17 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
  const Result<std::string> text = ExplainLabels(tree.AsProcfs(), AgentConfig(), Pid(17));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("rules:\n  none\n"));
  EXPECT_THAT(*text, EndsWith("labels of its samples:\n  service_name               \"kernel\"\n"));
}

}  // namespace
}  // namespace pyrometer
