// SPDX-License-Identifier: Apache-2.0
#include "agent/recent_windows.h"

#include <algorithm>
#include <string>
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

// One profile of several: each location once.
class Joined {
 public:
  void Add(const Profile& part) {
    AddFacts(part);
    std::vector<uint32_t> ids;
    ids.reserve(part.locations.size());
    for (const LocationRef& location : part.locations) {
      const auto [known, added] =
          ids_.try_emplace(location.get(), static_cast<uint32_t>(all_.locations.size()));
      if (added) all_.locations.push_back(location);
      ids.push_back(known->second);
    }
    for (const ProfileSample& sample : part.samples) {
      ProfileSample& own = all_.samples.emplace_back(sample);
      for (uint32_t& id : own.stack) id = ids[id];
    }
  }

  // A window's profiles all tell of the same time and the same ticks.
  void AddWindow(const std::vector<Profile>& window) {
    for (const Profile& part : window) Add(part);
    if (window.empty()) return;
    all_.duration += window.front().duration;
    all_.accounting += window.front().accounting;
  }

  Profile Take() && { return std::move(all_); }

 private:
  void AddFacts(const Profile& part) {
    if (all_.samples.empty()) {
      all_.begin = part.begin;
      all_.event = part.event;
      all_.value_types = part.value_types;
    }
    all_.end = std::max(all_.end, part.end);
    all_.frequency = part.frequency;
  }

  Profile all_;
  absl::flat_hash_map<const Location*, uint32_t> ids_;
};

}  // namespace

void RecentWindows::Add(ShippedWindow window) {
  if (window->empty()) return;
  const size_t bytes = BytesOf(*window);
  std::vector<ShippedWindow> dropped;  // freed outside of the lock
  const absl::MutexLock lock(&mutex_);
  const auto begin = window->front().begin;
  windows_.push_back({std::move(window), begin, bytes});
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

Profile RecentWindows::Since(std::chrono::system_clock::time_point since) const {
  std::vector<ShippedWindow> wanted;
  {
    const absl::MutexLock lock(&mutex_);
    for (const Kept& kept : windows_) {
      if (kept.begin >= since) wanted.push_back(kept.window);
    }
  }
  Joined joined;
  for (const ShippedWindow& window : wanted) joined.AddWindow(*window);
  return std::move(joined).Take();
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
