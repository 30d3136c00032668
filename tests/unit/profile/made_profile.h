// SPDX-License-Identifier: Apache-2.0
// Small profiles for tests, and the reverse of what the encoders compress with.
#pragma once

#include <zlib.h>

#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

inline std::shared_ptr<CodeObject> MakeObject(std::string path) {
  auto object = std::make_shared<CodeObject>();
  object->path = std::move(path);
  object->has_functions = true;
  return object;
}

inline LocationRef MakeLocation(std::string function, CodeOrigin origin = CodeOrigin::kUser,
                                std::shared_ptr<const CodeObject> object = nullptr) {
  Location location;
  location.origin = origin;
  location.object = std::move(object);
  location.lines.push_back({.function = std::move(function), .system_name = {}, .file = {}});
  return std::make_shared<const Location>(std::move(location));
}

// A profile of 100 Hz that is added up sample by sample. Stacks are given root first, as they are
// read.
class MadeProfile {
 public:
  MadeProfile() {
    profile_.frequency = Hertz{100};
    profile_.begin = std::chrono::system_clock::time_point(std::chrono::seconds(1'000'000));
    profile_.duration = std::chrono::seconds(10);
    profile_.end = profile_.begin + profile_.duration;
  }

  struct Options {
    std::string comm = "app";
    uint32_t pid = 42;
    StackEnd end = StackEnd::kComplete;
    std::string thread = "main";
    LabelSet labels = nullptr;
  };

  MadeProfile& Add(std::initializer_list<LocationRef> root_first, uint64_t count,
                   const Options& options) {
    ProfileSample sample{.process = {Pid(options.pid), StartTime(1)},
                         .comm = options.comm,
                         .thread = options.thread,
                         .labels = options.labels,
                         .stack = {},
                         .end = options.end,
                         .count = count,
                         .value = count * profile_.Period()};
    for (const LocationRef& location : root_first) {
      sample.stack.insert(sample.stack.begin(), IndexOf(location));
    }
    profile_.samples.push_back(std::move(sample));
    return *this;
  }
  MadeProfile& Add(std::initializer_list<LocationRef> root_first, uint64_t count) {
    return Add(root_first, count, Options());
  }

  // From now on samples are of page faults, each for so many.
  MadeProfile& CountPageFaults(uint64_t period) {
    profile_.event = EventKind::kPageFaults;
    profile_.value_types = ValueTypeList(profile_.event);
    profile_.frequency = Hertz{};
    profile_.event_period = period;
    return *this;
  }

  Profile& profile() { return profile_; }

 private:
  uint32_t IndexOf(const LocationRef& location) {
    for (uint32_t i = 0; i < profile_.locations.size(); ++i) {
      if (profile_.locations[i] == location) return i;
    }
    profile_.locations.push_back(location);
    return static_cast<uint32_t>(profile_.locations.size() - 1);
  }

  Profile profile_;
};

// What a gzip or zlib stream holds; "" if it is not exactly one whole stream.
inline std::string Inflate(const std::string& packed) {
  z_stream z{};
  constexpr int kAnyWrapper = 15 + 32;
  if (inflateInit2(&z, kAnyWrapper) != Z_OK) return "";
  std::string in = packed;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  std::string out;
  std::array<char, 4096> buffer{};
  int status = Z_OK;
  while (status == Z_OK) {
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&z, Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - z.avail_out);
  }
  const bool whole = status == Z_STREAM_END && z.avail_in == 0;
  inflateEnd(&z);
  return whole ? out : "";
}

}  // namespace pyrometer
