// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace pyrometer {

// What is repeated of a server's own words.
inline constexpr size_t kServerWordsBytes = 512;

// After credentials were refused: a token or a certificate may have been replaced meanwhile.
inline constexpr std::chrono::seconds kAskAgainWithOtherCredentials{60};

}  // namespace pyrometer
