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
  // Perf maps beyond `budget_bytes` are dropped after a window, the least recently used first, and
  // read again when needed. `source` and `counts` must outlive this.
  JitNamer(PerfMapSource& source, size_t budget_bytes, SymbolizerCounts& counts);

  bool IsPerProcess() const override { return true; }

  // Returns the same location as in earlier windows, unless the address has another name now.
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;

  void EndWindow(uint32_t unused_since) override;

 private:
  struct Process {
    PerfMap perf_map;
    PerfMap::Writer writer = PerfMap::Writer::kMayWrite;
    uint32_t window = 0;  // when the perf map was last read
    LocationCache<Address> locations;
  };

  void ReadPerfMap(ProcessKey key, Process& process);
  // True if the name may be incomplete. It counts as made up, so that the whole one replaces it.
  static bool MayGrow(const Process& process, Address address);
  LocationRef MakeNew(const Process& process, Address address);

  PerfMapSource& source_;
  size_t budget_;
  SymbolizerCounts& counts_;
  std::shared_ptr<const CodeObject> jit_;
  absl::flat_hash_map<ProcessKey, Process> processes_;
};

}  // namespace pyrometer
