// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>
#include <cstdint>

namespace pyrometer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kCut = "...";

struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;  // in bytes; 0: not UTF-8
};

// The code point at the front of `bytes`, which is not empty, by table 3-7 of the Unicode standard
// (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF.
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

bool IsPrintable(CodePoint c) {
  struct Range {
    uint32_t first;
    uint32_t last;
  };
  constexpr Range kHidden[] = {
      {0x00, 0x1F},      // C0
      {0x7F, 0x9F},      // DEL, C1
      {0x061C, 0x061C},  // direction mark
      {0x200E, 0x200F},  // direction marks
      {0x2028, 0x202E},  // line and paragraph separators, direction embeddings and overrides
      {0x2066, 0x2069},  // direction isolates
      {0xFDD0, 0xFDEF},  // noncharacters
      {0xFEFF, 0xFEFF},  // byte order mark
  };
  const auto holds = [c](Range r) { return c.value >= r.first && c.value <= r.last; };
  const bool last_of_plane = (c.value & 0xFFFE) == 0xFFFE;  // noncharacters as well
  return c.length != 0 && !last_of_plane && std::ranges::none_of(kHidden, holds);
}

// The length of the printable ASCII at the front: most text is nothing else.
size_t PlainPrefix(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  return static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

// Cuts before the code point that crosses `limit`.
void CutAt(std::string& text, size_t limit) {
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xC0) == 0x80) --limit;
  text.resize(limit);
}

}  // namespace

bool IsPrintable(std::string_view text) {
  while (true) {
    text.remove_prefix(PlainPrefix(text));
    if (text.empty()) return true;
    const CodePoint c = Decode(text);
    if (!IsPrintable(c)) return false;
    text.remove_prefix(c.length);
  }
}

std::string Printable(std::string_view bytes, size_t limit) {
  std::string text;
  text.reserve(std::min(bytes.size(), limit));
  text = bytes.substr(0, std::min(PlainPrefix(bytes), limit));
  bytes.remove_prefix(text.size());
  while (!bytes.empty() && text.size() <= limit) {
    const CodePoint c = Decode(bytes);
    const size_t length = std::max<size_t>(c.length, 1);
    text += IsPrintable(c) ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length);
  }
  if (text.size() > limit || !bytes.empty()) {
    CutAt(text, limit - kCut.size());
    text += kCut;
  }
  return text;
}

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace pyrometer
