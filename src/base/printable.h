// SPDX-License-Identifier: Apache-2.0
// Names of functions, files, processes and hosts are bytes that somebody else chose, and end in
// terminals, protobuf strings and web pages. This makes any bytes fit for all of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pyrometer {

// True if `text` is UTF-8 without any character that
// - moves a terminal's cursor or ends a line: controls, line and paragraph separators;
// - changes the order in which text is read: direction marks, overrides and isolates;
// - must not appear in text: byte order marks, noncharacters.
bool IsPrintable(std::string_view text);

// `bytes` as printable text: each character as above, and each byte that is not part of valid
// UTF-8, becomes U+FFFD. At most `limit` bytes (REQUIRES: at least 3), the last three of which are
// "..." if something was cut off.
std::string Printable(std::string_view bytes, size_t limit = std::string_view::npos);

// `text` fit for HTML: as text, and as the value of an attribute in quotes of either kind.
std::string EscapeHtml(std::string_view text);

}  // namespace pyrometer
