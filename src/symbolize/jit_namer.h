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
#include "symbolize/perf_maps.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names user addresses that lie in no object by the perf map of their process. Reads what was
// appended to it once per window. Not thread-safe.
class JitNamer : public FrameNamer {
 public:
  // `source` and `counts` must outlive this.
  JitNamer(PerfMapSource& source, const PerfMaps::Budget& budget, SymbolizerCounts& counts);

  bool IsPerProcess() const override { return true; }

  // Looks at its perf map. How much of each is read depends on how much there is to read of all.
  void Expect(ProcessKey process, uint32_t window) override;

  // Returns the same location as in earlier windows, unless the address has another name now.
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;

  void EndWindow(uint32_t unused_since) override;

  size_t bytes() const { return perf_maps_.bytes(); }  // of all perf maps

 private:
  struct Process {
    PerfMaps::Entry* perf_map = nullptr;  // see PerfMaps::Need()
    bool is_due = false;                  // until it is read in this window
    PerfMap::Writer writer = PerfMap::Writer::kMayWrite;
    LocationCache<Address> locations;
    LocationCache<Address> unread;  // in a window in which the perf map is behind
  };

  void ReadPerfMap(ProcessKey key, Process& process);
  Process& LookAt(ProcessKey key, uint32_t window);
  LocationRef NameUnread(Process& process, Address address);
  // True if the name may be incomplete. It counts as made up, so that the whole one replaces it.
  static bool MayGrow(const Process& process, Address address);
  LocationRef MakeNew(const Process& process, Address address);

  PerfMapSource& source_;
  SymbolizerCounts& counts_;
  PerfMaps perf_maps_;
  std::shared_ptr<const CodeObject> jit_;
  absl::flat_hash_map<ProcessKey, Process> processes_;
};

}  // namespace pyrometer
