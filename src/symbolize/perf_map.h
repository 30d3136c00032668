// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/btree_map.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The functions that a JIT compiler announced in /tmp/perf-PID.map: lines of "START SIZE name",
// with hexadecimal numbers, appended as code is generated (Linux,
// tools/perf/Documentation/jit-interface.txt). The profiled program writes the file, so it may
// contain anything. Not thread-safe.
class PerfMap {
 public:
  static constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;
  static constexpr uint64_t kMaxLines = uint64_t{1} << 20;  // including bad ones, which cost time
  static constexpr size_t kMaxNameBytes = size_t{64} << 20;
  static constexpr size_t kMaxName = 1024;

  enum class Writer : uint8_t { kMayWrite, kGone };

  // A line of the file: the code in [start, end).
  struct Function {
    uint64_t start = 0;
    uint64_t end = 0;
    std::string name;

    bool Contains(Address a) const { return a.value() >= start && a.value() < end; }
  };

  // Reads what was appended since the last call, or the whole file if `fd` is another one now or
  // was truncated. Ignores what exceeds the limits above. `fd` stays the caller's.
  // A last line without a newline may still be being written, its name incomplete. It counts once
  // the file has not grown since the last call or the writer is gone, until the file grows.
  // Errors: kInvalid if it is not a regular file; kIo.
  Result<void> Update(int fd, Writer writer = Writer::kMayWrite);

  // The printable name of the function at `address`; where functions overlap, of the one announced
  // last. Valid until the next Update.
  std::optional<std::string_view> Find(Address address) const;

  // The last line, if it has no newline and counts.
  const std::optional<Function>& tail() const { return tail_; }

  bool empty() const { return ranges_.empty() && !tail_; }

  // The number of lines that do not have the form above.
  uint64_t bad_lines() const { return bad_lines_; }

  // Approximate memory use, in bytes.
  size_t bytes() const;

 private:
  struct Range {
    uint64_t end = 0;
    uint32_t name = 0;  // in names_
    uint32_t name_size = 0;
  };

  void AddLine(std::string_view line);
  void Insert(const Function& function);

  absl::btree_map<uint64_t, Range> ranges_;  // by start, not overlapping
  std::string names_;
  std::optional<Function> tail_;  // takes precedence over ranges_
  uint64_t lines_ = 0;
  uint64_t bad_lines_ = 0;
  uint64_t offset_ = 0;  // after the last newline
  uint64_t size_ = 0;    // of the file at the last Update
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pyrometer
