// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/file_identity.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/jit_dump_reader.h"

namespace pyrometer {

// The code that a JIT compiler announced in a jitdump, see jit_dump_reader.h, as it lay in memory
// at any moment still of interest. The profiled program writes the file, so it may contain
// anything, and any amount of it. Of more than may be kept the lines of the oldest functions are
// forgotten first, then these themselves. Not thread-safe.
class JitDump {
 public:
  struct Limits {
    size_t memory = size_t{32} << 20;       // for bytes() after an update
    uint64_t to_read = uint64_t{64} << 20;  // of files; code, which is passed over, does not count
  };

  // What is not known of all the files that there were.
  struct Losses {
    uint64_t bad_records = 0;      // that do not have the form, or not all of it
    uint64_t lines_left_out = 0;   // that are too many for one function, or make no sense
    uint64_t lines_forgotten = 0;  // functions without the lines that they had, for want of memory
    uint64_t forgotten = 0;        // functions, the oldest, for want of memory
    uint64_t past_forgotten = 0;   // places where code has been replaced, as there were too many
  };

  // Valid until the next call that changes anything.
  struct Found {
    std::string_view name;    // printable, not empty
    std::string_view file{};  // printable; "": its line is not known
    uint32_t line = 0;
    MonotonicTime since{};  // when it came to lie there; 0 if not known
  };

  // Reads what was appended since the last call, or the whole file if `fd` is another one now or
  // was truncated. `fd` stays the caller's, and limits.to_read becomes what is left. What is behind
  // a record that makes no sense is not read, however long the file becomes.
  // Errors: kInternal if it turns out to have been rewritten: the next update begins again;
  // kInvalid if it is not a regular file; kExhausted if there is more than may be read now,
  // which the next update goes on with; those of `reader`. After any of them what was found so far
  // is known.
  Result<void> Update(int fd, Limits& limits, JitDumpReader& reader);

  // How far the file has grown since an update has ended. 0 if nothing of it would be believed.
  // Errors: kInvalid if it is not a regular file.
  Result<uint64_t> Unread(int fd) const;

  // True if an update would find nothing new.
  bool HasAll(int fd) const;

  // The code that lay at `address` at `at`: what was loaded or moved there last, not after that; if
  // the file does not tell the times, simply the last one. None if that has no name, or is not
  // known to have been there. Costs O(log n) where code is replaced by other code at the same
  // address, and at worst 32 such steps.
  std::optional<Found> Find(Address address, MonotonicTime at) const;

  // Forgets what nobody asks for who asks for `horizon` or later.
  void ForgetBefore(MonotonicTime horizon);

  // Forgets lines of the oldest functions, then these, until the rest takes a quarter less than
  // that, or about.
  void ShrinkBelow(size_t memory);

  bool empty() const { return places_.empty() && past_.empty(); }
  size_t functions() const { return functions_.size(); }

  const Losses& losses() const { return losses_; }

  // Memory use.
  size_t bytes() const;

 private:
  // Numbered in the order in which they were loaded. Lives while places refer to it.
  struct Function {
    std::string texts{};           // its name, and those of its files, each ending in a NUL
    std::vector<JitLine> lines{};  // whose `file` is a place in `texts`
    uint64_t size = 0;             // of its code
    uint32_t places = 0;

    size_t bytes() const;
    size_t line_bytes() const;
  };
  using FunctionNumber = uint64_t;

  // A part of memory with code of one function.
  struct Place {
    uint64_t end = 0;
    uint64_t origin = 0;  // where the function's code begins, or began before something cut it
    FunctionNumber function = 0;
    MonotonicTime since{};
  };
  // Whose code has been replaced.
  struct PastPlace {
    uint64_t start = 0;
    Place place{};
    MonotonicTime until{};
  };
  // Of a btree_map, whose nodes are filled to two thirds when it grows in any order.
  static constexpr size_t kPlaceBytes = sizeof(std::pair<const uint64_t, Place>) * 7 / 4;
  static constexpr size_t kFunctionBytes = sizeof(std::pair<const uint64_t, Function>) * 7 / 4;

  struct Reading {
    bool goes_on = false;  // where the last one ended
    uint64_t size = 0;
    Inode inode{};
  };
  Result<Reading> Look(int fd) const;
  void BeginAgain(const Inode& inode);
  void Take(const JitDumpRecords& records);
  void Load(const JitDumpRecords::Record& record);
  void Move(const JitDumpRecords::Record& record);

  FunctionNumber Keep(const JitDumpRecords::Record& record);
  void Put(uint64_t start, const Place& place);
  // What lies in [start, end) is replaced at `when`.
  void Clear(uint64_t start, uint64_t end, MonotonicTime when);
  void Retire(uint64_t start, const Place& place, MonotonicTime until);
  void Release(FunctionNumber number);
  void SortPast();

  const Place* PresentAt(Address address, MonotonicTime at) const;
  const Place* PastAt(Address address, MonotonicTime at) const;
  std::optional<Found> Describe(const Place& place, Address address) const;

  void ForgetPastBeyond(size_t bytes);
  void ForgetLinesBeyond(size_t memory);
  void ForgetFunctionsBeyond(size_t memory);

  absl::btree_map<FunctionNumber, Function> functions_;
  FunctionNumber next_function_ = 0;
  size_t function_bytes_ = 0;                // of all, but kFunctionBytes
  absl::btree_map<uint64_t, Place> places_;  // by start, not overlapping
  // By start, then by end of their time; those of one start do not overlap in time.
  std::vector<PastPlace> past_;
  std::vector<uint64_t> past_reach_;  // the largest end among as many of them
  MonotonicTime horizon_;
  Losses losses_;
  std::optional<Error> broken_;  // why nothing further of the file is read
  uint64_t offset_ = 0;          // behind the last record
  uint64_t size_ = 0;            // of the file at the last update that went well
  Inode inode_;
  uint64_t made_ = 0;             // see JitDumpRecords
  bool has_begun_again_ = false;  // since an update went well
};

}  // namespace pyrometer
