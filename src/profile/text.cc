// SPDX-License-Identifier: Apache-2.0
#include "profile/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyrometer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";
constexpr std::string_view kUnknown = "[unknown]";

struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;  // bytes; 0: malformed
};

bool IsContinuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}

// The first code point of `text` by table 3-7 of the Unicode standard: no overlong forms, no
// surrogates, nothing beyond U+10FFFF.
CodePoint FirstCodePoint(std::string_view text) {
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  uint32_t value = lead & (0xFFU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return {};
    value = (value << 6) | (static_cast<uint8_t>(text[i]) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[size] || value > 0x10FFFF || surrogate) return {};
  return {value, size};
}

bool MayBeShown(uint32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;        // C0, DEL, C1
  if (c == 0x2028 || c == 0x2029) return false;                 // line and paragraph separators
  if (c == 0x061C || c == 0x200E || c == 0x200F) return false;  // direction marks
  return !(c >= 0x202A && c <= 0x202E) && !(c >= 0x2066 && c <= 0x2069);
}

// The byte position of code point number `n`.
size_t PositionOf(std::string_view text, size_t n) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!IsContinuation(text[at]) && n-- == 0) break;
  }
  return at;
}

}  // namespace

bool IsClean(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    if (c.size == 0 || !MayBeShown(c.value)) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    const size_t size = std::max<size_t>(c.size, 1);
    const bool keep = c.size != 0 && MayBeShown(c.value);
    clean += keep ? text.substr(0, size) : kReplacement;
    text.remove_prefix(size);
  }
  return clean;
}

size_t CodePoints(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), IsContinuation));
}

std::string Shorten(std::string_view text, size_t width) {
  const size_t have = CodePoints(text);
  if (have <= width) return std::string(text);
  if (width == 0) return "";
  const size_t tail = (width - 1) / 3;
  const size_t head = width - 1 - tail;
  return fmt::format("{}{}{}", text.substr(0, PositionOf(text, head)), kEllipsis,
                     text.substr(PositionOf(text, have - tail)));
}

std::string WithThousands(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == path.size()) return path;
  return path.substr(slash + 1);
}

std::string_view NameOf(const Line& line) {
  return line.function.empty() ? kUnknown : std::string_view(line.function);
}

std::string_view ProcessNameOf(const ProfileSample& sample) {
  return sample.comm.empty() ? kUnknown : std::string_view(sample.comm);
}

std::string CutMarker(StackEnd end) {
  if (!IsCut(end)) return "";
  if (end == StackEnd::kTruncated) return "[truncated]";
  return fmt::format("[unwind stopped: {}]", Name(end));
}

SampleTotals TotalsOf(const Profile& profile) {
  SampleTotals totals;
  for (const ProfileSample& sample : profile.samples) {
    totals.samples += sample.count;
    totals.value += sample.value;
    if (IsCut(sample.end)) totals.cut += sample.count;
  }
  return totals;
}

}  // namespace pyrometer
