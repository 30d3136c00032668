// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map_reader.h"

#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "symbolize/line_reader.h"

namespace pyrometer {
namespace {

constexpr size_t kLongestPerfMapLine = 4 * kMostOfPerfMapName;
// Lines are given on when they take that much.
constexpr size_t kBlock = size_t{32} << 10;

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
      .start = *start, .end = *start + *size, .name = Printable(line, kMostOfPerfMapName)};
}

// Lines that are to be given on.
class Block {
 public:
  explicit Block(uint64_t begin) : given_(begin) {}

  void Add(std::string_view line) {
    if (std::optional<PerfMapFunction> function = ParseLine(line)) {
      size_ += sizeof(PerfMapLines::Function) + function->name.size();
      functions_.push_back(*std::move(function));
    } else {
      ++bad_;
    }
  }

  bool IsFull() const { return size_ >= kBlock; }

  // All up to where `lines` is. Empty afterwards.
  void GiveTo(PerfMapSink sink, const LineReader& lines) {
    if (lines.offset() == given_) return;
    std::vector<PerfMapLines::Function> functions;
    functions.reserve(functions_.size());
    for (const auto& [start, end, name] : functions_) functions.push_back({start, end, name});
    given_ = lines.offset();
    sink({.functions = functions,
          .bad = std::exchange(bad_, 0),
          .end = given_,
          .ends_in_line = lines.in_cut_line()});
    functions_.clear();
    size_ = 0;
  }

 private:
  std::vector<PerfMapFunction> functions_;
  size_t size_ = 0;
  uint64_t bad_ = 0;
  uint64_t given_;  // the offset behind what was given on
};

}  // namespace

Result<std::optional<PerfMapFunction>> DirectPerfMapReader::Read(int fd, const PerfMapPart& part,
                                                                 PerfMapSink sink) {
  LineReader lines(fd, part.begin, part.end, kLongestPerfMapLine);
  Block block(part.begin);
  bool skips = part.begins_in_line;
  while (true) {
    const Result<std::optional<std::string_view>> line = lines.Next();
    if (!line || !*line) {
      block.GiveTo(sink, lines);
      if (!line) return line.error();
      break;
    }
    if (!std::exchange(skips, false)) block.Add(**line);
    if (block.IsFull()) block.GiveTo(sink, lines);
  }
  const std::string_view rest = lines.rest();
  if (skips || lines.offset() + rest.size() != part.end) return std::nullopt;
  return ParseLine(rest);
}

}  // namespace pyrometer
