// SPDX-License-Identifier: Apache-2.0
#include "symbolize/printable.h"

#include <cstdint>

namespace pyrometer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCut = "...";

struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;  // in bytes; 0: not UTF-8
};

// The code point at the front of `bytes`, which is not empty (RFC 3629).
CodePoint Decode(std::string_view bytes) {
  const auto byte = [bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return {};
  uint32_t value = first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || value > 0x10FFFF || surrogate) return {};
  return {value, length};
}

bool IsPrintable(uint32_t c) {
  return c >= 0x20 && !(c >= 0x7F && c <= 0x9F)  // C0, DEL, C1
         && !(c >= 0x2028 && c <= 0x202E)        // separators, direction overrides
         && !(c >= 0x2066 && c <= 0x2069)        // direction isolates
         && c != 0xFEFF;                         // byte order mark
}

// Cuts before the code point that crosses `limit`.
void CutAt(std::string& text, size_t limit) {
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xC0) == 0x80) --limit;
  text.resize(limit);
}

}  // namespace

std::string Printable(std::string_view bytes, size_t limit) {
  std::string text;
  while (!bytes.empty() && text.size() <= limit) {
    const CodePoint c = Decode(bytes);
    const size_t length = c.length == 0 ? 1 : c.length;
    const bool keep = c.length != 0 && IsPrintable(c.value);
    text += keep ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length);
  }
  if (text.size() > limit || !bytes.empty()) {
    CutAt(text, limit - kCut.size());
    text += kCut;
  }
  return text;
}

}  // namespace pyrometer
