// SPDX-License-Identifier: Apache-2.0
// metadata_cost: what labels of pods cost where nothing changes. 1,000 pods as the API server
// writes them, with a container each, of which 200 have processes with samples in every window.
// Prints the CPU time of a window's labels as a share of a core, what is kept in MB, and the CPU
// time of one listing in ms.
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/process_labels.h"
#include "metadata/container_directory.h"
#include "metadata/pod_json.h"

namespace pyrometer {
namespace {

constexpr int kPods = 1000;
constexpr int kSampledContainers = 200;
constexpr int kWindows = 1000;
constexpr int kWindowSeconds = 10;
constexpr int kStepsPerWindow = 10;  // the agent looks for dropped cgroups each second
constexpr int kSamples = 2000;       // distinct ones of two busy CPUs

std::string IdOf(int pod) {
  return fmt::format("{:064x}", 0x1234567 + pod);
}

// Some 6 KB, as a pod of a Deployment with a sidecar's annotations has.
std::string PodText(int i) {
  std::string labels = fmt::format(R"("app.kubernetes.io/name": "service-{}")", i % 100);
  for (int n = 0; n < 10; ++n) {
    labels += fmt::format(R"(, "team.example.com/label-{}": "value-{}-{}")", n, n, i);
  }
  std::string annotations =
      R"("kubectl.kubernetes.io/last-applied-configuration": ")" + std::string(3000, 'x') + "\"";
  for (int n = 0; n < 5; ++n) {
    annotations += fmt::format(R"(, "example.com/note-{}": "{}")", n, std::string(200, 'y'));
  }
  return fmt::format(
      R"({{"metadata": {{"name": "service-{0}-7d4b9c5f6d-{1:05x}", "namespace": "team-{2}", "uid": )"
      R"("00000000-0000-0000-0000-{1:012x}", "resourceVersion": "{1}", "labels": {{{3}}}, )"
      R"("annotations": {{{4}}}, "ownerReferences": [{{"kind": "ReplicaSet", "controller": true, )"
      R"("name": "service-{0}-7d4b9c5f6d"}}]}}, "spec": {{"nodeName": "n1"}}, "status": )"
      R"({{"containerStatuses": [{{"name": "main", "image": "registry.example.com/service:1.{1}", )"
      R"("containerID": "containerd://{5}"}}]}}}})",
      i % 100, i, i % 20, labels, annotations, IdOf(i));
}

std::string PodList() {
  std::string items;
  for (int i = 0; i < kPods; ++i) items += (i == 0 ? "" : ",") + PodText(i);
  return R"({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [)" + items + "]}";
}

class Cluster final : public ContainerSource {
 public:
  Result<std::vector<ContainerMetadata>> List() override {
    Result<PodListPage> page = ReadPodList(PodList());
    if (!page) return std::move(page).error();
    return std::move(page->containers);
  }
  void Cancel() override {}
};

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double HeapMegabytes() {
  ::malloc_trim(0);
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd) / 1e6;
}

// As a child of a process in the container has them.
LabelSet InContainer(int pod) {
  const std::string cgroup = fmt::format("/kubepods/pod{}/{}", pod, IdOf(pod));
  return std::make_shared<const Labels>(
      Labels{{std::string(kMetaCgroupPath), cgroup}, {std::string(kContainerIdLabel), IdOf(pod)}});
}

int Run() {
  double begin = CpuSeconds();
  if (Cluster().List()->size() != kPods) return 1;
  const double written_and_read = CpuSeconds() - begin;
  begin = CpuSeconds();
  if (PodList().empty()) return 1;
  const double listing = written_and_read - (CpuSeconds() - begin);

  const double before = HeapMegabytes();
  const Clock clock;
  ContainerDirectory containers({}, std::make_unique<Cluster>(), clock);
  ProcessLabels labels({}, {.containers = &containers});
  std::vector<LabelSet> sets;
  for (int i = 0; i < kSampledContainers; ++i) {
    const Pid pid(static_cast<uint32_t>(i + 2));
    sets.push_back(labels.OnProcess({.key = {pid, StartTime(1)},
                                     .comm = "server",
                                     .directory = nullptr,
                                     .inherited = InContainer(i)}));
  }
  while (containers.counters().known < kPods) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto window = [&] {
    std::vector<Sample> samples(kSamples);
    for (size_t i = 0; i < samples.size(); ++i) samples[i].labels = sets[i % sets.size()];
    labels.OnSamples(samples);
    for (int step = 0; step < kStepsPerWindow; ++step) labels.TakeDroppedCgroups();
    return samples.size() == kSamples && !samples[0].labels->empty();
  };
  if (!window()) return 1;
  const double kept = HeapMegabytes() - before;
  begin = CpuSeconds();
  for (int i = 0; i < kWindows; ++i) window();
  const double share = (CpuSeconds() - begin) / (kWindows * kWindowSeconds);
  fmt::print("{:.4f} {:.2f} {:.1f}\n", share * 100, kept, listing * 1000);
  return 0;
}

}  // namespace
}  // namespace pyrometer

int main() {
  return pyrometer::Run();
}
