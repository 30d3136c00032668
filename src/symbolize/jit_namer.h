// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/jit_dump.h"
#include "symbolize/location_cache.h"
#include "symbolize/perf_map.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names user addresses that lie in no object by the jitdump of their process, or else its perf map.
// Reads what was appended to them once per window. Not thread-safe.
class JitNamer : public FrameNamer {
 public:
  // What is beyond is dropped after a window, the least recently used first, and read again when
  // needed. Three quarters of it are at most one process's at any time.
  struct Budget {
    size_t perf_map_bytes = 0;
    size_t jit_dump_bytes = 0;
  };

  // `source` and `counts` must outlive this.
  JitNamer(JitSource& source, const Budget& budget, SymbolizerCounts& counts);

  bool IsPerProcess() const override { return true; }

  // Returns the same location as in earlier windows, unless the address has another name now.
  LocationRef Name(Frame frame, const FrameOwner& owner, uint32_t window) override;

  void EndWindow(uint32_t unused_since) override;

 private:
  struct Process {
    explicit Process(const Budget& budget);

    PerfMap perf_map;
    JitDump jit_dump;
    bool jit_dump_is_refused = false;  // the last attempt failed
    PerfMap::Writer writer = PerfMap::Writer::kMayWrite;
    uint32_t window = 0;  // when the files were last read
    LocationCache<Address> locations;
  };
  struct Found {
    JitDump::Place place;
    bool may_grow = false;  // the name may be incomplete
  };

  void ReadPerfMap(ProcessKey key, Process& process);
  void ReadJitDump(ProcessKey key, Process& process);
  // Names that were found there before.
  static void DropCleared(const ClearedCode& cleared, Process& process);
  static std::optional<Found> Find(const Process& process, Address address, MonotonicTime when);
  // A name that may grow counts as made up, so that the whole one replaces it.
  LocationRef MakeNew(const Process& process, Address address, const std::optional<Found>& found);
  void DropOverBudget();

  JitSource& source_;
  const Budget budget_;
  SymbolizerCounts& counts_;
  std::shared_ptr<const CodeObject> jit_;
  absl::flat_hash_map<ProcessKey, Process> processes_;
};

}  // namespace pyrometer
