// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "sampler/faces.h"
#include "sampler/ring_positions.h"
#include "sampler/wakeup.h"

struct ring_buffer;

namespace pyrometer {

// The reader of the kernel's `cold_samples`. Threads as for ColdSource; waiting(): any thread.
class ColdRing : public ColdSource {
 public:
  static Result<std::unique_ptr<ColdRing>> Open(int map_fd);

  std::vector<ColdSample> Take() override;
  // Also returns when a quarter of the ring is full.
  void Wait(std::chrono::milliseconds most) override;
  void Wake() override { wakeup_.Wake(); }

  // Bytes not taken yet.
  size_t waiting() const { return positions_.Waiting(); }

 private:
  struct Close {
    void operator()(ring_buffer* ring) const;
  };
  ColdRing(RingPositions positions, Wakeup wakeup)
      : positions_(std::move(positions)), wakeup_(std::move(wakeup)) {}

  std::vector<ColdSample> taken_;  // filled by the ring's callback while Take() runs
  std::unique_ptr<ring_buffer, Close> ring_;
  RingPositions positions_;
  Wakeup wakeup_;
};

}  // namespace pyrometer
