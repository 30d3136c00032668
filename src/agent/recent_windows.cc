// SPDX-License-Identifier: Apache-2.0
#include "agent/recent_windows.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/profile_query.h"

namespace pyrometer {
namespace {

size_t BytesOf(const std::vector<Profile>& profiles) {
  size_t bytes = 0;
  for (const Profile& profile : profiles) {
    bytes += sizeof(Profile) + profile.locations.capacity() * sizeof(LocationRef);
    for (const ProfileSample& sample : profile.samples) {
      bytes += sizeof(sample) + sample.stack.capacity() * sizeof(uint32_t);
    }
  }
  return bytes;
}

size_t HeapBytes(const std::string& text) {
  static const size_t kInPlace = std::string().capacity();
  return text.capacity() > kInPlace ? text.capacity() + 1 : 0;
}

// With what the map of uses and the heap take for it.
size_t BytesOf(const Location& location) {
  constexpr size_t kOverhead = 64;
  size_t bytes = sizeof(Location) + kOverhead;
  for (const Line& line : location.lines) {
    bytes += sizeof(Line) + HeapBytes(line.function) + HeapBytes(line.system_name) +
             HeapBytes(line.file);
  }
  return bytes;
}

uint64_t SamplesOf(const Profile& profile) {
  uint64_t samples = 0;
  for (const ProfileSample& sample : profile.samples) samples += sample.count;
  return samples;
}

// One profile of several: each location once.
class Joined {
 public:
  explicit Joined(const RecentWindows::Keep& keep) : keep_(keep) {}

  // A window's profiles all tell of the same time and the same ticks.
  void AddWindow(const std::vector<Profile>& window) {
    if (window.empty()) return;
    AddFacts(window.front());
    for (const Profile& part : window) AddSamples(part);
  }

  RecentWindows::Recent Take() && { return std::move(all_); }

 private:
  void AddFacts(const Profile& part) {
    Profile& all = all_.profile;
    if (all.frequency.value == 0) {
      all.begin = part.begin;
      all.event = part.event;
      all.value_types = part.value_types;
      all_.lowest = all_.highest = part.frequency;
    }
    all.end = std::max(all.end, part.end);
    all.frequency = part.frequency;
    all.duration += part.duration;
    all.accounting += part.accounting;
    all_.lowest = std::min(all_.lowest, part.frequency);
    all_.highest = std::max(all_.highest, part.frequency);
  }

  void AddSamples(const Profile& part) {
    all_.samples += SamplesOf(part);
    std::vector<const ProfileSample*> kept;
    for (const ProfileSample& sample : part.samples) {
      if (!keep_ || keep_(sample, part.labels)) kept.push_back(&sample);
    }
    if (kept.empty()) return;
    const std::vector<uint32_t> ids = IdsOf(part.locations);
    for (const ProfileSample* const sample : kept) {
      ProfileSample& own = all_.profile.samples.emplace_back(*sample);
      for (uint32_t& id : own.stack) id = ids[id];
    }
  }

  std::vector<uint32_t> IdsOf(const std::vector<LocationRef>& locations) {
    std::vector<LocationRef>& all = all_.profile.locations;
    std::vector<uint32_t> ids;
    ids.reserve(locations.size());
    for (const LocationRef& location : locations) {
      const auto [known, added] =
          ids_.try_emplace(location.get(), static_cast<uint32_t>(all.size()));
      if (added) all.push_back(location);
      ids.push_back(known->second);
    }
    return ids;
  }

  const RecentWindows::Keep& keep_;
  RecentWindows::Recent all_;
  absl::flat_hash_map<const Location*, uint32_t> ids_;
};

// How many samples have which value of a label.
using Values = std::map<std::string, uint64_t, std::less<>>;

// Those by which people look for something come first.
size_t RankOf(std::string_view label) {
  constexpr std::string_view kFirst[] = {"namespace",    "pod",           "container",
                                         "service_name", "workload_name", "workload_kind",
                                         "systemd_unit"};
  return static_cast<size_t>(std::ranges::find(kFirst, label) - std::begin(kFirst));
}

LabelChoice ChoiceOf(const std::string& name, const Values& values) {
  LabelChoice choice{.name = name, .values = {}, .left_out = 0};
  for (const auto& [value, samples] : values) choice.values.push_back({value, samples});
  std::ranges::stable_sort(choice.values, std::greater(), &LabelChoice::Value::samples);
  if (choice.values.size() > LabelChoice::kMostValues) {
    choice.left_out = choice.values.size() - LabelChoice::kMostValues;
    choice.values.resize(LabelChoice::kMostValues);
  }
  return choice;
}

}  // namespace

void RecentWindows::Add(ShippedWindow window) {
  if (window->empty()) return;
  const size_t bytes = BytesOf(*window);
  std::vector<ShippedWindow> dropped;  // freed outside of the lock
  const absl::MutexLock lock(&mutex_);
  const auto begin = window->front().begin;
  std::vector<uint64_t> samples;
  for (const Profile& profile : *window) samples.push_back(SamplesOf(profile));
  windows_.push_back({std::move(window), begin, bytes, std::move(samples)});
  bytes_ += bytes;
  Count(*windows_.back().window);
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return bytes_ > most_bytes_ || windows_.front().begin < begin - kMaxFlameGraphSpan;
  };
  while (windows_.size() > 1 && is_over()) {
    dropped.push_back(windows_.front().window);
    DropOldest();
  }
}

void RecentWindows::Count(const std::vector<Profile>& window) {
  for (const Profile& profile : window) {
    for (const LocationRef& location : profile.locations) {
      if (++uses_[location.get()] == 1) bytes_ += BytesOf(*location);
    }
  }
}

void RecentWindows::Uncount(const std::vector<Profile>& window) {
  for (const Profile& profile : window) {
    for (const LocationRef& location : profile.locations) {
      const auto used = uses_.find(location.get());
      if (--used->second > 0) continue;
      uses_.erase(used);
      bytes_ -= BytesOf(*location);
    }
  }
}

void RecentWindows::DropOldest() {
  bytes_ -= windows_.front().bytes;
  Uncount(*windows_.front().window);
  windows_.pop_front();
}

std::vector<RecentWindows::Kept> RecentWindows::WindowsSince(
    std::chrono::system_clock::time_point since) const {
  const absl::MutexLock lock(&mutex_);
  std::vector<Kept> wanted;
  std::ranges::copy_if(windows_, std::back_inserter(wanted),
                       [&](const Kept& kept) { return kept.begin >= since; });
  return wanted;
}

RecentWindows::Recent RecentWindows::Since(std::chrono::system_clock::time_point since,
                                           const Keep& keep) const {
  Joined joined(keep);
  for (const Kept& kept : WindowsSince(since)) joined.AddWindow(*kept.window);
  return std::move(joined).Take();
}

std::vector<LabelChoice> RecentWindows::Choices(std::chrono::system_clock::time_point since) const {
  std::map<std::string, Values, std::less<>> labels;
  uint64_t all = 0;
  for (const Kept& kept : WindowsSince(since)) {
    for (size_t i = 0; i < kept.window->size(); ++i) {
      all += kept.samples[i];
      for (const auto& [name, value] : (*kept.window)[i].labels) {
        labels[name][value] += kept.samples[i];
      }
    }
  }
  std::vector<LabelChoice> choices;
  for (const auto& [name, values] : labels) {
    // One that all have is no choice.
    if (values.size() > 1 || values.begin()->second < all)
      choices.push_back(ChoiceOf(name, values));
  }
  std::ranges::stable_sort(choices, {}, [](const LabelChoice& c) { return RankOf(c.name); });
  if (choices.size() > LabelChoice::kMostLabels) choices.resize(LabelChoice::kMostLabels);
  return choices;
}

size_t RecentWindows::bytes() const {
  const absl::MutexLock lock(&mutex_);
  return bytes_;
}

void RecentWindows::Shed() {
  const absl::MutexLock lock(&mutex_);
  while (windows_.size() > 1) DropOldest();
}

}  // namespace pyrometer
