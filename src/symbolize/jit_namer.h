// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/location_cache.h"
#include "symbolize/perf_map.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names user addresses that lie in no object by the perf map of their process. Reads what was
// appended to it once per window. Not thread-safe.
class JitNamer : public FrameNamer {
 public:
  struct Budget {
    size_t bytes = size_t{16} << 20;        // of all perf maps; of one a quarter
    uint64_t to_read = uint64_t{64} << 20;  // of their files, for one window
  };

  // `source` and `counts` must outlive this.
  JitNamer(PerfMapSource& source, const Budget& budget, SymbolizerCounts& counts);

  bool IsPerProcess() const override { return true; }

  // Returns the same location as in earlier windows, unless the address has another name now.
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;

  void EndWindow(uint32_t unused_since) override;

  size_t bytes() const { return bytes_; }  // of all perf maps

 private:
  struct Process {
    PerfMap perf_map;
    PerfMap::Writer writer = PerfMap::Writer::kMayWrite;
    uint32_t window = 0;  // when the perf map was last read
    size_t demand = 0;    // what it would take if it might, as far as is known
    LocationCache<Address> locations;
    // It could not be read on in this window: what is known may be outdated.
    bool is_behind = false;
    LocationCache<Address> unread;  // locations then
  };

  void ReadPerfMap(ProcessKey key, Process& process);
  void UpdatePerfMap(int fd, Process& process);
  // What a process may have, so that those that were needed of late have what they demand, and
  // where that is too much all that demand more the same.
  size_t FairLevel() const;
  // So that the perf map of `process` may take `needed`, or what it may have: takes from those
  // that were not needed of late, then from those that have more than they may.
  void MakeRoomFor(const Process& process, size_t needed);
  void Shrink(Process& process, size_t bytes);
  void Evict(Process& process);
  LocationRef NameUnread(Process& process, Address address);
  // True if the name may be incomplete. It counts as made up, so that the whole one replaces it.
  static bool MayGrow(const Process& process, Address address);
  LocationRef MakeNew(const Process& process, Address address);

  PerfMapSource& source_;
  const Budget budget_;
  SymbolizerCounts& counts_;
  std::shared_ptr<const CodeObject> jit_;
  absl::flat_hash_map<ProcessKey, Process> processes_;
  size_t bytes_ = 0;
  size_t level_;           // see FairLevel()
  uint32_t window_ = 0;    // the latest
  uint64_t to_read_;       // for this window
  uint64_t reserved_ = 0;  // of that, for those that were behind in the last one
  uint64_t refused_ = 0;   // what was to be read and was not
};

}  // namespace pyrometer
