// SPDX-License-Identifier: Apache-2.0
#include "agent/sample_labels.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "profile/label_split.h"

namespace pyrometer {
namespace {

// By name.
Labels LabelsOf(const ProfileSample& sample, const SampleLabels& wanted) {
  Labels labels;
  if (wanted.comm && !sample.comm.empty()) labels.emplace_back("comm", sample.comm);
  if (wanted.pid) labels.emplace_back("pid", fmt::to_string(sample.process.pid.value()));
  const std::string& thread = sample.thread.empty() ? sample.comm : sample.thread;
  if (wanted.thread && !thread.empty()) labels.emplace_back("thread", thread);
  return labels;
}

}  // namespace

std::vector<Profile> SplitBySampleLabels(std::vector<Profile> profiles, const SampleLabels& wanted,
                                         size_t most) {
  std::vector<Profile> split;
  for (Profile& profile : profiles) {
    std::map<Labels, LabelSet> sets;  // null: for those there is no room for
    for (ProfileSample& sample : profile.samples) {
      const auto [set, is_new] = sets.try_emplace(LabelsOf(sample, wanted));
      if (is_new && split.size() + sets.size() <= most) {
        set->second = std::make_shared<const Labels>(set->first);
      }
      sample.labels = set->second;
    }
    std::ranges::move(SplitByLabels(std::move(profile)).ready, std::back_inserter(split));
  }
  return split;
}

}  // namespace pyrometer
