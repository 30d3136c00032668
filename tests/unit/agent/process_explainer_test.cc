// SPDX-License-Identifier: Apache-2.0
#include "agent/process_explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/agent/process_in_cgroup.h"

namespace pyrometer {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Lists nothing until it is released.
class SlowSource final : public ContainerSource {
 public:
  SlowSource(std::atomic<bool>& asked, std::atomic<bool>& released)
      : asked_(asked), released_(released) {}
  Result<std::vector<ContainerMetadata>> List() override {
    asked_ = true;
    asked_.notify_all();
    released_.wait(false);
    return std::vector<ContainerMetadata>();
  }
  void Cancel() override {}

 private:
  std::atomic<bool>& asked_;
  std::atomic<bool>& released_;
};

TEST(ProcessExplainer, ExplainsOneAfterTheOther) {
  const InCgroup process("0::/system.slice/nginx.service\n");
  const FakeClock clock;
  ProcessExplainer explainer(process.procfs(), clock, nullptr, nullptr);
  for (int i = 0; i < 3; ++i) {
    const Result<std::string> text = explainer.Explain(AgentConfig(), {}, Pid(18));
    ASSERT_TRUE(text.has_value()) << text.error().message();
    EXPECT_THAT(*text, HasSubstr("nginx.service"));
  }
  AgentConfig config;
  config.labels = {{"cluster", "blue"}};
  config.kubernetes.node_name = "n1";
  EXPECT_THAT(*explainer.Explain(config, {{"cluster", "green"}, {"zone", "a"}}, Pid(18)),
              EndsWith("labels of its samples:\n"
                       "  cluster                    \"blue\"\n"
                       "  node                       \"n1\"\n"
                       "  service_name               \"nginx\"\n"
                       "  systemd_unit               \"nginx.service\"\n"
                       "  zone                       \"a\"\n"));
  EXPECT_EQ(explainer.Explain(AgentConfig(), {}, Pid(19)).error().code(), ErrorCode::kNotFound);
}

TEST(ProcessExplainer, HasOneAtATime) {
  const InCgroup process("0::/docker/" + std::string(64, 'a') + "\n");
  std::atomic<bool> asked = false;
  std::atomic<bool> released = false;
  // Stands still, so that the second comes while the first is explained, however late it is.
  FakeClock clock;
  ContainerDirectory containers({}, std::make_unique<SlowSource>(asked, released), clock);
  ProcessExplainer explainer(process.procfs(), clock, &containers, nullptr);
  auto first =
      std::async(std::launch::async, [&] { return explainer.Explain(AgentConfig(), {}, Pid(18)); });
  asked.wait(false);
  EXPECT_EQ(explainer.Explain(AgentConfig(), {}, Pid(18)).error().code(), ErrorCode::kExhausted);
  released = true;
  released.notify_all();
  EXPECT_TRUE(Eventually([&] {
    clock.Advance(std::chrono::seconds(1));
    return first.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }));
  EXPECT_TRUE(first.get());
}

}  // namespace
}  // namespace pyrometer
