// SPDX-License-Identifier: Apache-2.0
// What the sampler hands on: one window of samples, still without names.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// How the walk of a user stack ended; the values are enum pyro_stack_end of abi/sampler.h.
enum class StackEnd : uint8_t {
  kNoUserStack,  // thread of the kernel, or exiting process
  kComplete,
  kTruncated,         // the frame limit was reached, or the end of the stack bytes at hand
  kNoUnwindInfo,      // a file's code without call frame information, nor a valid frame pointer
  kJit,               // the same in code that is no file's
  kUnreadable,        // the stack's memory was not to be had
  kBadReturnAddress,  // a return address that lies in no executable memory
  kBadCfa,            // the call frame information leads nowhere
  kUnsupported,       // it asks for a register that is not known
  kNotReady,          // mappings or tables were not known yet, and too many such samples at a time
  kNoRegisters,
};
inline constexpr size_t kStackEnds = 11;

// "complete", "truncated", "no unwind information", ...
constexpr std::string_view Name(StackEnd end) {
  switch (end) {
    case StackEnd::kNoUserStack:
      return "no user stack";
    case StackEnd::kComplete:
      return "complete";
    case StackEnd::kTruncated:
      return "truncated";
    case StackEnd::kNoUnwindInfo:
      return "no unwind information";
    case StackEnd::kJit:
      return "JIT code";
    case StackEnd::kUnreadable:
      return "stack unreadable";
    case StackEnd::kBadReturnAddress:
      return "bad return address";
    case StackEnd::kBadCfa:
      return "bad frame address";
    case StackEnd::kUnsupported:
      return "unsupported rule";
    case StackEnd::kNotReady:
      return "tables not ready";
    case StackEnd::kNoRegisters:
      return "no registers";
  }
  return "unknown";
}

// True if frames towards the root are missing.
constexpr bool IsCut(StackEnd end) {
  return end != StackEnd::kNoUserStack && end != StackEnd::kComplete;
}

// Frames live in Window::frames: `kernel_frames` of them, then `user_frames`, each leaf first.
// Processes share equal stacks; once the window is resolved, all but those in which user addresses
// are left, which mean something else in every process.
struct Stack {
  uint32_t first_frame = 0;
  uint16_t kernel_frames = 0;
  uint16_t user_frames = 0;
  StackEnd end = StackEnd::kNoUserStack;
  // Whose it is alone. Set when the window is resolved, if it has user addresses.
  std::optional<ProcessKey> process = std::nullopt;
};

// What is sampled; the values are enum pyro_event_kind of abi/sampler.h.
enum class EventKind : uint8_t {
  kCpuClock,  // CPU time: a tick of each CPU's clock, each worth a period
};
inline constexpr size_t kEventKinds = 1;

// What a number of a profile means: "samples" in "count", "cpu" in "nanoseconds".
struct ValueType {
  std::string_view type;
  std::string_view unit;
  constexpr bool operator==(const ValueType&) const = default;
};

// How many there were, and what they are worth.
constexpr std::array<ValueType, 2> ValueTypesOf(EventKind event) {
  switch (event) {
    case EventKind::kCpuClock:
      break;
  }
  return {{{"samples", "count"}, {"cpu", "nanoseconds"}}};
}

// `count` ticks that hit the same stack of the same program in the same process and thread name.
struct Sample {
  ProcessKey process;
  ExecId exec;
  std::string comm;    // of the process (group leader)
  std::string thread;  // of the thread
  uint32_t stack = 0;  // index into Window::stacks
  uint64_t count = 0;
  MonotonicTime first_seen;
  MonotonicTime last_seen;  // not before first_seen
  // Its object frames were looked up for the moment at which it was taken; else the kernel side
  // named them, by what it had been told.
  bool looked_up = false;
  Hertz frequency{};  // 0: the window's; another if it was taken before and unwound late
  EventKind event = EventKind::kCpuClock;
  LabelSet labels = nullptr;  // of the process; attached when the window is resolved
};

// Where every tick of the sampling program went, since the recording began or in one window.
// ticks == exported + idle + filtered + sum(lost), exactly.
struct Accounting {
  enum Lost : uint8_t {
    kStackMapFull,
    kCountMapFull,
    kNoMemory,
    kMapBusy,
    kInternal,
    kWindowDropped,  // by user space, which could not keep up with naming
    kLostReasons
  };

  uint64_t exported = 0;
  uint64_t idle = 0;
  uint64_t filtered = 0;
  std::array<uint64_t, kLostReasons> lost{};
  // Ticks the kernel never delivered: perf's count / period, less the ticks above.
  uint64_t undelivered = 0;

  uint64_t TotalLost() const {
    uint64_t sum = 0;
    for (const uint64_t n : lost) sum += n;
    return sum;
  }
  uint64_t Ticks() const { return exported + idle + filtered + TotalLost(); }

  Accounting& operator+=(const Accounting& other) {
    exported += other.exported;
    idle += other.idle;
    filtered += other.filtered;
    for (size_t i = 0; i < lost.size(); ++i) lost[i] += other.lost[i];
    undelivered += other.undelivered;
    return *this;
  }
  // REQUIRES: `other` is an earlier state of this.
  Accounting operator-(const Accounting& other) const {
    Accounting rest = *this;
    rest.exported -= other.exported;
    rest.idle -= other.idle;
    rest.filtered -= other.filtered;
    for (size_t i = 0; i < lost.size(); ++i) rest.lost[i] -= other.lost[i];
    // What is due runs a little ahead of what was counted, and may be caught up with.
    rest.undelivered -= std::min(undelivered, other.undelivered);
    return rest;
  }
  bool operator==(const Accounting&) const = default;
};

// "stack_map_full", ... as in the accounting line and the metrics.
constexpr std::string_view Name(Accounting::Lost reason) {
  switch (reason) {
    case Accounting::kStackMapFull:
      return "stack_map_full";
    case Accounting::kCountMapFull:
      return "count_map_full";
    case Accounting::kNoMemory:
      return "no_memory";
    case Accounting::kMapBusy:
      return "map_busy";
    case Accounting::kWindowDropped:
      return "window_dropped";
    case Accounting::kInternal:
    case Accounting::kLostReasons:
      break;
  }
  return "internal";
}

// All samples between two swaps of the kernel's maps. Every stage takes one and returns a
// richer one; it is complete in itself, so that no stage asks an earlier one again.
struct Window {
  MonotonicTime begin;
  MonotonicTime end;
  std::chrono::system_clock::time_point wall_begin;
  std::chrono::system_clock::time_point wall_end;
  Hertz frequency;  // of all of it
  // Where the ticks of this window went: `exported` are the samples in it. A sample that user space
  // unwound counts in the window with which it comes, which may be the one after it was taken.
  Accounting accounting;
  std::vector<Frame> frames;
  std::vector<Stack> stacks;
  std::vector<Sample> samples;

  std::span<const Frame> FramesOf(const Stack& s) const {
    return std::span(frames).subspan(s.first_frame, s.kernel_frames + s.user_frames);
  }
};

}  // namespace pyrometer
