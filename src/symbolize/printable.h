// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pyrometer {

// Names from symbol tables end in terminals, protobuf strings and web pages. This makes any bytes
// fit for them: valid UTF-8 without control characters, line separators or direction overrides,
// each of which becomes U+FFFD, and at most `limit` bytes (REQUIRES: at least 3), the last three
// of which are "..." if something was cut off.
std::string Printable(std::string_view bytes, size_t limit);

// Enough for every name seen in practice; demangled C++ names can be far longer.
inline constexpr size_t kMaxNameLength = 4096;

}  // namespace pyrometer
