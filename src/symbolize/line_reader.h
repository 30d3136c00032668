// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Goes through the lines of a part of a file, in reads of 64 KiB and in memory of little
// more, however long the lines are.
class LineReader {
 public:
  // Of the bytes [begin, end) of `fd`, which stays the caller's.
  LineReader(int fd, uint64_t begin, uint64_t end, size_t longest)
      : fd_(fd), offset_(begin), end_(end), longest_(longest) {}

  // The next line that ends in a newline, without it; nothing when there is none. What follows the
  // last newline may still be being written and is left, unless it is longer than `longest`: of
  // such a line the head is given and the rest skipped, newline or not.
  // Valid until the next call.
  Result<std::optional<std::string_view>> Next();

  // What follows the last newline, of a line that is not longer than `longest`. REQUIRES: Next()
  // gave nothing.
  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

  // The offset behind the last line given.
  uint64_t offset() const { return offset_; }

 private:
  Result<bool> Fill();
  void Consume(size_t bytes);
  Result<void> SkipRestOfLine();

  int fd_;
  uint64_t offset_;
  uint64_t end_;
  size_t longest_;
  bool in_cut_line_ = false;
  std::string buffer_;
  size_t position_ = 0;  // of offset_ in buffer_
};

}  // namespace pyrometer
