// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "pyrometer/result.h"

namespace spdlog {
class logger;
}

namespace pyrometer {

// Reports failures that the program survives and their end, one line each on standard error.
// A failure that repeats is reported again after `quiet`, and each time after twice as long as
// before, up to kLongestQuiet, with how often it occurred, for each `what`. It is news again after
// good news of the same `what`, or when it has not happened for kLongestQuiet. Only for the
// outermost callers, where an error ends; everything below returns it. Thread-safe.
class Log {
 public:
  static constexpr std::chrono::seconds kQuiet{30};
  static constexpr std::chrono::hours kLongestQuiet{1};

  explicit Log(const Clock& clock, std::chrono::nanoseconds quiet = kQuiet);
  // Writes to a sink of the caller's, for tests.
  Log(const Clock& clock, std::chrono::nanoseconds quiet, std::shared_ptr<spdlog::logger> logger);

  // "taking a window: out of memory (3 more times since this was last said)"
  void Failed(std::string_view what, const Error& error) { Warn(what, error.message()); }
  void Warn(std::string_view what, std::string_view why);
  // Good news, each one told: "pyroscope: works again after 40 s". Ends the troubles whose `what`
  // begins like this.
  void Tell(std::string_view what, std::string_view news);

 private:
  struct Trouble {
    MonotonicTime told;
    MonotonicTime last;                // told or not
    std::chrono::nanoseconds quiet{};  // until it is told again
    uint64_t kept_quiet = 0;
  };

  const Clock& clock_;
  const std::chrono::nanoseconds quiet_;
  const std::shared_ptr<spdlog::logger> logger_;
  std::mutex mutex_;
  std::map<std::string, Trouble, std::less<>> troubles_;  // by `what`, of which callers have few
};

}  // namespace pyrometer
