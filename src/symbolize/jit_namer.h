// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"
#include "symbolize/frame_namer.h"
#include "symbolize/jit_dumps.h"
#include "symbolize/location_cache.h"
#include "symbolize/perf_map.h"
#include "symbolize/perf_maps.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names user addresses that lie in no object by the jitdump of their process, which tells the line,
// too, and when which code was where; else by its perf map; or by those of who has forked it. Reads
// what was appended to them once per window. Not thread-safe.
class JitNamer : public FrameNamer {
 public:
  // The sources and `counts` must outlive this.
  struct Budgets {
    PerfMaps::Budget perf_maps = {};
    JitDumps::Budget dumps = {};
  };
  JitNamer(PerfMapSource& perf_maps, JitDumpSource& dumps, const Budgets& budgets,
           SymbolizerCounts& counts);

  bool IsPerProcess() const override { return true; }

  std::vector<FrameRange> BeginWindow(uint32_t window, MonotonicTime end) override;

  // Looks at its perf map. How much of each is read depends on how much there is to read of all.
  void Expect(ProcessKey process, uint32_t window) override;

  void At(MonotonicTime when) override { seen_ = when; }

  // Returns the same location as in earlier windows, unless the address has another name now.
  LocationRef Name(Frame frame, ProcessKey process, uint32_t window) override;

  void EndWindow(uint32_t unused_since) override;

  size_t bytes() const { return perf_maps_.bytes() + dumps_.bytes(); }

 private:
  struct Process {
    ProcessKey key;
    PerfMaps::Entry* perf_map = nullptr;  // see PerfMaps::Need()
    bool is_due = false;                  // until it is read in this window
    PerfMap::Writer writer = PerfMap::Writer::kMayWrite;
    std::vector<Process*> inherited;        // whose code it has, the nearest first; for this window
    std::vector<JitDumpSource::Use> dumps;  // likewise
    LocationCache<Address> locations;
    LocationCache<Address> unread;  // in a window in which the perf map is behind
  };
  // What is known of an address.
  struct Found {
    std::optional<std::string_view> name;
    std::string_view file{};  // "": the line is not known
    uint32_t line = 0;
    MonotonicTime since{};  // when it came to lie there; 0 if not known
    // It may be incomplete. It counts as made up, so that the whole one replaces it.
    bool may_grow = false;
    bool is_behind = false;  // it might be another, for all that was read
    bool has_any = false;    // there are names of other addresses
  };

  Process& LookAt(ProcessKey key, uint32_t window);
  void ReadPerfMap(Process& process);
  Found Find(Process& process, Address address);
  enum class Whose : uint8_t { kOwn, kInherited };
  bool FindInDumps(const Process& process, Whose whose, Address address, Found& found);
  bool FindInMap(Process& process, Address address, Found& found);
  static bool IsSame(const Found& found, const Location& known);
  LocationRef NameUnread(Process& process, Address address);
  LocationRef MakeNew(const Found& found, Address address);

  PerfMapSource& source_;
  JitDumpSource& dump_source_;
  SymbolizerCounts& counts_;
  PerfMaps perf_maps_;
  JitDumps dumps_;
  MonotonicTime seen_;  // the stack whose frames are named
  std::shared_ptr<const CodeObject> jit_;
  absl::node_hash_map<ProcessKey, Process> processes_;
};

}  // namespace pyrometer
