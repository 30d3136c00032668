// SPDX-License-Identifier: Apache-2.0
#include "symbolize/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr size_t kStep = size_t{64} << 10;

}  // namespace

Result<std::optional<std::string_view>> LineReader::Next() {
  if (in_cut_line_) RETURN_IF_ERROR(SkipRestOfLine());
  size_t searched = 0;
  while (true) {
    const std::string_view ahead = std::string_view(buffer_).substr(position_);
    const size_t newline = ahead.find('\n', searched);
    if (newline <= longest_) {
      Consume(newline + 1);
      return ahead.substr(0, newline);
    }
    if (ahead.size() > longest_) {
      in_cut_line_ = true;
      Consume(longest_);
      return ahead.substr(0, longest_);
    }
    searched = ahead.size();
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return std::nullopt;
  }
}

Result<void> LineReader::SkipRestOfLine() {
  while (true) {
    const size_t newline = buffer_.find('\n', position_);
    if (newline != std::string::npos) {
      Consume(newline + 1 - position_);
      in_cut_line_ = false;
      return {};
    }
    Consume(buffer_.size() - position_);
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return {};
  }
}

void LineReader::Consume(size_t bytes) {
  position_ += bytes;
  offset_ += bytes;
}

// Drops what was consumed and reads on; false at the end.
Result<bool> LineReader::Fill() {
  buffer_.erase(0, position_);
  position_ = 0;
  const size_t have = buffer_.size();
  const uint64_t at = offset_ + have;
  if (at >= end_) return false;
  const size_t step = std::min<uint64_t>(kStep, end_ - at);
  buffer_.resize(have + step);
  ssize_t n = 0;
  do {
    n = ::pread(fd_, buffer_.data() + have, step, static_cast<off_t>(at));
  } while (n < 0 && errno == EINTR);
  buffer_.resize(have + static_cast<size_t>(n > 0 ? n : 0));
  if (n < 0) return SystemError(errno, "pread");
  return n > 0;
}

}  // namespace pyrometer
