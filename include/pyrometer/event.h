// SPDX-License-Identifier: Apache-2.0
// What can be sampled: the table of events, and what is to be known of each.
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pyrometer {

// What is sampled; the values are those of enum pyro_event_kind (abi/sampler.h).
enum class EventKind : uint8_t {
  kCpuClock,    // CPU time: a tick of each CPU's clock, worth one period
  kPageFaults,  // page faults: one of so many
};
inline constexpr size_t kEventKinds = 2;

// The meaning of a number in a profile: "samples" in "count", "cpu" in "nanoseconds".
struct ValueType {
  std::string_view type;
  std::string_view unit;
  constexpr bool operator==(const ValueType&) const = default;
};

// A row of the table of events.
struct EventFacts {
  std::string_view name;  // as on the command line
  uint32_t perf_type;     // of perf_event_attr
  uint64_t perf_config;
  ValueType value;         // what a sample is worth
  bool counted;            // a sample is one of so many events; else a tick of a clock
  std::string_view noun;   // what the value is, for people
  std::string_view title;  // of a profile
};

// By EventKind. Another event takes a row here, and one in enum pyro_event_kind.
inline constexpr std::array<EventFacts, kEventKinds> kEvents{{
    {.name = "cpu-clock",
     .perf_type = PERF_TYPE_SOFTWARE,
     .perf_config = PERF_COUNT_SW_CPU_CLOCK,
     .value = {"cpu", "nanoseconds"},
     .counted = false,
     .noun = "CPU time",
     .title = "CPU profile"},
    {.name = "page-faults",
     .perf_type = PERF_TYPE_SOFTWARE,
     .perf_config = PERF_COUNT_SW_PAGE_FAULTS,
     .value = {"page-faults", "count"},
     .counted = true,
     .noun = "page faults",
     .title = "Page fault profile"},
}};

constexpr const EventFacts& FactsOf(EventKind event) {
  return kEvents[static_cast<size_t>(event)];
}

// The event of this name; nothing: there is none.
constexpr std::optional<EventKind> EventNamed(std::string_view name) {
  for (size_t i = 0; i < kEvents.size(); ++i) {
    if (kEvents[i].name == name) return static_cast<EventKind>(i);
  }
  return std::nullopt;
}

// The numbers of a sample: how many, and what they are worth.
constexpr std::array<ValueType, 2> ValueTypesOf(EventKind event) {
  return {{{"samples", "count"}, FactsOf(event).value}};
}

// What to sample. A clock has a frequency instead of a period.
struct SampledEvent {
  EventKind kind = EventKind::kCpuClock;
  uint64_t period = 1;  // of a counted event: each sample is one of so many

  constexpr bool counted() const { return FactsOf(kind).counted; }
  constexpr bool operator==(const SampledEvent&) const = default;
};

}  // namespace pyrometer
