// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map_lines.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/printable.h"
#include "base/system_error.h"
#include "symbolize/line_reader.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;
constexpr size_t kLongestLine = 4 * PerfMapFunction::kMaxName;

// Takes a hexadecimal number and the blank behind it off the front of `line`.
std::optional<uint64_t> TakeHex(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.begin(), line.end(), value, 16);
  if (error != std::errc() || end == line.end() || *end != ' ') return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.begin()) + 1);
  return value;
}

std::optional<PerfMapFunction> ParseLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::optional<uint64_t> start = TakeHex(line);
  const std::optional<uint64_t> size = start ? TakeHex(line) : std::nullopt;
  if (!size || *size == 0 || *size > std::numeric_limits<uint64_t>::max() - *start ||
      line.empty()) {
    return std::nullopt;
  }
  return PerfMapFunction{
      .start = *start, .end = *start + *size, .name = Printable(line, PerfMapFunction::kMaxName)};
}

// Of the last line or two before `offset`. A file that was written anew in its place has others
// there: the JVM writes its map so whenever it is asked to. (FNV-1a: it is only the writer whom a
// collision would harm.)
Result<uint64_t> MarkBefore(int fd, uint64_t offset) {
  std::array<char, 128> bytes{};
  const size_t size = std::min<uint64_t>(bytes.size(), offset);
  ssize_t n = 0;
  do {
    n = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset - size));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return SystemError(errno, "pread");
  uint64_t mark = 0xcbf29ce484222325;
  for (const char byte : std::string_view(bytes.data(), static_cast<size_t>(n))) {
    mark = (mark ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return mark;
}

}  // namespace

Result<PerfMapEnd> ReadPerfMapLines(int fd, const PerfMapPart& part,
                                    OnPerfMapFunction on_function) {
  PerfMapEnd end{.offset = part.begin};
  if (part.begin > 0) {
    ASSIGN_OR_RETURN(const uint64_t mark, MarkBefore(fd, part.begin));
    end.is_another = mark != part.mark;
    if (end.is_another) return end;
  }
  uint64_t names = 0;
  end.is_cut = true;
  LineReader lines(fd, part.begin, part.begin + kMaxFileBytes, kLongestLine);
  for (; end.lines < part.most_lines && names < part.most_names; ++end.lines) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.Next());
    end.offset = lines.offset();
    if (!line) {
      const std::string_view rest = lines.rest();
      end.is_cut = end.offset + rest.size() >= part.begin + kMaxFileBytes;
      if (part.has_stopped && end.offset + rest.size() == part.size) end.tail = ParseLine(rest);
      break;
    }
    if (const std::optional<PerfMapFunction> function = ParseLine(*line)) {
      names += function->name.size();
      on_function(*function, end.offset);
    } else {
      ++end.bad_lines;
    }
  }
  ASSIGN_OR_RETURN(end.mark, MarkBefore(fd, end.offset));
  return end;
}

}  // namespace pyrometer
