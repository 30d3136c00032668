// SPDX-License-Identifier: Apache-2.0
#include "agent/process_labels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/process_directory.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/agent/process_in_cgroup.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

SeenProcess Seen(uint32_t pid, std::string_view comm, LabelSet inherited = nullptr) {
  return {.key = {Pid(pid), StartTime(1)}, .comm = comm, .inherited = std::move(inherited)};
}

std::string ValueIn(const LabelSet& labels, std::string_view name) {
  if (labels == nullptr) return "";
  const auto at = std::ranges::find(*labels, name, &Labels::value_type::first);
  return at == labels->end() ? "" : at->second;
}

std::string NameIn(const LabelSet& labels) {
  return ValueIn(labels, "service_name");
}

TEST(ProcessLabels, NamesTheProgram) {
  ProcessLabels labels;
  EXPECT_EQ(NameIn(labels.OnProcess(Seen(100, "nginx"))), "nginx");
}

TEST(ProcessLabels, NamesTheServiceOfSystemd) {
  ProcessLabels labels;
  const InCgroup process("0::/system.slice/nginx.service\n");
  EXPECT_EQ(*labels.OnProcess(process.Seen("worker")),
            (Labels{{"service_name", "nginx"}, {"systemd_unit", "nginx.service"}}));
}

TEST(ProcessLabels, NamesTheProgramOfASession) {
  ProcessLabels labels;
  const InCgroup process("0::/user.slice/user-1000.slice/session-3.scope\n");
  EXPECT_EQ(*labels.OnProcess(process.Seen("vim")),
            (Labels{{"service_name", "vim"}, {"systemd_unit", "user-1000.slice"}}));
}

TEST(ProcessLabels, TellsTheContainer) {
  ProcessLabels labels;
  const std::string id(64, 'a');
  const InCgroup process("0::/system.slice/docker-" + id + ".scope\n");
  EXPECT_EQ(*labels.OnProcess(process.Seen("mongod")),
            (Labels{{"container_id", id}, {"service_name", "mongod"}}));
}

// Never has any containers.
class NoContainers final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    return std::vector<ContainerMetadata>();
  }
  void Cancel() override {}
};

TEST(ProcessLabels, LooksUpAContainerAsSoonAsItIsSeen) {
  const FakeClock clock;
  ContainerDirectory containers({}, std::make_unique<NoContainers>(), clock);
  ProcessLabels labels(ProcessLabels::Limits{}, {.containers = &containers});
  labels.OnProcess(InCgroup("0::/system.slice/cron.service\n").Seen("cron"));
  EXPECT_EQ(containers.counters().awaited, 0);
  labels.OnProcess(InCgroup("0::/docker/" + std::string(64, 'a') + "\n").Seen("sh"));
  EXPECT_EQ(containers.counters().awaited, 1);
}

TEST(ProcessLabels, LeavesAProcessThatEndedWhereItsParentWas) {
  ProcessLabels labels;
  const InCgroup parent("0::/system.slice/cron.service\n");
  const LabelSet cron = labels.OnProcess(parent.Seen("cron"));
  EXPECT_EQ(labels.OnProcess(Seen(19, "sh", cron)), cron);
  const InCgroup container("0::/docker/" + std::string(64, 'a') + "\n");
  const LabelSet shell = labels.OnProcess(container.Seen("sh"));
  EXPECT_EQ(*labels.OnProcess(Seen(19, "ls", shell)),
            (Labels{{"container_id", std::string(64, 'a')}, {"service_name", "ls"}}));
}

TEST(ProcessLabels, GivesEqualNamesOneLabelSet) {
  ProcessLabels labels;
  const LabelSet one = labels.OnProcess(Seen(100, "nginx"));
  EXPECT_EQ(labels.OnProcess(Seen(101, "nginx")), one);
}

TEST(ProcessLabels, CallsAllKernelThreadsKernel) {
  ProcessLabels labels;
  const LabelSet daemon = labels.OnProcess(Seen(2, "kthreadd"));
  EXPECT_EQ(NameIn(daemon), "kernel");
  EXPECT_EQ(labels.OnProcess(Seen(17, "kworker/0:1-events", daemon)), daemon);
}

TEST(ProcessLabels, KnowsAKernelThreadThatWasThereBefore) {
  TemporaryTree tree;
  tree.File(
      "proc/17/stat",
      "17 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
  tree.File("proc/18/stat",
            "18 (nginx) S 1 18 18 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
  ProcessLabels labels;
  for (const auto& [pid, name] : {std::pair(17U, "kernel"), std::pair(18U, "nginx")}) {
    const Result<ProcessDirectory> directory = ProcessDirectory::Open(tree.AsProcfs(), Pid(pid));
    ASSERT_TRUE(directory.has_value());
    SeenProcess seen = Seen(pid, pid == 17 ? "kworker/0:1" : "nginx");
    seen.directory = &*directory;
    EXPECT_EQ(NameIn(labels.OnProcess(seen)), name);
  }
}

TEST(ProcessLabels, LabelsWhatIsOfNoKnownProcess) {
  ProcessLabels labels;
  EXPECT_EQ(NameIn(labels.OfUnknown(Pid(0), "swapper/1")), "kernel");
  EXPECT_EQ(NameIn(labels.OfUnknown(Pid(100), "nginx")), "nginx");
  EXPECT_EQ(NameIn(labels.OfUnknown(Pid(100), "")), "other");
}

TEST(ProcessLabels, BoundsTheNumberOfLabelSets) {
  ProcessLabels labels({.sets = 3});
  std::vector<Sample> samples(5);
  for (int i = 0; i < 5; ++i)
    samples[i].labels = labels.OnProcess(Seen(100, fmt::format("p{}", i)));
  labels.OnSamples(samples);
  EXPECT_EQ(NameIn(samples[2].labels), "p2");
  EXPECT_EQ(NameIn(samples[3].labels), "other");
  EXPECT_EQ(samples[4].labels, samples[3].labels);
}

TEST(ProcessLabels, ReusesTheRoomOfNamesThatNobodyBears) {
  ProcessLabels labels({.sets = 3});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(NameIn(labels.OnProcess(Seen(100, fmt::format("p{}", i)))), fmt::format("p{}", i));
  }
}

TEST(ProcessLabels, MakesNamesPrintable) {
  ProcessLabels labels;
  EXPECT_EQ(NameIn(labels.OnProcess(Seen(100, "a\x1b\xff"))), "a\uFFFD\uFFFD");
}

}  // namespace
}  // namespace pyrometer
