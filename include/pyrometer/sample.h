// SPDX-License-Identifier: Apache-2.0
// The output of the sampler: one window of samples, not yet named.
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

#include "pyrometer/event.h"
#include "pyrometer/frame.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"

namespace pyrometer {

// How unwinding a user stack ended; the values are those of enum pyro_stack_end (abi/sampler.h).
enum class StackEnd : uint8_t {
  kNoUserStack,  // kernel thread, or exiting process
  kComplete,
  kTruncated,         // reached the frame limit, or the end of the copied stack bytes
  kNoUnwindInfo,      // a file's code with neither call frame information nor a valid frame pointer
  kJit,               // the same in code that is in no file
  kUnreadable,        // the stack's memory could not be read
  kBadReturnAddress,  // a return address in no executable memory
  kBadCfa,            // call frame information that leads to no valid frame
  kUnsupported,       // call frame information that needs a register whose value is not known
  kNotReady,          // mappings or tables were not known yet, and too many such samples at once
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
// Processes share equal stacks. Once the window is resolved, stacks that still have user addresses
// are not shared, since an address means something else in every process.
struct Stack {
  uint32_t first_frame = 0;
  uint16_t kernel_frames = 0;
  uint16_t user_frames = 0;
  StackEnd end = StackEnd::kNoUserStack;
  // The only process that has it. Set when the window is resolved, if it has user addresses.
  std::optional<ProcessKey> process = std::nullopt;
};

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
  // True if user space looked up its object frames for the moment it was taken; else the kernel
  // side did, from the mappings published to it.
  bool looked_up = false;
  Hertz frequency{};  // 0: the window's; another if it was taken before and unwound late
  EventKind event = EventKind::kCpuClock;
  LabelSet labels = nullptr;  // of the process; attached when the window is resolved
};

// What became of every tick of the sampling program, since the recording began or in one window.
// ticks == exported + idle + filtered + sum(lost), exactly.
struct Accounting {
  enum Lost : uint8_t {
    kStackMapFull,
    kCountMapFull,
    kNoMemory,
    kMapBusy,
    kInternal,
    kWindowDropped,  // by user space: naming or a consumer could not keep up
    kLostReasons
  };

  uint64_t exported = 0;
  uint64_t idle = 0;
  uint64_t filtered = 0;
  std::array<uint64_t, kLostReasons> lost{};
  // Ticks the kernel never delivered: perf's count / period, minus the ticks above. 0 for a counted
  // event.
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
    // Due ticks are counted slightly before delivered ones, so the difference may shrink.
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
// richer one. It is self-contained, so no stage asks an earlier one again.
struct Window {
  MonotonicTime begin;
  MonotonicTime end;
  std::chrono::system_clock::time_point wall_begin;
  std::chrono::system_clock::time_point wall_end;
  SampledEvent event;  // what its samples are of, unless a sample says otherwise
  Hertz frequency;     // throughout the window; of a counted event 0
  // What became of its ticks: `exported` are the samples in it. Samples that user space unwound may
  // have been taken in an earlier window; they count in the window with which they come.
  Accounting accounting;
  std::vector<Frame> frames;
  std::vector<Stack> stacks;
  std::vector<Sample> samples;

  std::span<const Frame> FramesOf(const Stack& s) const {
    return std::span(frames).subspan(s.first_frame, s.kernel_frames + s.user_frames);
  }
};

}  // namespace pyrometer
