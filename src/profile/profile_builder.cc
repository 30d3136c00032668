// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_builder.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <optional>
#include <span>

namespace pyrometer {
namespace {

// Samples are compared where they lie, in the vector that the set's indices point into.
struct SampleHash {
  const std::vector<ProfileSample>* samples;
  size_t operator()(uint32_t index) const {
    const ProfileSample& s = (*samples)[index];
    return absl::HashOf(s.process, s.comm, s.thread, s.stack, s.end);
  }
};

struct SampleEqual {
  const std::vector<ProfileSample>* samples;
  bool operator()(uint32_t left, uint32_t right) const {
    const ProfileSample& a = (*samples)[left];
    const ProfileSample& b = (*samples)[right];
    return a.process == b.process && a.end == b.end && a.comm == b.comm && a.thread == b.thread &&
           a.stack == b.stack;
  }
};

}  // namespace

struct ProfileBuilder::State {
  explicit State(Options options)
      : distinct(0, SampleHash{&profile.samples}, SampleEqual{&profile.samples}) {
    profile.start = options.start;
    profile.frequency = options.frequency;
    profile.labels = std::move(options.labels);
  }

  std::vector<uint32_t> Intern(std::span<const LocationRef> locations) {
    std::vector<uint32_t> ids;
    ids.reserve(locations.size());
    for (const LocationRef& location : locations) {
      const auto [known, added] =
          location_ids.try_emplace(location.get(), static_cast<uint32_t>(profile.locations.size()));
      if (added) profile.locations.push_back(location);
      ids.push_back(known->second);
    }
    return ids;
  }

  void Add(ProfileSample sample) {
    const uint64_t count = sample.count;
    profile.samples.push_back(std::move(sample));
    const auto [known, added] = distinct.insert(static_cast<uint32_t>(profile.samples.size() - 1));
    if (added) return;
    profile.samples.pop_back();
    profile.samples[*known].count += count;
  }

  Profile profile;
  absl::flat_hash_map<const Location*, uint32_t> location_ids;
  absl::flat_hash_set<uint32_t, SampleHash, SampleEqual> distinct;
};

ProfileBuilder::ProfileBuilder(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
ProfileBuilder::~ProfileBuilder() = default;
ProfileBuilder::ProfileBuilder(ProfileBuilder&&) noexcept = default;
ProfileBuilder& ProfileBuilder::operator=(ProfileBuilder&&) noexcept = default;

void ProfileBuilder::Add(const NamedWindow& named) {
  const Window& window = named.window;
  // A window's stacks are shared by its samples: each is interned once.
  std::vector<std::optional<std::vector<uint32_t>>> interned(window.stacks.size());
  for (const Sample& sample : window.samples) {
    const Stack& stack = window.stacks[sample.stack];
    std::optional<std::vector<uint32_t>>& ids = interned[sample.stack];
    if (!ids) {
      const size_t frames = size_t{stack.kernel_frames} + stack.user_frames;
      ids = state_->Intern(std::span(named.locations).subspan(stack.first_frame, frames));
    }
    state_->Add(ProfileSample{.process = sample.process,
                              .comm = sample.comm,
                              .thread = sample.thread,
                              .stack = *ids,
                              .end = stack.end,
                              .count = sample.count});
  }
}

Profile ProfileBuilder::Finish(std::chrono::nanoseconds duration) && {
  state_->profile.duration = duration;
  return std::move(state_->profile);
}

}  // namespace pyrometer
