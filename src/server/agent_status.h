// SPDX-License-Identifier: Apache-2.0
// What the status page shows: the agent's state as plain values, made anew for every question.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/labels.h"
#include "pyrometer/sample.h"

namespace pyrometer {

using WallTime = std::chrono::system_clock::time_point;

struct SamplingStatus {
  Hertz frequency;   // now
  Hertz configured;  // greater, if the CPU budget lowered it
  uint32_t cpus = 0;
  WallTime since;
  std::chrono::nanoseconds window{};
  std::vector<std::string> filters;  // in words: "only processes named nginx"; empty: everything
  uint64_t windows = 0;              // that were finished
  std::optional<WallTime> last_window;
  uint64_t processes = 0;                // known now
  Accounting ticks;                      // since `since`
  std::map<std::string, uint64_t> cuts;  // exported samples whose stack was cut, by reason
};

// One destination.
struct SinkStatus {
  enum class State { kWorking, kBehind, kFailing };

  std::string name{};
  std::string type{};
  std::string address{};  // without credentials
  State state = State::kWorking;
  std::optional<std::chrono::nanoseconds> behind{};  // the age of the oldest profile that waits
  uint64_t queued = 0;                               // profiles waiting in memory
  uint64_t spooled = 0;                              // and on disk
  uint64_t spooled_bytes = 0;
  uint64_t sent = 0;                                  // profiles
  uint64_t rejected = 0;                              // profiles that the destination did not want
  uint64_t retried = 0;                               // attempts after the first
  uint64_t bytes = 0;                                 // that were sent
  std::map<std::string, uint64_t> dropped_samples{};  // by reason
  std::string last_error{};                           // with the server's words; "": none so far
  std::optional<WallTime> last_error_at{};
};

// "working", "behind", "failing".
constexpr std::string_view Name(SinkStatus::State state) {
  switch (state) {
    case SinkStatus::State::kWorking:
      return "working";
    case SinkStatus::State::kBehind:
      return "behind";
    case SinkStatus::State::kFailing:
      break;
  }
  return "failing";
}

// A label of the samples of the last windows, by which they can be chosen.
struct LabelChoice {
  struct Value {
    std::string value;
    uint64_t samples = 0;
  };

  std::string name;
  std::vector<Value> values;  // the most frequent first
  size_t left_out = 0;        // further values

  // Of so many labels at most, and of each so many values.
  static constexpr size_t kMostLabels = 8;
  static constexpr size_t kMostValues = 100;
};

// What the agent itself costs.
struct CostStatus {
  double cpu_cores = 0;  // of late: 0.01 is a hundredth of one CPU
  double cpu_limit = 0;  // in the same unit; 0: none
  uint64_t resident_bytes = 0;
  uint64_t kernel_bytes = 0;  // memory of maps and rings
  uint64_t memory_limit = 0;  // for both; 0: none
};

struct AgentStatus {
  std::string host;
  std::string version;
  Labels labels;  // on every profile
  SamplingStatus sampling;
  std::vector<SinkStatus> sinks;
  CostStatus cost;
  std::vector<LabelChoice> choices;
  // What is wrong beyond what the numbers above say, and what to do about it, in plain words.
  std::vector<std::string> warnings;
};

}  // namespace pyrometer
