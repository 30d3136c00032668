// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/file_identity.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/perf_map_reader.h"

namespace pyrometer {

// The functions that a JIT compiler announced in /tmp/perf-PID.map, see perf_map_reader.h. The
// profiled program writes the file, so it may contain anything, and any amount of it. What is
// newest in the file is true: of more than may be kept the oldest is forgotten, or not read. Not
// thread-safe.
class PerfMap {
 public:
  enum class Writer : uint8_t { kMayWrite, kGone };

  struct Limits {
    size_t memory = size_t{32} << 20;       // for bytes() after an update; twice that during it
    uint64_t to_read = uint64_t{64} << 20;  // of files
    bool again = false;                     // read the file again if something of it is missing
  };

  // What is not known of all the files that there were.
  struct Losses {
    uint64_t bad_lines = 0;  // that do not have the form above
    uint64_t forgotten = 0;  // functions, the oldest, for want of memory
    uint64_t left_out = 0;   // bytes that were not read, as more was to be read than may be kept
  };

  // Reads what was appended since the last call, or the whole file if `fd` is another one now or
  // was truncated; but of more than twice the memory that may be kept only the end, as the rest
  // would be forgotten at once. `fd` stays the caller's, and limits.to_read becomes what is left.
  // A last line without a newline may still be being written, its name incomplete. It counts once
  // the file has not grown since the last call or the writer is gone, until the file grows.
  // Errors: kInvalid if it is not a regular file; kExhausted if that is more than may be read now;
  // those of `reader`. After the latter two what is known may be outdated, until an update goes
  // well, which goes on where this one has ended.
  Result<void> Update(int fd, Writer writer, Limits& limits, PerfMapReader& reader);

  // How much an update would read of the file, without limits. Errors: as of Update().
  Result<uint64_t> Unread(int fd, bool again) const;

  // True if an update would find nothing new.
  bool HasAll(int fd) const;

  // The printable name of the function at `address`; where functions overlap, of the one announced
  // last. Valid until the next Update.
  std::optional<std::string_view> Find(Address address) const;

  // The last line, if it has no newline and counts.
  const std::optional<PerfMapFunction>& tail() const { return tail_; }

  bool empty() const { return ranges_.empty() && !tail_; }

  const Losses& losses() const { return losses_; }

  // Forgets the oldest functions, until the others take a quarter less than that, or about.
  void ShrinkBelow(size_t memory);

  // The memory for which something was forgotten or not read that may hold still, and no later line
  // says otherwise; 0: nothing was.
  size_t missing_at() const { return missing_at_; }

  // Memory use.
  size_t bytes() const;

 private:
  // Names are kept in the order of their announcement, in chunks, so that the oldest can go and
  // nothing is copied when more come. A place is (number of the chunk) * kChunk + (offset in it);
  // none is used twice, but by the parts of a function that a later one has cut in two.
  static constexpr uint32_t kChunk = 4096;
  static constexpr uint32_t kLeastChunk = 256;
  struct Range {
    uint64_t end = 0;
    uint64_t name = 0;  // its place
    uint32_t name_size = 0;
  };
  // Of a btree_map, whose nodes are filled to two thirds when it grows in any order.
  static constexpr size_t kRangeBytes = sizeof(std::pair<const uint64_t, Range>) * 7 / 4;

  struct Reading {
    bool is_same = false;  // file as before, not truncated
    bool goes_on = false;  // where the last one ended
    uint64_t size = 0;
    uint64_t unread = 0;
    Inode inode;
  };
  Result<Reading> Look(int fd, bool again) const;
  void BeginAt(uint64_t offset, const Inode& inode);
  void Insert(const PerfMapLines::Function& function);
  uint64_t Keep(std::string_view name);
  std::string_view NameOf(const Range& range) const;

  absl::btree_map<uint64_t, Range> ranges_;  // by start, not overlapping
  std::vector<std::string> chunks_;
  uint64_t first_chunk_ = 0;             // the number of the first of them
  std::optional<PerfMapFunction> tail_;  // takes precedence over ranges_
  Losses losses_;
  size_t missing_at_ = 0;
  uint64_t offset_ = 0;  // after the last newline; or anywhere in a line, if that
  bool is_cut_ = false;
  uint64_t size_ = 0;  // of the file at the last Update that went well
  Inode inode_;
};

}  // namespace pyrometer
