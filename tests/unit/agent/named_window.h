// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "pyrometer/profile.h"

namespace pyrometer {

inline LabelSet ServiceLabels(std::string name) {
  return std::make_shared<const Labels>(Labels{{"service_name", std::move(name)}});
}

// A window of a second that began at `second` of the epoch, at 100 Hz, without samples.
inline NamedWindow EmptyWindow(int second) {
  NamedWindow named;
  Window& window = named.window;
  window.begin = MonotonicTime(static_cast<uint64_t>(second) * 1'000'000'000);
  window.end = MonotonicTime(static_cast<uint64_t>(second + 1) * 1'000'000'000);
  window.wall_begin = std::chrono::system_clock::time_point(std::chrono::seconds(second));
  window.wall_end = window.wall_begin + std::chrono::seconds(1);
  window.frequency = Hertz{100};
  return named;
}

// Adds `count` samples of a process in a function, both called `name`.
inline void AddSamples(NamedWindow& named, const std::string& name, uint64_t count) {
  Window& window = named.window;
  const auto index = static_cast<uint32_t>(window.frames.size());
  window.frames.push_back(Frame::Object(ObjectId(index + 1), ElfAddress(0x1000)));
  named.locations.push_back(std::make_shared<const Location>(
      Location{.origin = CodeOrigin::kUser,
               .object = nullptr,
               .address = 0x1000,
               .lines = {{.function = name, .system_name = name, .file = ""}}}));
  window.stacks.push_back({.first_frame = index, .user_frames = 1, .end = StackEnd::kComplete});
  window.samples.push_back({.process = {Pid(index + 10), StartTime(1)},
                            .exec = {},
                            .comm = name,
                            .thread = name,
                            .stack = static_cast<uint32_t>(window.stacks.size() - 1),
                            .count = count,
                            .first_seen = window.begin,
                            .last_seen = window.end,
                            .labels = ServiceLabels(name)});
  window.accounting.exported += count;
}

}  // namespace pyrometer
