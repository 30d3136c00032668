// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/waiting_samples.h"
#include "base/clock.h"
#include "base/latency_histogram.h"
#include "config/agent_config.h"
#include "profile/profile_builder.h"
#include "profiler/window_consumer.h"
#include "pyrometer/labels.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// The profiles of one period, one for each label set, shared by all that deliver or show them.
using ShippedWindow = std::shared_ptr<const std::vector<Profile>>;

// Makes profiles of the engine's windows: a period becomes one profile for each label set. A period
// in which the frequency changes becomes two, since a profile has one. Samples whose labels are not
// known yet go with a later period. Consume() runs on the engine's thread for this consumer; the
// rest is thread-safe.
class WindowShipper final : public WindowConsumer {
 public:
  struct Counters {
    uint64_t periods = 0;
    uint64_t profiles = 0;
    uint64_t samples = 0;                     // ticks in them
    std::array<uint64_t, kStackEnds> ends{};  // the same by how their stacks ended
    uint64_t missed = 0;  // ticks of windows that came too fast for us; see Delivery::missed
    WaitingSamples::Counters waiting{};
  };
  struct Latency {
    LatencyHistogram named;  // from the end of a window until it was named and here
    LatencyHistogram built;  // making a period's profiles
  };
  // Takes a period's profiles, and after them those of earlier ones that had to wait; must not wait
  // itself. Called on the consumer's thread.
  using Ship = std::function<void(const ShippedWindow&)>;

  // `clock`, by which latencies are measured, outlives it.
  WindowShipper(Labels labels, Ship ship, const Clock& clock, WaitingSamples::Options late = {});

  void Consume(const Delivery& delivery) override;

  // Ships what there is of a period whose end never came, and what waits, if anything. REQUIRES:
  // Consume is not called any more.
  void EndPeriod();

  // The labels of all profiles from the next period on, and what of their samples makes profiles of
  // their own, see SplitBySampleLabels(): of a period kMostSplit at most.
  static constexpr size_t kMostSplit = 1000;
  void SetLabels(Labels labels, const SampleLabels& of_samples = {});

  Counters counters() const;
  Latency latency() const;
  // The end of the last window that came here; nothing before the first.
  struct End {
    std::chrono::system_clock::time_point wall;
    MonotonicTime monotonic;
  };
  std::optional<End> last_end() const;

 private:
  std::vector<Profile> TakePeriod();
  void Finish();
  SampleLabels of_samples() const;
  void Send(std::vector<Profile> profiles, MonotonicTime begin);

  const Ship ship_;
  const Clock& clock_;
  // Owned by the consumer's thread.
  std::optional<ProfileBuilder> builder_;
  Hertz frequency_{};
  Accounting missed_;
  WaitingSamples waiting_;

  mutable absl::Mutex mutex_;
  Labels labels_ ABSL_GUARDED_BY(mutex_);
  SampleLabels of_samples_ ABSL_GUARDED_BY(mutex_);
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  Latency latency_ ABSL_GUARDED_BY(mutex_);
  std::optional<End> last_end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
