// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// What a location owns, in bytes; approximately.
inline size_t BytesOf(const Location& location) {
  size_t bytes = sizeof(location);
  for (const Line& line : location.lines) {
    bytes += sizeof(line) + line.function.size() + line.system_name.size() + line.file.size();
  }
  return bytes;
}

// Caches locations by what they were made from, with the window in which each was last used, so
// that unused ones can be dropped and memory stays bounded. Not thread-safe.
template <typename Key>
class LocationCache {
 public:
  // Null if there is none.
  LocationRef Find(const Key& key, uint32_t window) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    found->second.last_used = window;
    return found->second.location;
  }

  void Put(const Key& key, const LocationRef& location, uint32_t window) {
    Entry& entry = entries_[key];
    if (entry.location != nullptr) bytes_ -= BytesOf(*entry.location);
    bytes_ += BytesOf(*location);
    entry = {.location = location, .last_used = window};
  }

  // Drops the entries whose keys satisfy `predicate`.
  template <typename Predicate>
  void DropIf(Predicate predicate) {
    EraseIf([&](const auto& entry) { return predicate(entry.first); });
  }

  void DropUnusedSince(uint32_t window) {
    EraseIf([=](const auto& entry) { return entry.second.last_used < window; });
  }

  size_t size() const { return entries_.size(); }
  // Of the locations.
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    LocationRef location;
    uint32_t last_used = 0;
  };

  template <typename Predicate>
  void EraseIf(Predicate predicate) {
    absl::erase_if(entries_, [&](const auto& entry) {
      if (!predicate(entry)) return false;
      bytes_ -= BytesOf(*entry.second.location);
      return true;
    });
  }

  absl::flat_hash_map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace pyrometer
