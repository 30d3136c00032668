// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/node_hash_map.h"
#include "pyrometer/ids.h"
#include "symbolize/jit_dump.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// The jitdumps of processes, which share one budget of memory at any time, and one of bytes that
// are read for a window. What was not needed for some windows goes first; then all have equal
// parts at least. Each is read on once in a window, when it is first needed. Not thread-safe.
class JitDumps {
 public:
  struct Budget {
    size_t bytes = size_t{16} << 20;        // of all; of one a quarter
    uint64_t to_read = uint64_t{64} << 20;  // of their files, for one window
  };
  struct Answer {
    std::optional<JitDump::Found> found{};  // valid until the next call
    bool is_behind = false;                 // the file has more, which could not be read yet
  };

  // `source` and `counts` must outlive this.
  JitDumps(JitDumpSource& source, const Budget& budget, SymbolizerCounts& counts);

  // The next one, which ends at `end`. Some of its samples may be of the one before.
  void BeginWindow(uint32_t window, MonotonicTime end);

  // The code that the jitdump tells to have been at `address` when a stack was `seen`; or at the
  // end of the use, if that was before. If it had told of none by then, what it has told of by the
  // end of the window: some compilers announce code when it runs already.
  Answer Find(const JitDumpSource::Use& use, Address address, MonotonicTime seen);

  // Drops those that were not needed in `unused_since` or later.
  void EndWindow(uint32_t unused_since);

  size_t bytes() const { return bytes_; }  // of all

 private:
  struct Entry {
    JitDump dump;
    uint32_t window = 0;     // when it was last needed
    MonotonicTime earliest;  // for which something was asked in that window
    bool is_behind = false;
  };

  void Update(JitDumpSource::File file, Entry& entry);
  // What `entry` may have.
  size_t MakeRoomFor(Entry& entry);
  void Resized(size_t before, const Entry& entry);
  void Evict(Entry& entry);
  void CountLosses(const JitDump::Losses& before, const JitDump::Losses& after);

  JitDumpSource& source_;
  const Budget budget_;
  SymbolizerCounts& counts_;
  absl::node_hash_map<JitDumpSource::File, Entry> entries_;
  size_t bytes_ = 0;
  uint32_t window_ = 0;
  MonotonicTime end_;             // of this window
  MonotonicTime end_of_last_;     // of the one before
  MonotonicTime end_of_earlier_;  // and of the one before that
  uint64_t to_read_;              // for this window
};

}  // namespace pyrometer
