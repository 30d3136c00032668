// SPDX-License-Identifier: Apache-2.0
#include "metadata/kube_api_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "local_server.h"
#include "metadata/container_directory.h"
#include "pod_texts.h"

namespace pyrometer {
namespace {

using namespace std::chrono_literals;

struct Step {
  int status = 200;
  std::string body;
};

// Answers each request with the next step, and holds the last one's connection; notes what was
// asked.
class Script {
 public:
  explicit Script(std::vector<Step> steps) : steps_(std::move(steps)) {
    local_.server.Get("/api/v1/pods", [this](const auto& request, auto& response) {
      const std::lock_guard lock(mutex_);
      std::string asked = request.get_param_value("watch") == "1" ? "watch" : "list";
      asked += " " + request.get_param_value("resourceVersion");
      if (request.has_param("continue"))
        asked += " continue " + request.get_param_value("continue");
      if (request.get_param_value("fieldSelector") != "spec.nodeName=n1") asked += " wrong node";
      asked_.push_back(asked);
      if (asked_.size() > steps_.size()) {
        response.set_chunked_content_provider("application/json", [this](size_t, auto& sink) {
          std::this_thread::sleep_for(20ms);
          return !ended_ && sink.is_writable();
        });
        return;
      }
      const Step& step = steps_[asked_.size() - 1];
      response.status = step.status;
      response.set_content(step.body, "application/json");
    });
    url_ = local_.Start();
  }
  ~Script() { ended_ = true; }

  const std::string& url() const { return url_; }
  std::vector<std::string> Asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // All steps and the watch that is held.
  std::vector<std::string> AwaitAll() {
    for (int i = 0; i < 1000 && Asked().size() <= steps_.size(); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    return Asked();
  }

 private:
  const std::vector<Step> steps_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  std::atomic<bool> ended_ = false;
  std::string url_;
  LocalServer local_;
};

KubeApiClient::Options OptionsOf(const Script& script) {
  return {
      .endpoint = {.url = script.url()}, .node_name = "n1", .pause = 5ms, .longest_pause = 20ms};
}

using Texts = std::vector<std::string>;

Texts IdsOf(KubeApiClient& client) {
  Texts ids;
  const auto list = client.List();
  if (!list) return {list.error().message()};
  for (const ContainerMetadata& container : *list) ids.push_back(container.id);
  return ids;
}

TEST(KubeApiClient, ListsOnceAndWatchesFromThere) {
  Script script({{200, ListText(PodText("a", "1"), "", "x/y")},
                 {200, ListText(PodText("b", "2"), "5")},
                 {200, EventText("ADDED", PodText("c", "6")) + BookmarkText("8") +
                           EventText("DELETED", PodText("a", "9"))}});
  KubeApiClient client(OptionsOf(script));
  EXPECT_EQ(script.AwaitAll(), (Texts{"list 0", "list  continue x/y", "watch 5", "watch 9"}));
  EXPECT_EQ(IdsOf(client), (Texts{"b", "c"}));
}

TEST(KubeApiClient, ListsAgainOnlyWhenTheServerHasForgotten) {
  Script script({{200, ListText(PodText("a", "1"), "1")},
                 {410, ""},
                 {200, ListText(PodText("b", "2"), "2")},
                 {200, EventText("ERROR", R"({"code": 410})")},
                 {200, ListText(PodText("c", "3"), "3")}});
  KubeApiClient client(OptionsOf(script));
  EXPECT_EQ(script.AwaitAll(),
            (Texts{"list 0", "watch 1", "list ", "watch 2", "list ", "watch 3"}));
  EXPECT_EQ(IdsOf(client), (Texts{"c"}));
}

TEST(KubeApiClient, GoesOnFromWhereAWatchWasCut) {
  Script script({{200, ListText("", "1")},
                 {200, EventText("ADDED", PodText("a", "2")) + R"({"type": "ADD)"},
                 {401, ""},
                 {200, BookmarkText("3")}});
  KubeApiClient client(OptionsOf(script));
  EXPECT_EQ(script.AwaitAll(), (Texts{"list 0", "watch 1", "watch 2", "watch 2", "watch 3"}));
  EXPECT_EQ(IdsOf(client), (Texts{"a"}));
}

// Lists between the watches succeed, which would be enough if it were not for what comes after.
TEST(KubeApiClient, TellsThatTheWatchFailsAgainAndAgain) {
  Script script({{200, ListText(PodText("a", "1"), "1")},
                 {500, "broken"},
                 {500, "broken"},
                 {500, "broken"},
                 {200, ListText(PodText("a", "1"), "1")},
                 {500, "broken"},
                 {200, BookmarkText("2")}});
  KubeApiClient::Options options = OptionsOf(script);
  options.pause = options.longest_pause = 100ms;
  KubeApiClient client(options);
  std::atomic<int> changes = 0;
  client.TellChanges([&] { ++changes; });
  bool has_failed = false;
  while (script.Asked().size() < 8) {
    has_failed |= !client.List().has_value();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(has_failed);
  EXPECT_GE(changes, 3) << "the failure, its end, and so the directory asks";
  EXPECT_EQ(IdsOf(client), (Texts{"a"}));
}

TEST(KubeApiClient, TakesNoMorePodsThanANodeHas) {
  const std::string three = PodText("a", "1") + "," + PodText("b", "1") + "," + PodText("c", "1");
  Script script(
      {{200, ListText(three, "1")},
       {200, ListText(PodText("a", "1"), "1")},
       {200, EventText("ADDED", PodText("b", "2")) + EventText("ADDED", PodText("c", "3"))}});
  KubeApiClient::Options options = OptionsOf(script);
  options.most_pods = 2;
  KubeApiClient client(options);
  script.AwaitAll();
  EXPECT_EQ(IdsOf(client), (Texts{"a", "b"}));
}

TEST(KubeApiClient, SaysWhyItHasNothingYet) {
  Script script({{403, "forbidden"}, {200, ListText(PodText("a", "1"), "1")}});
  KubeApiClient::Options options = OptionsOf(script);
  options.pause = options.longest_pause = 500ms;
  KubeApiClient client(options);
  const auto list = client.List();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), ErrorCode::kPermission);
  script.AwaitAll();
  EXPECT_EQ(IdsOf(client), (Texts{"a"}));
}

TEST(KubeApiClient, HasOthersBeAskedWhenAWatchHasEnded) {
  Script script(
      {{200, ListText("", "1")}, {200, BookmarkText("2")}, {200, ""}, {200, BookmarkText("3")}});
  KubeApiClient client(OptionsOf(script));
  std::atomic<int> changes = 0;
  client.TellChanges([&] { ++changes; });
  script.AwaitAll();
  EXPECT_GE(changes, 3);
}

TEST(KubeApiClient, TellsTheDirectoryOfAContainerThatComesLate) {
  Script script(
      {{200, ListText("", "1")}, {500, ""}, {200, EventText("ADDED", PodText("late", "2"))}});
  KubeApiClient::Options options = OptionsOf(script);
  options.pause = options.longest_pause = 200ms;
  ContainerDirectory directory({.pause = 10ms, .most_misses = 1},
                               std::make_unique<KubeApiClient>(options));
  auto answer = directory.Find("late");
  for (int i = 0; i < 1000 && answer.metadata == nullptr; ++i) {
    std::this_thread::sleep_for(10ms);
    answer = directory.Find("late");
  }
  ASSERT_NE(answer.metadata, nullptr);
  EXPECT_EQ(answer.metadata->name, "c");
}

}  // namespace
}  // namespace pyrometer
