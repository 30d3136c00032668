// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/cold_sample.h"
#include "pyrometer/result.h"

struct ring_buffer;

namespace pyrometer {

// The reading end of the kernel's `cold_samples`.
class ColdRing {
 public:
  static Result<ColdRing> Open(int map_fd);

  // Everything that is there. Never waits.
  std::vector<ColdSample> Take();

  // Returns when a fair part of the ring is full, after Wake(), or when the time is over; sometimes
  // earlier.
  void Wait(std::chrono::milliseconds most);

  // Ends a Wait(), also one that is yet to begin. From any thread.
  void Wake();

 private:
  struct Close {
    void operator()(ring_buffer* ring) const;
  };
  // Where records go while Take() runs; the ring's callback holds its address.
  using Taken = std::vector<ColdSample>;

  ColdRing() : taken_(std::make_unique<Taken>()) {}

  std::unique_ptr<Taken> taken_;
  std::unique_ptr<ring_buffer, Close> ring_;
  UniqueFd woken_;
};

}  // namespace pyrometer
