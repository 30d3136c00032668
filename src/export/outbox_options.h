// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "export/backoff.h"

namespace pyrometer {

// Where parcels wait on disk for a sink that does not take them.
struct SpoolOptions {
  std::string directory{};                // of this sink alone, see SpoolNameOf
  uint64_t max_size = uint64_t{1} << 30;  // bytes of its files
  std::chrono::nanoseconds max_age{std::chrono::hours(24)};
  // After the disk failed, nothing is asked of it for so long.
  std::chrono::nanoseconds pause{std::chrono::seconds(10)};
};

struct OutboxOptions {
  std::string name{};         // of the sink, for messages
  uint32_t concurrency = 16;  // requests under way; threads are started when they are needed
  uint64_t max_memory = uint64_t{32} << 20;  // bytes of parcels
  uint32_t max_windows = 8;                  // that wait to be packed
  RetryPolicy retry{};
  // What is older is dropped. An age counts from when the window was offered, by a clock that is
  // never set; of what an earlier run left, from its begin by the wall clock.
  std::chrono::nanoseconds max_age{std::chrono::hours(24)};
  // A parcel is dropped after so many refusals between which the destination took others: it would
  // be refused for ever.
  uint32_t max_refusals = 10;
  // A window's parcels wait for a random time up to this: many hosts close windows at once.
  std::chrono::nanoseconds jitter{};
  std::optional<SpoolOptions> spool{};
  // Once the sink has failed for so long, parcels go to the spool at once.
  std::chrono::nanoseconds spool_after{std::chrono::seconds(30)};
  // Runs first in each of the outbox's threads: to give up capabilities, say.
  std::function<void()> on_thread_start = [] {};
};

}  // namespace pyrometer
