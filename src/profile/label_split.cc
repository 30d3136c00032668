// SPDX-License-Identifier: Apache-2.0
#include "profile/label_split.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace pyrometer {
namespace {

// `own`, and what of `set` has other names. Both are sorted by name.
Labels MergedLabels(const Labels& own, const LabelSet& set) {
  if (set == nullptr) return own;
  Labels merged;
  std::ranges::set_union(own, *set, std::back_inserter(merged), {}, &Labels::value_type::first,
                         &Labels::value_type::first);
  return merged;
}

// Some samples of a profile, with the locations that they need.
class ProfilePart {
 public:
  // `whole` is a profile without samples and locations.
  ProfilePart(const Profile& whole, Labels labels) : profile_(whole) {
    profile_.labels = std::move(labels);
  }

  void Add(ProfileSample sample, const std::vector<LocationRef>& locations) {
    for (uint32_t& id : sample.stack) {
      const auto [own, added] =
          own_ids_.try_emplace(id, static_cast<uint32_t>(profile_.locations.size()));
      if (added) profile_.locations.push_back(locations[id]);
      id = own->second;
    }
    profile_.samples.push_back(std::move(sample));
  }

  Profile Finish() && { return std::move(profile_); }

 private:
  Profile profile_;
  absl::flat_hash_map<uint32_t, uint32_t> own_ids_;  // of locations
};

// What becomes of each label set of `profile`; nothing: not known yet.
class Answers {
 public:
  Answers(const Profile& profile, const Relabel& relabel) {
    std::vector<LabelSet> sets;
    for (const ProfileSample& sample : profile.samples) {
      const LabelSet& labels = sample.labels;
      if (labels != nullptr && answers_.try_emplace(labels.get(), labels).second) {
        sets.push_back(labels);
      }
    }
    if (!relabel || sets.empty()) return;
    std::vector<std::optional<LabelSet>> answers = relabel(sets);
    for (size_t i = 0; i < sets.size(); ++i) answers_[sets[i].get()] = std::move(answers[i]);
  }

  std::optional<LabelSet> Of(const LabelSet& labels) const {
    return labels == nullptr ? LabelSet() : answers_.at(labels.get());
  }

 private:
  absl::flat_hash_map<const Labels*, std::optional<LabelSet>> answers_;
};

}  // namespace

LabelSplit SplitByLabels(Profile profile, const Relabel& relabel) {
  const Answers answers(profile, relabel);
  std::vector<ProfileSample> samples = std::exchange(profile.samples, {});
  const std::vector<LocationRef> locations = std::exchange(profile.locations, {});
  std::vector<ProfilePart> parts;
  std::map<Labels, size_t> known;                 // by what they have in the end
  absl::flat_hash_map<const Labels*, size_t> of;  // by what they came with
  std::optional<ProfilePart> waiting;
  LabelSplit split;
  for (ProfileSample& sample : samples) {
    const std::optional<LabelSet> labels = answers.Of(sample.labels);
    if (!labels) {
      if (!waiting) waiting.emplace(profile, profile.labels);
      waiting->Add(std::move(sample), locations);
      continue;
    }
    if (sample.labels != nullptr && *labels == nullptr) {
      split.dropped += sample.count;
      continue;
    }
    const auto [at, added] = of.try_emplace(sample.labels.get(), 0);
    if (added) {
      Labels merged = MergedLabels(profile.labels, *labels);
      const auto [part, is_new] = known.try_emplace(merged, parts.size());
      if (is_new) parts.emplace_back(profile, std::move(merged));
      at->second = part->second;
    }
    sample.labels = nullptr;
    parts[at->second].Add(std::move(sample), locations);
  }
  split.ready.reserve(parts.size());
  for (ProfilePart& part : parts) split.ready.push_back(std::move(part).Finish());
  if (waiting) split.waiting = std::move(*waiting).Finish();
  return split;
}

}  // namespace pyrometer
