// SPDX-License-Identifier: Apache-2.0
#include "agent/process_explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/clock.h"
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
  ProcessExplainer explainer(process.procfs(), nullptr, nullptr);
  for (int i = 0; i < 3; ++i) {
    const Result<std::string> text = explainer.Explain(AgentConfig(), {}, Pid(18), {});
    ASSERT_TRUE(text.has_value()) << text.error().message();
    EXPECT_THAT(*text, HasSubstr("nginx.service"));
  }
  AgentConfig config;
  config.labels = {{"cluster", "blue"}};
  config.kubernetes.node_name = "n1";
  EXPECT_THAT(*explainer.Explain(config, {{"cluster", "green"}, {"zone", "a"}}, Pid(18), {}),
              EndsWith("labels of its samples:\n"
                       "  cluster                    \"blue\"\n"
                       "  node                       \"n1\"\n"
                       "  service_name               \"nginx\"\n"
                       "  systemd_unit               \"nginx.service\"\n"
                       "  zone                       \"a\"\n"));
  EXPECT_EQ(explainer.Explain(AgentConfig(), {}, Pid(19), {}).error().code(), ErrorCode::kNotFound);
}

TEST(ProcessExplainer, HasOneAtATime) {
  const InCgroup process("0::/docker/" + std::string(64, 'a') + "\n");
  std::atomic<bool> asked = false;
  std::atomic<bool> released = false;
  ContainerDirectory containers({.pause = std::chrono::milliseconds(1)},
                                std::make_unique<SlowSource>(asked, released));
  ProcessExplainer explainer(process.procfs(), &containers, nullptr);
  std::thread first([&] { EXPECT_TRUE(explainer.Explain(AgentConfig(), {}, Pid(18), {})); });
  asked.wait(false);
  EXPECT_EQ(explainer.Explain(AgentConfig(), {}, Pid(18), {}).error().code(),
            ErrorCode::kExhausted);
  released = true;
  released.notify_all();
  first.join();
}

// What knows the containers says nothing for as long as this takes.
TEST(ProcessExplainer, WaitsNoLongerThanItsCaller) {
  const InCgroup process("0::/docker/" + std::string(64, 'a') + "\n");
  std::atomic<bool> asked = false;
  std::atomic<bool> released = false;
  ContainerDirectory containers({.pause = std::chrono::milliseconds(1)},
                                std::make_unique<SlowSource>(asked, released));
  ProcessExplainer explainer(process.procfs(), &containers, nullptr);
  std::stop_source caller;
  std::thread goes_away([&] {
    asked.wait(false);
    caller.request_stop();
  });
  const MonotonicTime begin = MonotonicNow();
  static_cast<void>(explainer.Explain(AgentConfig(), {}, Pid(18), caller.get_token()));
  EXPECT_LT(Between(begin, MonotonicNow()), std::chrono::seconds(5));
  goes_away.join();
  released = true;
  released.notify_all();
}

}  // namespace
}  // namespace pyrometer
