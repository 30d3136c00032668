// SPDX-License-Identifier: Apache-2.0
#include "metadata/kube_api_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "local_server.h"
#include "metadata/container_directory.h"
#include "pod_texts.h"
#include "tests/shared/eventually.h"

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
  // Of the steps so many are answered, the others once Release() was called.
  explicit Script(std::vector<Step> steps, size_t before_release = SIZE_MAX)
      : steps_(std::move(steps)), answered_(before_release) {
    local_.server.Get("/api/v1/pods", [this](const auto& request, auto& response) {
      std::unique_lock lock(mutex_);
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
      changed_.wait(lock, [&, nth = asked_.size()] { return nth <= answered_ || ended_; });
      response.status = step.status;
      response.set_content(step.body, "application/json");
    });
    url_ = local_.Start();
  }
  ~Script() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // Lets so many steps in all be answered.
  void Release(size_t count = SIZE_MAX) {
    const std::lock_guard lock(mutex_);
    answered_ = count;
    changed_.notify_all();
  }

  const std::string& url() const { return url_; }
  std::vector<std::string> Asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // Until so many requests have come.
  std::vector<std::string> Await(size_t count) {
    EXPECT_TRUE(Eventually([&] { return Asked().size() >= count; }));
    return Asked();
  }
  // All steps and the watch that is held.
  std::vector<std::string> AwaitAll() { return Await(steps_.size() + 1); }

 private:
  const std::vector<Step> steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t answered_;
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

const Clock kRealClock;

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
  KubeApiClient client(OptionsOf(script), kRealClock);
  EXPECT_EQ(script.AwaitAll(), (Texts{"list 0", "list  continue x/y", "watch 5", "watch 9"}));
  EXPECT_EQ(IdsOf(client), (Texts{"b", "c"}));
}

TEST(KubeApiClient, ListsAgainOnlyWhenTheServerHasForgotten) {
  Script script({{200, ListText(PodText("a", "1"), "1")},
                 {410, ""},
                 {200, ListText(PodText("b", "2"), "2")},
                 {200, EventText("ERROR", R"({"code": 410})")},
                 {200, ListText(PodText("c", "3"), "3")}});
  KubeApiClient client(OptionsOf(script), kRealClock);
  EXPECT_EQ(script.AwaitAll(),
            (Texts{"list 0", "watch 1", "list ", "watch 2", "list ", "watch 3"}));
  EXPECT_EQ(IdsOf(client), (Texts{"c"}));
}

TEST(KubeApiClient, GoesOnFromWhereAWatchWasCut) {
  Script script({{200, ListText("", "1")},
                 {200, EventText("ADDED", PodText("a", "2")) + R"({"type": "ADD)"},
                 {401, ""},
                 {200, BookmarkText("3")}});
  KubeApiClient client(OptionsOf(script), kRealClock);
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
                 {200, BookmarkText("2")}},
                0);
  KubeApiClient client(OptionsOf(script), kRealClock);
  std::atomic<int> changes = 0;
  client.TellChanges([&] { ++changes; });
  script.Release(4);
  script.Await(5);
  EXPECT_FALSE(client.List().has_value()) << "three watches have failed";
  EXPECT_EQ(changes, 2) << "listed, failing; and so the directory asks";
  script.Release();
  script.AwaitAll();
  EXPECT_EQ(changes, 5) << "listed, failing, watching";
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
  KubeApiClient client(options, kRealClock);
  script.AwaitAll();
  EXPECT_EQ(IdsOf(client), (Texts{"a", "b"}));
}

TEST(KubeApiClient, SaysWhyItHasNothingYet) {
  Script script({{403, "forbidden"}, {200, ListText(PodText("a", "1"), "1")}}, 1);
  KubeApiClient client(OptionsOf(script), kRealClock);
  const auto list = client.List();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), ErrorCode::kPermission);
  script.Release();
  script.AwaitAll();
  EXPECT_EQ(IdsOf(client), (Texts{"a"}));
}

TEST(KubeApiClient, TellsTheDirectoryOfAContainerThatComesLate) {
  Script script(
      {{200, ListText("", "1")}, {500, ""}, {200, EventText("ADDED", PodText("late", "2"))}}, 2);
  ContainerDirectory directory({.pause = 10ms, .most_misses = 1, .longest_delay = 0ms},
                               std::make_unique<KubeApiClient>(OptionsOf(script), kRealClock),
                               kRealClock);
  using State = ContainerDirectory::Answer::State;
  ASSERT_TRUE(Eventually([&] { return directory.Find("late").state == State::kUnknown; }));
  script.Release();
  ASSERT_TRUE(Eventually([&] { return directory.Find("late").state == State::kKnown; }));
  EXPECT_EQ(directory.Find("late").metadata->name, "c");
}

}  // namespace
}  // namespace pyrometer
