// SPDX-License-Identifier: Apache-2.0
// ProcessLabels with containers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/process_labels.h"
#include "tests/shared/eventually.h"
#include "tests/unit/agent/process_in_cgroup.h"
#include "tests/unit/agent/rule_texts.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using Action = RelabelAction;
using Patience = LabelOutcomes::Patience;
using State = ContainerDirectory::Answer::State;
using Rules = std::vector<RelabelRule>;

constexpr const char* kDropped = "dropped";

// What the runtime has; no answer until there is something.
class Runtime {
 public:
  void Set(std::vector<ContainerMetadata> containers) {
    const std::lock_guard lock(mutex_);
    containers_ = std::move(containers);
  }
  std::optional<std::vector<ContainerMetadata>> Get() const {
    const std::lock_guard lock(mutex_);
    return containers_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::vector<ContainerMetadata>> containers_;
};

class RuntimeSource final : public ContainerSource {
 public:
  explicit RuntimeSource(const Runtime& runtime) : runtime_(runtime) {}

  Result<std::vector<ContainerMetadata>> List() override {
    while (!cancelled_) {
      if (auto containers = runtime_.Get()) return *std::move(containers);
      std::this_thread::yield();
    }
    return Error(ErrorCode::kIo, "cancelled");
  }
  void Cancel() override { cancelled_ = true; }

 private:
  const Runtime& runtime_;
  std::atomic<bool> cancelled_ = false;
};

std::string Id(char c) {
  return std::string(64, c);
}

class ContainerNamesTest : public testing::Test {
 protected:
  static ContainerMetadata App(PodMetadata pod = {.name = "web", .name_space = "shop"}) {
    return {
        .id = Id('a'), .name = "app", .pod = std::make_shared<const PodMetadata>(std::move(pod))};
  }

  void SetRules(const Rules& rules) { labels_.SetRules(*Relabeling::Compile(rules)); }

  // A process in the container with this id.
  LabelSet See(char id, std::string_view comm = "nginx") {
    held_.push_back(labels_.OnProcess(InCgroup("0::/pods/" + Id(id) + "\n").Seen(comm)));
    return held_.back();
  }

  static void Await(ContainerDirectory& containers, char id, State state) {
    EXPECT_TRUE(Eventually([&] { return containers.Find(Id(id)).state == state; }));
  }
  void Await(char id, State state) { Await(containers_, id, state); }

  // Until the directory has seen a change: something unknown makes it ask.
  void AwaitChange(const std::vector<ContainerMetadata>& containers) {
    const uint64_t before = containers_.changes();
    runtime_.Set(containers);
    EXPECT_TRUE(Eventually([&, i = 0]() mutable {
      containers_.Find(fmt::format("unknown {}", i++ % 1000));
      return containers_.changes() != before;
    }));
  }

  LabelSet Carried(const LabelSet& labels) {
    std::vector<Sample> samples(1);
    samples[0].process = {Pid(18), StartTime(1)};
    samples[0].labels = labels;
    labels_.OnSamples(samples);
    return samples.empty() ? nullptr : samples[0].labels;
  }

  std::optional<LabelSet> Settled(const LabelSet& labels, Patience patience = Patience::kWaits) {
    return labels_.Settle(std::span(&labels, 1), patience)[0];
  }

  const Clock clock_;
  Runtime runtime_;
  EnvironmentReader environments_{Procfs{}, clock_, nullptr};  // never started
  ContainerDirectory containers_{
      {.pause = std::chrono::milliseconds(1)}, std::make_unique<RuntimeSource>(runtime_), clock_};
  ProcessLabels labels_{ProcessLabels::Limits{},
                        {.containers = &containers_, .environments = &environments_}};
  std::vector<LabelSet> held_;
};

TEST_F(ContainerNamesTest, PutsThemInThePlaceOfTheId) {
  runtime_.Set({App()});
  const LabelSet app = See('a');
  const LabelSet stranger = See('b', "sh");
  Await('a', State::kKnown);
  Await('b', State::kUnknown);
  EXPECT_EQ(Text(Carried(app)), "container=app namespace=shop pod=web service_name=app");
  EXPECT_EQ(Text(Carried(stranger)), "container_id=" + Id('b') + " service_name=sh");
  const LabelSet cron = labels_.OnProcess(InCgroup("0::/system.slice/cron.service\n").Seen("cron"));
  EXPECT_EQ(Text(Carried(cron)), "service_name=cron systemd_unit=cron.service");
}

// The precedence that pyrometer.yaml documents.
TEST_F(ContainerNamesTest, NameTheServiceAfterItsEnvironmentAndAfterAnAnnotation) {
  const LabelSet plain = See('a');
  EXPECT_EQ(labels_.OnService(plain, ""), nullptr) << "nothing is new";
  const LabelSet named = labels_.OnService(plain, "cart");
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(labels_.OnService(named, "cart"), nullptr);
  ContainerMetadata app =
      App({.name = "web", .name_space = "shop", .labels = {{"app.kubernetes.io/name", "web-app"}}});
  AwaitChange({app});
  Await('a', State::kKnown);
  EXPECT_EQ(Text(Carried(plain)), "container=app namespace=shop pod=web service_name=web-app");
  EXPECT_EQ(Text(Carried(named)), "container=app namespace=shop pod=web service_name=cart");
  PodMetadata annotated = *app.pod;
  annotated.annotations = {{"pyroscope.io/service_name", "by-annotation"}};
  AwaitChange({App(annotated)});
  EXPECT_EQ(Text(Carried(named)),
            "container=app namespace=shop pod=web service_name=by-annotation");
  SetRules({{.source_labels = {std::string(kMetaProcessOtelServiceName)},
             .target_label = std::string(kServiceNameLabel)}});
  EXPECT_EQ(Text(Carried(named)), "container=app namespace=shop pod=web service_name=cart");
}

TEST_F(ContainerNamesTest, LetAChildHaveItsParentsServiceUntilItsOwnIsKnown) {
  const InCgroup process("0::/system.slice/shop.service\n");
  const LabelSet parent = labels_.OnService(labels_.OnProcess(process.Seen("java")), "cart");
  SeenProcess seen = process.Seen("sh");
  seen.inherited = parent;
  const LabelSet child = labels_.OnProcess(seen);
  EXPECT_EQ(Text(Carried(child)), "service_name=cart systemd_unit=shop.service");
  const LabelSet without = labels_.OnService(child, "");
  ASSERT_NE(without, nullptr);
  EXPECT_EQ(Text(Carried(without)), "service_name=shop systemd_unit=shop.service")
      << "the service of systemd";
  EXPECT_EQ(labels_.OnService(labels_.OfUnknown(Pid(7), ""), "cart"), nullptr)
      << "of those that are not told apart";
}

TEST_F(ContainerNamesTest, AreForRulesToSee) {
  runtime_.Set({App({.name = "web",
                     .name_space = "shop",
                     .labels = {{"team.io/name", "blue"}},
                     .annotations = {{"pyrometer.io/service-name", "front"}}})});
  SetRules({{.source_labels = {"__meta_kubernetes_pod_label_team_io_name"}, .target_label = "team"},
            {.source_labels = {"service_name", "namespace"},
             .separator = ".",
             .target_label = "service_name"},
            {.action = Action::kLabelDrop, .regex = "container|pod"}});
  const LabelSet app = See('a');
  Await('a', State::kKnown);
  EXPECT_EQ(Text(Carried(app)), "namespace=shop service_name=front.shop team=blue");
}

TEST_F(ContainerNamesTest, AreAwaitedAndPutOnLater) {
  SetRules({{.source_labels = {"namespace"}, .target_label = "ns"}});
  const LabelSet app = See('a');
  const LabelSet carried = Carried(app);
  EXPECT_EQ(carried, app);
  EXPECT_EQ(Settled(carried), std::nullopt);
  runtime_.Set({App()});
  Await('a', State::kKnown);
  const std::optional<LabelSet> settled = Settled(carried);
  ASSERT_TRUE(settled.has_value());
  EXPECT_EQ(Text(*settled), "container=app namespace=shop ns=shop pod=web service_name=app");
  EXPECT_EQ(Settled(*settled), settled) << "it is no container that is awaited";
}

TEST_F(ContainerNamesTest, AreGivenUpAtLast) {
  SetRules({{.source_labels = {"__meta_process_comm"}, .target_label = "program"},
            Drop("__meta_process_comm", "noisy")});
  EXPECT_EQ(Text(*Settled(Carried(See('a')), Patience::kGivesUp)),
            "container_id=" + Id('a') + " program=nginx service_name=nginx");
  EXPECT_EQ(Text(*Settled(Carried(See('a', "noisy")), Patience::kGivesUp)), kDropped);
}

TEST_F(ContainerNamesTest, AreAwaitedByWhatWaitsThoughTheRuntimeDoesNotKnowThemYet) {
  const LabelSet app = See('a');
  const LabelSet carried = Carried(app);
  runtime_.Set({});
  Await('a', State::kUnknown);
  EXPECT_EQ(Settled(carried), std::nullopt);
  EXPECT_EQ(labels_.nameless_samples(), 0);
  EXPECT_EQ(Text(*Settled(carried, Patience::kGivesUp)),
            "container_id=" + Id('a') + " service_name=nginx");
}

TEST_F(ContainerNamesTest, AreMissedInTicksThatDoNotWait) {
  runtime_.Set({App()});
  const LabelSet app = See('a');
  const LabelSet stranger = See('b', "sh");
  const LabelSet none = labels_.OnProcess(InCgroup("0::/system.slice/cron.service\n").Seen("cron"));
  Await('a', State::kKnown);
  Await('b', State::kUnknown);
  std::vector<Sample> samples(4);
  for (const auto& [at, labels] : {std::pair(0, app), {1, stranger}, {2, none}, {3, stranger}}) {
    samples[at].labels = labels;
    samples[at].count = 1U << at;
  }
  labels_.OnSamples(samples);
  EXPECT_EQ(labels_.nameless_samples(), 2 + 8);
  SetRules({Drop("__meta_process_comm", "sh")});
  std::vector<Sample> dropped(1);
  dropped[0].labels = See('b', "sh");  // what rules see is captured from then on
  dropped[0].count = 1;
  labels_.OnSamples(dropped);
  EXPECT_THAT(dropped, IsEmpty());
  EXPECT_EQ(labels_.nameless_samples(), 2 + 8) << "of those that are dropped";
}

TEST_F(ContainerNamesTest, DropWhatWasAwaited) {
  SetRules({Drop("namespace", "shop")});
  const LabelSet carried = Carried(See('a'));
  Profile profile;
  profile.samples.resize(2);
  profile.samples[0].labels = carried;
  runtime_.Set({App()});
  Await('a', State::kKnown);
  EXPECT_EQ(Text(*Settled(carried)), kDropped);
  labels_.SettleNow(profile);
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].labels, nullptr);
}

TEST_F(ContainerNamesTest, DoNotKeepAScrapeWaiting) {
  Profile profile;
  profile.samples.resize(1);
  profile.samples[0].labels = Carried(See('a'));
  labels_.SettleNow(profile);
  EXPECT_EQ(Text(profile.samples.at(0).labels), "container_id=" + Id('a') + " service_name=nginx");
}

TEST_F(ContainerNamesTest, TellWhichCgroupsAreDroppedWhole) {
  runtime_.Set({App()});
  See('b');
  const LabelSet app = See('a');
  Await('a', State::kKnown);
  Await('b', State::kUnknown);
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
  for (const char* name : {"namespace", "__meta_kubernetes_pod_name", "service_name"}) {
    SetRules({Drop(name, "shop|web|app")});
    EXPECT_EQ(Text(Carried(app)), kDropped);
    EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(ElementsAre("/pods/" + Id('a')))) << name;
  }
  SetRules({Drop("__meta_process_comm", "nginx")});
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty()));
}

TEST_F(ContainerNamesTest, LetAPodOptOutAndInAgain) {
  const PodMetadata out{
      .name = "web", .name_space = "shop", .annotations = {{"pyrometer.io/profile", "false"}}};
  runtime_.Set({App(out)});
  const LabelSet app = See('a');
  Await('a', State::kKnown);
  EXPECT_EQ(Text(Carried(app)), kDropped);
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(ElementsAre("/pods/" + Id('a'))));
  AwaitChange({App()});
  EXPECT_THAT(labels_.TakeDroppedCgroups(), Optional(IsEmpty())) << "without any sample";
  EXPECT_EQ(Text(Carried(app)), "container=app namespace=shop pod=web service_name=app");
}

TEST_F(ContainerNamesTest, StayWhenTheDirectoryHasForgottenThem) {
  ContainerDirectory small({.pause = std::chrono::milliseconds(1), .most_containers = 2},
                           std::make_unique<RuntimeSource>(runtime_), clock_);
  ProcessLabels labels(ProcessLabels::Limits{}, {.containers = &small});
  runtime_.Set({App()});
  const LabelSet app = labels.OnProcess(InCgroup("0::/pods/" + Id('a') + "\n").Seen("nginx"));
  std::vector<Sample> samples(1);
  for (const bool is_first : {true, false}) {
    if (is_first) Await(small, 'a', State::kKnown);
    samples[0].labels = app;
    labels.OnSamples(samples);
    EXPECT_EQ(Text(samples.at(0).labels), "container=app namespace=shop pod=web service_name=app");
    runtime_.Set({});
    for (const char other : {'b', 'c', 'd'}) small.Find(Id(other));  // for which it goes
  }
}

}  // namespace
}  // namespace pyrometer
