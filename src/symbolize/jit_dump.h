// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/cleared_code.h"
#include "symbolize/jit_dump_records.h"
#include "symbolize/latest_ranges.h"

namespace pyrometer {

// The functions and source lines that a JIT compiler announced in a jitdump, see
// ReadJitDumpRecords(). The profiled program writes the file, so it may contain anything. Not
// thread-safe.
class JitDump {
 public:
  // What one Update() reads; the next goes on.
  static constexpr uint64_t kMostRecords = uint64_t{1} << 18;
  static constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  // How long code that has been replaced is remembered: for samples taken before.
  static constexpr std::chrono::nanoseconds kKeepReplaced = std::chrono::minutes(1);

  using Source = absl::FunctionRef<Result<JitDumpEnd>(int, const JitDumpPart&, OnJitCode)>;

  struct Place {
    std::string_view function;  // printable
    std::string_view file;      // printable; empty: not known
    uint32_t line = 0;          // 0: not known
  };

  // Code beyond `most_bytes` is passed over, and its lines beyond half of them.
  explicit JitDump(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Reads what was appended since the last call, or all if `fd` is another file now, or was begun
  // anew. `fd` stays the caller's. `has_stopped`: nobody will write to it any more. `read` is
  // ReadJitDumpRecords(), or has another process call it. Errors: kInvalid if it is not a regular
  // file; those of `read`. What came before one is good.
  Result<void> Update(int fd, bool has_stopped, MonotonicTime now,
                      Source read = &ReadJitDumpRecords);

  // What was at `address` then: the last code that had come by then, or else the first that came
  // later, as some compilers announce code when it runs already. Nothing if that is not known.
  // Valid until the next Update.
  std::optional<Place> Find(Address address, MonotonicTime when) const;

  // Whether there is more than the last Update() was to read, and room for it.
  bool has_more() const { return has_more_ && bytes() < most_bytes_; }

  bool empty() const { return ranges_.empty() && past_.empty(); }

  // Of code passed over since the last call.
  ClearedCode TakeCleared() { return std::exchange(cleared_, {}); }

  // Records that make no sense, and pieces of code and their lines for which there was no room.
  uint64_t bad_records() const { return bad_records_; }
  uint64_t passed_over() const { return passed_over_; }

  // Approximate memory use, in bytes.
  size_t bytes() const {
    return ranges_.bytes() + past_.size() * sizeof(Pasts::value_type) + *function_bytes_;
  }

 private:
  static constexpr uint32_t kFileBits = 8;
  static_assert(JitCode::kMostFiles < (1U << kFileBits));
  static constexpr size_t kMostPast = size_t{1} << 16;

  struct Line {
    uint32_t offset = 0;
    uint32_t place = 0;  // the number of the line, and below it kFileBits for the file
  };
  struct Function {
    std::string name;
    std::vector<std::string> files;
    std::vector<Line> lines;
  };
  using FunctionRef = std::shared_ptr<const Function>;
  // Code of a function that lies, or lay, somewhere.
  struct Code {
    FunctionRef function;
    Address start;  // what `lines` are relative to
    MonotonicTime since;
  };
  // Code that has been replaced in [start, end) since, and when.
  struct Past {
    Address end;
    Code code;
  };
  using Pasts = absl::btree_map<std::pair<uint64_t, MonotonicTime>, Past>;

  void Forget();
  void ForgetPast(MonotonicTime horizon);
  void Add(const JitCode& code);
  // The code at `address` that was replaced first after that moment; null: none.
  const Code* FindPast(Address address, MonotonicTime when) const;
  FunctionRef FunctionMoved(const JitCode& move) const;
  FunctionRef MakeFunction(const JitCode& code);
  Place PlaceIn(const Code& code, Address address) const;

  size_t most_bytes_;
  LatestRanges<Code> ranges_;
  Pasts past_;  // by start, and when it was replaced
  ClearedCode cleared_;
  // Of all functions that somebody holds.
  std::shared_ptr<size_t> function_bytes_ = std::make_shared<size_t>(0);
  // Every function's first line lies kElfHeader or more behind its beginning, or has none: all are
  // that much too high.
  bool lines_are_shifted_ = true;
  MonotonicTime now_;  // of this Update
  uint64_t bad_records_ = 0;
  uint64_t passed_over_ = 0;
  uint64_t offset_ = 0;   // 0: the header has not been read
  uint64_t created_ = 0;  // see JitDumpEnd
  bool is_broken_ = false;
  bool has_more_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pyrometer
