// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "pyrometer/profile.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// How long a consumer's periods are. A period consists of one or more windows: the engine ends a
// window with each period, and also when the kernel's maps fill up, another consumer's period ends
// or the sampling changes.
struct WindowPeriod {
  std::chrono::nanoseconds length{std::chrono::seconds(10)};
  bool aligned = false;  // to multiples of `length` on the wall clock
};

// One window on its way to one consumer.
struct Delivery {
  std::shared_ptr<const NamedWindow> window;
  bool ends_period = false;  // of this consumer
  // The ticks of earlier windows that were dropped because naming or this consumer did not keep up.
  // Their samples count as lost (kWindowDropped).
  Accounting missed;

  // Takes over the information of `dropped`, the window before this one.
  void TakeOver(const Delivery& dropped);
};

// Receives named windows. Attached to a Profiler, it has a thread and a queue of its own: a slow
// consumer misses windows, learns how many ticks (Delivery::missed), and delays nobody else.
class WindowConsumer {
 public:
  virtual ~WindowConsumer() = default;

  // Called on the consumer's thread, in the order of time. May call the profiler, but not detach
  // this consumer, stop the profiler or destroy it.
  virtual void Consume(const Delivery& delivery) = 0;
};

// The accounting of a window that is dropped: its samples count as lost.
Accounting Missed(const Window& window);

// A window that had to be dropped before it was named.
struct MissedWindow {
  uint64_t number = 0;
  Accounting accounting;
};

}  // namespace pyrometer
