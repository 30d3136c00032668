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

// The functions that a JIT compiler announced in /tmp/perf-PID.map: lines of "START SIZE name", in
// hexadecimal, appended as code is made (Linux, tools/perf/Documentation/jit-interface.txt). The
// file is the profiled program's and may hold anything. Not thread-safe.
class PerfMap {
 public:
  static constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;
  static constexpr uint64_t kMaxLines = uint64_t{1} << 20;  // also of bad ones, which cost time
  static constexpr size_t kMaxNameBytes = size_t{64} << 20;
  static constexpr size_t kMaxName = 1024;

  // Reads what was appended since the last call, or all of it if `fd` is another file now or was
  // cut. What goes beyond the limits above is ignored. `fd` stays the caller's.
  // Errors: kInvalid if it is not a regular file; kIo.
  Result<void> Update(int fd);

  // The function at `address`, printable; of overlapping ones the one announced last. The name
  // lives until the next Update.
  std::optional<std::string_view> Find(Address address) const;

  bool empty() const { return ranges_.empty(); }

  // Lines that were not of the form above.
  uint64_t bad_lines() const { return bad_lines_; }

  // Memory taken, in bytes, about.
  size_t bytes() const;

 private:
  struct Range {
    uint64_t end = 0;
    uint32_t name = 0;  // in names_
    uint32_t name_size = 0;
  };

  void AddLine(std::string_view line);
  void Insert(uint64_t start, uint64_t end, std::string_view name);

  absl::btree_map<uint64_t, Range> ranges_;  // by start, not overlapping
  std::string names_;
  uint64_t lines_ = 0;
  uint64_t bad_lines_ = 0;
  uint64_t offset_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pyrometer
