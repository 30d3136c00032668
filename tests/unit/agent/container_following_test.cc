// SPDX-License-Identifier: Apache-2.0
#include "agent/container_following.h"

#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"

namespace pyrometer {
namespace {

TEST(FollowContainers, IsNobodyIfItIsOff) {
  const Clock clock;
  Log log(clock);
  EXPECT_EQ(FollowContainers({.mode = KubernetesMode::kOff}, log), nullptr);
  EXPECT_NE(FollowContainers({.mode = KubernetesMode::kAuto}, log), nullptr);
}

// Why an agent that runs with `now` cannot go over to `next`; "" if it can.
std::string WhyNot(const KubernetesConfig& next, const KubernetesConfig& now) {
  const Result<void> checked = CheckSameSource(next, now);
  return checked ? "" : checked.error().message();
}

TEST(CheckSameSource, LetsChangeWhatNobodyIsAskedBy) {
  const KubernetesConfig now{.node_name = "n1"};
  KubernetesConfig next{.node_name = "n2", .pod_labels = {"app"}};
  EXPECT_EQ(WhyNot(next, now), "");
  KubernetesConfig without_token = now;
  without_token.api = {.url = "https://a:1", .token_file = "/proc/self/none"};
  next.api = without_token.api;
  EXPECT_EQ(WhyNot(next, without_token), "");
  next.mode = KubernetesMode::kOff;
  EXPECT_EQ(WhyNot(next, now),
            "of kubernetes only node_name and pod_labels can change while the agent runs; "
            "restart it");
}

TEST(CheckSameSource, SaysThatAnotherNodeTakesARestart) {
  const KubernetesConfig labelled{.mode = KubernetesMode::kOff,
                                  .node_name = "n1",
                                  .node_labels = {"zone"},
                                  .api = {.url = "https://a:1"}};
  EXPECT_EQ(WhyNot(labelled, labelled), "");
  KubernetesConfig next = labelled;
  next.node_name = "n2";
  EXPECT_EQ(WhyNot(next, labelled),
            "kubernetes.node_name, by which the API server is asked, cannot change while the agent "
            "runs; restart it");
  next.node_labels = {"region"};
  EXPECT_EQ(WhyNot(next, labelled),
            "of kubernetes only pod_labels can change while the agent runs; restart it");
  EXPECT_EQ(WhyNot({.mode = KubernetesMode::kKubelet, .node_name = "n2"},
                   {.mode = KubernetesMode::kKubelet, .node_name = "n1"}),
            "kubernetes.node_name, by which the kubelet is asked, cannot change while the agent "
            "runs; restart it");
}

}  // namespace
}  // namespace pyrometer
