// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

// Adds windows up to one Profile. Samples that agree in process, names, stack and stack end are one
// sample, also over windows; so memory grows with what is distinct and not with time.
// Not thread-safe: owned by the thread that drains the windows.
class ProfileBuilder {
 public:
  struct Options {
    std::chrono::system_clock::time_point start;
    Hertz frequency;  // REQUIRES: not 0
    std::vector<std::pair<std::string, std::string>> labels;
  };

  explicit ProfileBuilder(Options options);
  ~ProfileBuilder();
  ProfileBuilder(ProfileBuilder&&) noexcept;
  ProfileBuilder& operator=(ProfileBuilder&&) noexcept;

  // Keeps what it needs of `named`; equal locations must have equal LocationRefs, as they have when
  // one symbolizer made all the windows. REQUIRES: a location for each frame of the window.
  void Add(const NamedWindow& named);

  // Everything added so far, in the order of first sight.
  Profile Finish(std::chrono::nanoseconds duration) &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
