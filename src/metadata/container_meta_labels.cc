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

std::string AsName(std::string_view key) {
  std::string name(key);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

class MetaLabelSet {
 public:
  void Add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    labels_.try_emplace(fmt::format("__meta_kubernetes_{}", name),
                        Printable(value, Relabeling::kLongestValue));
  }
  // `kind`: "label", "annotation".
  void AddAll(std::string_view kind, const Texts& texts) {
    for (const auto& [key, value] : texts) {
      const std::string name = AsName(key);
      Add(fmt::format("pod_{}_{}", kind, name), value);
      Add(fmt::format("pod_{}present_{}", kind, name), "true");
    }
  }
  Labels Finish() && { return {labels_.begin(), labels_.end()}; }

 private:
  std::map<std::string, std::string> labels_;
};

}  // namespace

Labels MetaLabelsOfContainer(const ContainerMetadata& container) {
  const PodMetadata& pod = *container.pod;
  const Workload workload = WorkloadOf(pod);
  MetaLabelSet labels;
  labels.Add("namespace", pod.name_space);
  labels.Add("pod_name", pod.name);
  labels.Add("pod_uid", pod.uid);
  labels.Add("pod_controller_kind", workload.kind);
  labels.Add("pod_controller_name", workload.name);
  labels.Add("pod_container_name", container.name);
  labels.Add("pod_container_image", container.image);
  labels.Add("pod_container_id", container.id);
  labels.AddAll("label", pod.labels);
  labels.AddAll("annotation", pod.annotations);
  return std::move(labels).Finish();
}

}  // namespace pyrometer
