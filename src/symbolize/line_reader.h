// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Reads a part of a file line by line, in steps of 64 KiB and with little more memory, however long
// the lines are.
class LineReader {
 public:
  // Reads bytes [begin, end) of `fd`, which stays the caller's; cuts lines over `longest` bytes.
  LineReader(int fd, uint64_t begin, uint64_t end, size_t longest)
      : fd_(fd), offset_(begin), end_(end), longest_(longest) {}

  // Returns the next line that ends in a newline, without the newline; nothing if there is none.
  // What follows the last newline may still be being written and is left for rest(), unless it is
  // longer than `longest`: such a line is cut and the rest of it skipped, newline or not.
  // Valid until the next call.
  Result<std::optional<std::string_view>> Next();

  // What follows the last newline, unless it was returned as a cut line. REQUIRES: Next() returned
  // nothing.
  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

  // The offset after the last line returned.
  uint64_t offset() const { return offset_; }

  // True if that is in the middle of a line that was cut.
  bool in_cut_line() const { return in_cut_line_; }

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
