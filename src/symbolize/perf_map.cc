// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>

#include "base/printable.h"
#include "base/system_error.h"
#include "symbolize/line_reader.h"

namespace pyrometer {
namespace {

// Takes a hexadecimal number and the blank behind it off the front of `line`.
std::optional<uint64_t> TakeHex(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.begin(), line.end(), value, 16);
  if (error != std::errc() || end == line.end() || *end != ' ') return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.begin()) + 1);
  return value;
}

std::optional<PerfMap::Function> ParseLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::optional<uint64_t> start = TakeHex(line);
  const std::optional<uint64_t> size = start ? TakeHex(line) : std::nullopt;
  if (!size || *size == 0 || *size > std::numeric_limits<uint64_t>::max() - *start ||
      line.empty()) {
    return std::nullopt;
  }
  return PerfMap::Function{
      .start = *start, .end = *start + *size, .name = Printable(line, PerfMap::kMaxName)};
}

}  // namespace

Result<void> PerfMap::Update(int fd, Writer writer) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  const bool same = status.st_dev == device_ && status.st_ino == inode_ &&
                    static_cast<uint64_t>(status.st_size) >= offset_;
  if (!same) {
    *this = PerfMap();
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  const bool has_stopped = writer == Writer::kGone || size == size_;
  size_ = size;
  tail_.reset();
  constexpr size_t kLongestLine = 4 * kMaxName;
  LineReader lines(fd, offset_, kMaxFileBytes, kLongestLine);
  for (; lines_ < kMaxLines && names_.size() < kMaxNameBytes; ++lines_) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.Next());
    offset_ = lines.offset();
    if (!line) {
      const std::string_view rest = lines.rest();
      if (has_stopped && offset_ + rest.size() == size) tail_ = ParseLine(rest);
      break;
    }
    AddLine(*line);
  }
  return {};
}

void PerfMap::AddLine(std::string_view line) {
  if (const std::optional<Function> function = ParseLine(line)) {
    Insert(*function);
  } else {
    ++bad_lines_;
  }
}

// Cuts out of the older ranges what the new one covers.
void PerfMap::Insert(const Function& function) {
  const auto& [start, end, name] = function;
  auto next = ranges_.lower_bound(start);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    const Range old = before->second;
    if (old.end > start) before->second.end = start;
    if (old.end > end) ranges_[end] = old;
  }
  next = ranges_.lower_bound(start);
  while (next != ranges_.end() && next->first < end) {
    const Range old = next->second;
    next = ranges_.erase(next);
    if (old.end > end) ranges_[end] = old;  // nothing lies between it and the next: the last turn
    if (old.end >= end) break;
  }
  ranges_[start] = {.end = end,
                    .name = static_cast<uint32_t>(names_.size()),
                    .name_size = static_cast<uint32_t>(name.size())};
  names_ += name;
}

std::optional<std::string_view> PerfMap::Find(Address address) const {
  if (tail_ && tail_->Contains(address)) return tail_->name;
  const auto next = ranges_.upper_bound(address.value());
  if (next == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(next)->second;
  if (address.value() >= range.end) return std::nullopt;
  return std::string_view(names_).substr(range.name, range.name_size);
}

size_t PerfMap::bytes() const {
  return names_.capacity() + (tail_ ? tail_->name.capacity() : 0) +
         ranges_.size() * sizeof(decltype(ranges_)::value_type);
}

}  // namespace pyrometer
