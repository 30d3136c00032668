// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_builder.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/types/span.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "profile/frame_names.h"

namespace pyrometer {
namespace {

// What makes a sample distinct. Labels are compared by their one LabelSet, see LabelSets.
struct SampleKey {
  ProcessKey process;
  std::string_view comm;
  std::string_view thread;
  const Labels* labels = nullptr;
  EventKind event = EventKind::kCpuClock;
  absl::Span<const uint32_t> stack;  // indices of FrameNames
  StackEnd end = StackEnd::kNoUserStack;

  bool operator==(const SampleKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const SampleKey& k) {
    return H::combine(std::move(h), k.process, absl::string_view(k.comm.data(), k.comm.size()),
                      absl::string_view(k.thread.data(), k.thread.size()), k.labels, k.event,
                      k.stack, k.end);
  }
};

struct Entry {
  ProfileSample sample;
  EventKind event = EventKind::kCpuClock;

  SampleKey Key() const {
    return {sample.process, sample.comm,  sample.thread, sample.labels.get(),
            event,          sample.stack, sample.end};
  }
};

// Entries are compared where they lie, in the vector that the set's indices point into.
struct EntryHash {
  using is_transparent = void;
  const std::vector<Entry>* entries;
  size_t operator()(uint32_t index) const { return (*this)((*entries)[index].Key()); }
  size_t operator()(const SampleKey& key) const { return absl::HashOf(key); }
};

struct EntryEqual {
  using is_transparent = void;
  const std::vector<Entry>* entries;
  bool operator()(uint32_t a, uint32_t b) const { return a == b; }  // the set has each key once
  bool operator()(uint32_t a, const SampleKey& b) const { return (*entries)[a].Key() == b; }
  bool operator()(const SampleKey& a, uint32_t b) const { return (*this)(b, a); }
};

struct LabelsHash {
  size_t operator()(const LabelSet& labels) const { return absl::HashOf(*labels); }
};
struct LabelsEqual {
  bool operator()(const LabelSet& a, const LabelSet& b) const { return SameLabels(a, b); }
};

// Sorted by name; of several with one name the last.
Labels Sorted(Labels labels) {
  std::ranges::stable_sort(labels, {}, &Labels::value_type::first);
  Labels sorted;
  for (auto& label : labels) {
    if (sorted.empty() || sorted.back().first != label.first) sorted.emplace_back();
    sorted.back() = std::move(label);
  }
  return sorted;
}

// What of `labels` has other names than `own`.
Labels WithoutNamesOf(const Labels& own, const Labels& labels) {
  Labels rest;
  std::ranges::set_difference(labels, own, std::back_inserter(rest), {}, &Labels::value_type::first,
                              &Labels::value_type::first);
  return rest;
}

// One LabelSet for all that have the same labels besides the user's, which win over those of the
// same name; null for those without any.
class LabelSets {
 public:
  LabelSet Intern(const LabelSet& labels, const Labels& users) {
    if (labels == nullptr || labels->empty()) return nullptr;
    const auto [known, added] = known_.try_emplace(labels);
    if (added) {
      Labels rest = WithoutNamesOf(users, *labels);
      if (!rest.empty()) {
        known->second = *distinct_.insert(std::make_shared<const Labels>(std::move(rest))).first;
      }
    }
    return known->second;
  }

 private:
  absl::flat_hash_map<LabelSet, LabelSet, LabelsHash, LabelsEqual> known_;  // as they came
  absl::flat_hash_set<LabelSet, LabelsHash, LabelsEqual> distinct_;
};

// The frames of one stack of a window as indices of FrameNames.
struct NamedStack {
  bool made = false;
  bool has_user_addresses = false;
  FrameNames::Owner owner;
  std::vector<uint32_t> code;
};

// Of one sample, in the unit of its event's value.
uint64_t WorthOf(const Sample& sample, const Window& window) {
  if (FactsOf(sample.event).counted) return window.event.period;
  const Hertz frequency = sample.frequency.value != 0 ? sample.frequency : window.frequency;
  if (frequency.value == 0) return 0;  // of a window that was given up before there was one
  return static_cast<uint64_t>(frequency.Period().count());
}

}  // namespace

struct ProfileBuilder::State {
  explicit State(Options options) { facts.labels = Sorted(std::move(options.labels)); }

  void AddFacts(const Window& window);
  void AddSample(const NamedWindow& named, const Sample& sample, NamedStack& stack);
  void NameStack(const NamedWindow& named, const Stack& stack, const FrameNames::Owner& owner,
                 NamedStack& out);

  Profile facts;  // without locations and samples
  bool any_window = false;
  FrameNames names;
  LabelSets label_sets;
  std::vector<Entry> entries;
  absl::flat_hash_set<uint32_t, EntryHash, EntryEqual> distinct{0, EntryHash{&entries},
                                                                EntryEqual{&entries}};
};

void ProfileBuilder::State::AddFacts(const Window& window) {
  if (!std::exchange(any_window, true)) facts.begin = window.wall_begin;
  facts.end = window.wall_end;
  facts.duration += std::chrono::nanoseconds(window.end.value() - window.begin.value());
  facts.frequency = window.frequency;
  facts.event = window.event.kind;
  facts.event_period = window.event.period;
  facts.accounting += window.accounting;
}

void ProfileBuilder::State::NameStack(const NamedWindow& named, const Stack& stack,
                                      const FrameNames::Owner& owner, NamedStack& out) {
  // A window's stacks are shared by its samples: each is named once, but for those with user
  // addresses once for each process.
  if (out.made && (!out.has_user_addresses || out.owner == owner)) return;
  out = {.made = true, .owner = owner, .code = {}};
  const size_t frames = size_t{stack.kernel_frames} + stack.user_frames;
  out.code.reserve(frames);
  for (size_t i = stack.first_frame; i < stack.first_frame + frames; ++i) {
    const Frame frame = named.window.frames[i];
    out.has_user_addresses |= frame.kind() == Frame::Kind::kUserAddress;
    out.code.push_back(names.Add(frame, owner, named.locations[i]));
  }
}

void ProfileBuilder::State::AddSample(const NamedWindow& named, const Sample& sample,
                                      NamedStack& stack) {
  const StackEnd end = named.window.stacks[sample.stack].end;
  const LabelSet labels = label_sets.Intern(sample.labels, facts.labels);
  const SampleKey key{sample.process, sample.comm, sample.thread, labels.get(), sample.event,
                      stack.code,     end};
  auto known = distinct.find(key);
  if (known == distinct.end()) {
    entries.push_back({.sample = {.process = sample.process,
                                  .comm = sample.comm,
                                  .thread = sample.thread,
                                  .labels = labels,
                                  .stack = stack.code,
                                  .end = end},
                       .event = sample.event});
    known = distinct.insert(static_cast<uint32_t>(entries.size() - 1)).first;
  }
  ProfileSample& sum = entries[*known].sample;
  sum.count += sample.count;
  sum.value += sample.count * WorthOf(sample, named.window);
}

ProfileBuilder::ProfileBuilder(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
ProfileBuilder::~ProfileBuilder() = default;
ProfileBuilder::ProfileBuilder(ProfileBuilder&&) noexcept = default;
ProfileBuilder& ProfileBuilder::operator=(ProfileBuilder&&) noexcept = default;

void ProfileBuilder::Add(const NamedWindow& named) {
  const Window& window = named.window;
  state_->AddFacts(window);
  std::vector<NamedStack> stacks(window.stacks.size());
  for (const Sample& sample : window.samples) {
    NamedStack& stack = stacks[sample.stack];
    state_->NameStack(named, window.stacks[sample.stack], {sample.process, sample.exec}, stack);
    state_->AddSample(named, sample, stack);
  }
  for (const Renamed& renamed : named.renamed) {
    state_->names.Improve(renamed.frame, {renamed.process, renamed.exec}, renamed.location);
  }
}

Profile ProfileBuilder::Finish() && {
  Profile profile = std::move(state_->facts);
  if (!state_->entries.empty()) profile.event = state_->entries.front().event;
  profile.value_types = ValueTypeList(profile.event);
  profile.locations = std::move(state_->names).Finish();
  profile.samples.reserve(state_->entries.size());
  for (Entry& entry : state_->entries) profile.samples.push_back(std::move(entry.sample));
  return profile;
}

std::vector<Profile> ProfileBuilder::FinishByEvents() && {
  const std::vector<LocationRef> locations = std::move(state_->names).Finish();
  absl::flat_hash_map<EventKind, size_t> known;
  std::vector<Profile> profiles;
  for (Entry& entry : state_->entries) {
    const auto [at, added] = known.try_emplace(entry.event, profiles.size());
    if (added) {
      Profile& profile = profiles.emplace_back(state_->facts);
      profile.event = entry.event;
      profile.value_types = ValueTypeList(entry.event);
      profile.locations = locations;
    }
    profiles[at->second].samples.push_back(std::move(entry.sample));
  }
  return profiles;
}

}  // namespace pyrometer
