// SPDX-License-Identifier: Apache-2.0
#include "agent/late_labels.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "agent/process_facts.h"
#include "metadata/container_labels.h"

namespace pyrometer {
namespace {

// The container's labels in the place of its id; what rules have added stays.
LabelSet InPlaceOfId(const Labels& labels, const ContainerMetadata& container) {
  Labels completed = LabelsOfContainer(container, ValueIn(labels, kServiceNameLabel));
  const size_t of_container = completed.size();
  for (const auto& label : labels) {
    const auto end = completed.begin() + static_cast<std::ptrdiff_t>(of_container);
    const bool is_named = std::any_of(
        completed.begin(), end, [&](const auto& other) { return other.first == label.first; });
    if (!is_named && label.first != kContainerIdLabel) completed.push_back(label);
  }
  std::ranges::sort(completed);
  return std::make_shared<const Labels>(std::move(completed));
}

}  // namespace

std::vector<std::optional<LabelSet>> WithContainerLabels(ContainerDirectory& containers,
                                                         std::span<const LabelSet> sets) {
  // One answer for all sets of a container.
  std::map<std::string_view, ContainerDirectory::Answer> answers;
  std::vector<std::optional<LabelSet>> completed;
  completed.reserve(sets.size());
  for (const LabelSet& labels : sets) {
    const std::string_view id = ValueIn(*labels, kContainerIdLabel);
    if (id.empty()) {
      completed.emplace_back(labels);
      continue;
    }
    const auto [answer, added] = answers.try_emplace(id);
    if (added) answer->second = containers.Find(id);
    switch (answer->second.state) {
      case ContainerDirectory::Answer::State::kKnown:
        completed.emplace_back(InPlaceOfId(*labels, *answer->second.metadata));
        break;
      case ContainerDirectory::Answer::State::kAwaited:
        completed.emplace_back(std::nullopt);
        break;
      case ContainerDirectory::Answer::State::kUnknown:
        completed.emplace_back(labels);
        break;
    }
  }
  return completed;
}

void AddContainerLabels(ContainerDirectory& containers, Profile& profile) {
  absl::flat_hash_map<LabelSet, LabelSet> known;
  std::vector<LabelSet> sets;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.labels != nullptr && known.try_emplace(sample.labels, sample.labels).second) {
      sets.push_back(sample.labels);
    }
  }
  std::vector<std::optional<LabelSet>> completed = WithContainerLabels(containers, sets);
  for (size_t i = 0; i < sets.size(); ++i) {
    if (completed[i]) known[sets[i]] = *std::move(completed[i]);
  }
  for (ProfileSample& sample : profile.samples) {
    if (sample.labels != nullptr) sample.labels = known[sample.labels];
  }
}

}  // namespace pyrometer
