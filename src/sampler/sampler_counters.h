// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
namespace pyrometer {
struct SamplerCounters {
  uint64_t provisional = 0;
};
}  // namespace pyrometer
