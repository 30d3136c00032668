// SPDX-License-Identifier: Apache-2.0
#include "profile/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyrometer {
namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";
constexpr std::string_view kUnknown = "[unknown]";

bool IsContinuation(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
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

std::string ShortenPath(std::string_view path, size_t width) {
  const size_t slash = path.rfind('/');
  const size_t before = slash == 0 ? std::string_view::npos : path.rfind('/', slash - 1);
  const std::string_view last_two = path.substr(before + 1);  // npos + 1 is 0
  if (slash != std::string_view::npos && CodePoints(last_two) <= width) {
    return std::string(last_two);
  }
  return Shorten(BaseName(path), width);
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

std::string ContentIdOf(const CodeObject& object) {
  return object.build_id.empty() ? object.hash.ToHex() : object.build_id.ToHex();
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
