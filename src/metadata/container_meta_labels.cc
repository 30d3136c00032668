// SPDX-License-Identifier: Apache-2.0
#include "metadata/container_meta_labels.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/printable.h"
#include "metadata/container_labels.h"
#include "metadata/relabel.h"

namespace pyrometer {
namespace {

using Texts = std::map<std::string, std::string>;

class MetaLabelSet {
 public:
  explicit MetaLabelSet(std::string_view prefix) : prefix_(prefix) {}

  void Add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    labels_.try_emplace(fmt::format("{}{}", prefix_, name),
                        Printable(value, Relabeling::kLongestValue));
  }
  // `kind`: "pod_label", "pod_annotation".
  void AddAll(std::string_view kind, const Texts& texts) {
    for (const auto& [key, value] : texts) Add(fmt::format("{}_{}", kind, LabelNameOf(key)), value);
  }
  // And that they are there.
  void AddAllPresent(std::string_view kind, const Texts& texts) {
    AddAll(kind, texts);
    for (const auto& text : texts) {
      Add(fmt::format("{}present_{}", kind, LabelNameOf(text.first)), "true");
    }
  }
  Labels Finish() && { return {labels_.begin(), labels_.end()}; }

 private:
  const std::string_view prefix_;
  std::map<std::string, std::string> labels_;
};

Labels OfPod(const ContainerMetadata& container) {
  const PodMetadata& pod = *container.pod;
  const Workload workload = WorkloadOf(pod);
  MetaLabelSet labels("__meta_kubernetes_");
  labels.Add("namespace", pod.name_space);
  labels.Add("pod_name", pod.name);
  labels.Add("pod_uid", pod.uid);
  labels.Add("pod_controller_kind", workload.kind);
  labels.Add("pod_controller_name", workload.name);
  labels.Add("pod_container_name", container.name);
  labels.Add("pod_container_image", container.image);
  labels.Add("pod_container_id", container.id);
  labels.AddAllPresent("pod_label", pod.labels);
  labels.AddAllPresent("pod_annotation", pod.annotations);
  return std::move(labels).Finish();
}

Labels OfDocker(const ContainerMetadata& container) {
  MetaLabelSet labels("__meta_docker_container_");
  labels.Add("id", container.id);
  labels.Add("name", container.name);
  labels.Add("image", container.image);
  labels.AddAll("label", container.labels);
  return std::move(labels).Finish();
}

}  // namespace

std::string LabelNameOf(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

Labels MetaLabelsOfContainer(const ContainerMetadata& container) {
  return container.pod->name.empty() ? OfDocker(container) : OfPod(container);
}

}  // namespace pyrometer
