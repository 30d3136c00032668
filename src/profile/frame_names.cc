// SPDX-License-Identifier: Apache-2.0
#include "profile/frame_names.h"

#include <string_view>

namespace pyrometer {
namespace {

// False if both are known and are of different files.
bool MayBeSameObject(const CodeObject* a, const CodeObject* b) {
  if (a == b || a == nullptr || b == nullptr) return true;
  if (!a->build_id.empty() && !b->build_id.empty()) return a->build_id == b->build_id;
  return a->path == b->path;
}

// The function that all others are inlined into.
std::string_view SymbolOf(const Location& location) {
  return location.lines.empty() ? std::string_view() : location.lines.back().function;
}

// True if two locations of one frame are the same code, known better or worse.
bool IsSameCode(Frame::Kind kind, const Location& a, const Location& b) {
  if (!MayBeSameObject(a.object.get(), b.object.get())) return false;
  if (a.quality == NameQuality::kMadeUp || b.quality == NameQuality::kMadeUp) return true;
  return kind == Frame::Kind::kObject || SymbolOf(a) == SymbolOf(b);
}

bool HasSource(const Location& location) {
  return !location.lines.empty() && !location.lines.front().file.empty();
}

// True if `location` tells of code that was known as `known` what was not known of it.
bool IsBetter(Frame::Kind kind, const Location& location, const Location& known) {
  if (!MayBeSameObject(location.object.get(), known.object.get())) return false;
  if (location.quality != known.quality) return location.quality > known.quality;
  return kind == Frame::Kind::kObject && HasSource(location) && !HasSource(known);
}

}  // namespace

uint32_t FrameNames::Add(Frame frame, const Owner& owner, const LocationRef& location) {
  Latest& latest = LatestAt(frame, owner);
  if (latest.location == location.get()) return latest.code;
  latest.code = Find(frame.kind(), latest, location);
  latest.location = code_[latest.code].location.get();
  return latest.code;
}

// The code at the frame of `latest` that `location` names; made if it is new.
uint32_t FrameNames::Find(Frame::Kind kind, const Latest& latest, const LocationRef& location) {
  const auto fresh = static_cast<uint32_t>(code_.size());
  if (latest.location == nullptr) {
    code_.push_back({location, fresh});
    return fresh;
  }
  uint32_t at = latest.code;
  do {
    Code& code = code_[at];
    if (IsSameCode(kind, *code.location, *location)) {
      if (location->quality >= code.location->quality) code.location = location;
      return at;
    }
    at = code.next;
  } while (at != latest.code);
  code_.push_back({location, code_[latest.code].next});
  code_[latest.code].next = fresh;
  return fresh;
}

void FrameNames::Improve(Frame frame, const Owner& owner, const LocationRef& location) {
  Latest* const latest = FindLatest(frame, owner);
  if (latest == nullptr) return;
  uint32_t at = latest->code;
  do {
    Code& code = code_[at];
    if (IsBetter(frame.kind(), *location, *code.location)) code.location = location;
    at = code.next;
  } while (at != latest->code);
  latest->location = code_[latest->code].location.get();
}

FrameNames::Latest* FrameNames::FindLatest(Frame frame, const Owner& owner) {
  if (frame.kind() == Frame::Kind::kUserAddress) {
    const auto known = latest_of_users_.find(UserKey{frame, owner});
    return known == latest_of_users_.end() ? nullptr : &known->second;
  }
  const auto known = latest_.find(frame);
  return known == latest_.end() ? nullptr : &known->second;
}

std::vector<LocationRef> FrameNames::Finish() && {
  std::vector<LocationRef> locations;
  locations.reserve(code_.size());
  for (Code& code : code_) locations.push_back(std::move(code.location));
  return locations;
}

}  // namespace pyrometer
