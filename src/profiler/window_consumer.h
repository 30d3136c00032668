// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "pyrometer/profile.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// How long a consumer's periods are. The engine ends a window where a period ends, and earlier
// where the kernel's maps fill up, another consumer's period ends or something is changed; so a
// period is one window or several.
struct WindowPeriod {
  std::chrono::nanoseconds length{std::chrono::seconds(10)};
  bool aligned = false;  // to whole multiples of `length` of the wall clock
};

// One window on its way to one consumer.
struct Delivery {
  std::shared_ptr<const NamedWindow> window;
  bool ends_period = false;  // of this consumer
  // Windows that went before and had to be dropped, because naming or this consumer did not keep
  // up: their ticks, those with samples as lost (kWindowDropped).
  Accounting missed;

  // What `dropped`, which went before this, had to tell.
  void TakeOver(const Delivery& dropped);
};

// Who wants to know what runs. Attached to a Profiler, it has a thread and a queue of its own
// there: one that is slow misses windows, which it is told of, and keeps nobody else waiting.
class WindowConsumer {
 public:
  virtual ~WindowConsumer() = default;

  // On the consumer's thread, in the order of time. May ask the profiler for anything but to detach
  // this consumer, to stop, or to be destroyed.
  virtual void Consume(const Delivery& delivery) = 0;
};

// Where the ticks of a window went if nobody gets to see it.
Accounting Missed(const Window& window);

// A window that had to be dropped before it was named.
struct MissedWindow {
  uint64_t number = 0;
  Accounting accounting;
};

}  // namespace pyrometer
