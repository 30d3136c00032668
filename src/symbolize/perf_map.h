// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/cleared_code.h"
#include "symbolize/latest_ranges.h"
#include "symbolize/perf_map_lines.h"

namespace pyrometer {

struct PieceOfText {
  uint32_t begin = 0;
  uint32_t size = 0;
};

// The functions that a JIT compiler announced in /tmp/perf-PID.map: lines of "START SIZE name",
// with hexadecimal numbers, appended as code is generated (Linux,
// tools/perf/Documentation/jit-interface.txt). The profiled program writes the file, so it may
// contain anything. Not thread-safe.
class PerfMap {
 public:
  // What one Update() reads; the next goes on.
  static constexpr uint64_t kMaxLines = uint64_t{1} << 20;  // including bad ones, which cost time
  static constexpr size_t kMaxNameBytes = size_t{16} << 20;
  static constexpr size_t kMaxName = PerfMapFunction::kMaxName;
  static constexpr size_t kMostBytes = size_t{64} << 20;

  enum class Writer : uint8_t { kMayWrite, kGone };

  using Function = PerfMapFunction;
  using LineSource =
      absl::FunctionRef<Result<PerfMapEnd>(int, const PerfMapPart&, OnPerfMapFunction)>;

  // Takes no more memory than that. Names of code that was replaced are given up when there is no
  // more room for others; then functions are passed over.
  explicit PerfMap(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Reads what was appended since the last call, or the file from its beginning if `fd` is another
  // one now, was truncated, or was written anew. `fd` stays the caller's.
  // A last line without a newline may still be being written, its name incomplete. It counts once
  // the file has not grown since the last call or the writer is gone, until the file grows.
  // `read` is ReadPerfMapLines(), or has another process call it.
  // Errors: kInvalid if it is not a regular file; those of `read`.
  Result<void> Update(int fd, Writer writer = Writer::kMayWrite,
                      LineSource read = &ReadPerfMapLines);

  // The printable name of the function at `address`; where functions overlap, of the one announced
  // last. Valid until the next Update.
  std::optional<std::string_view> Find(Address address) const;

  // The last line, if it has no newline and counts.
  const std::optional<Function>& tail() const { return tail_; }

  // Whether there is more than the last Update() was to read.
  bool has_more() const { return has_more_; }

  // Of the functions passed over since the last call.
  ClearedCode TakeCleared() { return std::exchange(cleared_, {}); }

  bool empty() const { return ranges_.empty() && !tail_; }

  // The number of lines that do not have the form above.
  uint64_t bad_lines() const { return bad_lines_; }
  // The number of functions for which there was no room.
  uint64_t passed_over() const { return passed_over_; }

  // Approximate memory use, in bytes.
  size_t bytes() const;

 private:
  bool HasRoomFor(const Function& function);
  void Insert(const Function& function);
  void DropReplacedNames();
  void Forget();

  size_t most_bytes_;
  LatestRanges<PieceOfText> ranges_;  // in names_
  std::string names_;
  size_t come_ = 0;               // bytes of names since DropReplacedNames()
  std::optional<Function> tail_;  // takes precedence over ranges_
  ClearedCode cleared_;
  uint64_t bad_lines_ = 0;
  uint64_t passed_over_ = 0;
  bool has_more_ = false;
  uint64_t offset_ = 0;  // after the last newline
  uint64_t mark_ = 0;    // see PerfMapEnd
  uint64_t size_ = 0;    // of the file at the last Update
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pyrometer
