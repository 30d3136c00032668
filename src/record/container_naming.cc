// SPDX-License-Identifier: Apache-2.0
#include "record/container_naming.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "metadata/cgroup_identity.h"
#include "metadata/container_labels.h"
#include "metadata/late_source.h"

namespace pyrometer {
namespace {

constexpr std::string_view kContainerId = "container_id";
constexpr size_t kMostSets = 10'000;

ContainerDirectory::Options Options() {
  ContainerDirectory::Options options;
  options.keep = std::chrono::hours(24);  // whatever has ended, the recording still has samples of
  return options;
}

}  // namespace

ContainerNaming::ContainerNaming(MakeSource make, const Clock& clock)
    : clock_(clock), containers_(Options(), std::make_unique<LateSource>(std::move(make)), clock) {}

LabelSet ContainerNaming::OnProcess(const SeenProcess& process) {
  if (process.directory == nullptr) return process.inherited;
  const Result<std::string> cgroups = process.directory->Cgroups();
  if (!cgroups) return process.inherited;
  std::string id = IdentityOf(TellingCgroup(*cgroups)).container_id;
  if (id.empty()) return nullptr;
  // While the runtime knows it.
  containers_.Find(id);
  if (sets_.size() >= kMostSets) {
    std::erase_if(sets_, [](const auto& set) { return set.second.use_count() == 1; });
  }
  LabelSet& labels = sets_[id];
  if (labels == nullptr) {
    labels = std::make_shared<const Labels>(Labels{{std::string(kContainerId), std::move(id)}});
  }
  return labels;
}

void ContainerNaming::Name(Profile& profile, std::chrono::nanoseconds patience) {
  const MonotonicTime until = After(clock_.Now(), patience);
  std::map<LabelSet, LabelSet> named;
  for (ProfileSample& sample : profile.samples) {
    if (sample.labels == nullptr) continue;
    const auto [at, is_new] = named.try_emplace(sample.labels);
    if (is_new) at->second = Named(sample.labels, until);
    sample.labels = at->second;
  }
}

LabelSet ContainerNaming::Named(const LabelSet& labels, MonotonicTime until) {
  using State = ContainerDirectory::Answer::State;
  constexpr std::chrono::milliseconds kPause{20};
  const auto id = std::ranges::find(*labels, kContainerId, &Labels::value_type::first);
  if (id == labels->end()) return labels;
  ContainerDirectory::Answer answer = containers_.Find(id->second);
  while (answer.state == State::kAwaited && clock_.Now() < until) {
    std::this_thread::sleep_for(kPause);
    answer = containers_.Find(id->second);
  }
  if (answer.metadata == nullptr) return labels;
  return std::make_shared<const Labels>(LabelsOfContainer(*answer.metadata, ""));
}

}  // namespace pyrometer
