// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace pyrometer {

// So long a test waits for what must come: only a test that fails waits that long, on whatever
// machine.
inline constexpr std::chrono::seconds kTestPatience{60};

// Waits until `holds()`; false if that takes absurdly long.
template <typename Condition>
bool Eventually(Condition holds) {
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace pyrometer
