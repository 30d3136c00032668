// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

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

 private:
  struct Close {
    void operator()(ring_buffer* ring) const;
  };
  // Where records go while Take() runs; the ring's callback holds its address.
  using Taken = std::vector<ColdSample>;

  ColdRing() : taken_(std::make_unique<Taken>()) {}

  std::unique_ptr<Taken> taken_;
  std::unique_ptr<ring_buffer, Close> ring_;
};

}  // namespace pyrometer
