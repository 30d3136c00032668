// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/procfs.h"
#include "pyrometer/frame.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/profile.h"
#include "pyrometer/sample.h"
#include "symbolize/frame_namer.h"
#include "symbolize/jit_dumps.h"
#include "symbolize/kernel_namer.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/location_cache.h"
#include "symbolize/object_namer.h"
#include "symbolize/perf_maps.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table_cache.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Gives every frame of a window a location with a name, and remembers the locations: an equal frame
// has the same LocationRef in every window, as long as it is in use and its name does not change. A
// frame is named by the namer for its kind. The built-in namers give
// - the function of a symbol, demangled, or of a perf map;
// - "libfoo.so+0x1234" where the object has no symbol, likewise "[kernel]+0xffffffff81000000";
// - "[unknown]" where not even the object is known.
// Owned by one thread: the one that names windows.
class Symbolizer {
 public:
  struct Options {
    SymbolTableCache::Budget symbol_tables = {};
    PerfMaps::Budget perf_maps = {};
    JitDumps::Budget jit_dumps = {};
    // Locations and failures to read symbols are forgotten when unused for this many windows.
    uint32_t keep_windows = 60;
    // Where to read the kernel's symbols again when modules have come or gone; nothing: never.
    std::optional<Procfs> kernel = std::nullopt;
    ObjectNamer::Options naming = {};
  };

  // The sources must outlive this. `kernel` is empty if the kernel hides its symbols. Apply()
  // reports BPF programs that come and go; modules are seen in Options::kernel.
  struct Sources {
    ObjectSource& objects;
    PerfMapSource& perf_maps;
    JitDumpSource& jit_dumps;
  };
  Symbolizer(const Sources& sources, KernelSymbols kernel, Options options);
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Has `namer` name frames of `kind`. Frames of kinds without a namer are "[unknown]".
  // REQUIRES: before the first window.
  void Register(Frame::Kind kind, std::unique_ptr<FrameNamer> namer);

  // Symbolizes each distinct new frame once; a frame whose meaning depends on its process, once for
  // the process that owns its stack (Stack::process). REQUIRES: the window is resolved.
  NamedWindow Name(Window window);

  // Reports kernel code that came or went before the end of the next window. REQUIRES: events in
  // order of time.
  void Apply(const KernelSymbolEvent& event);

  const SymbolizerCounts& counts() const { return counts_; }

 private:
  static constexpr size_t kKinds = size_t{1} << (64 - PYRO_FRAME_KIND_SHIFT);

  void ForgetChangedNames(MonotonicTime end);
  void NameNewFrames(NamedWindow& named);
  void ExpectFramesOf(ProcessKey process, const Stack& stack, const std::vector<Frame>& frames);
  void NameFramesOf(ProcessKey process, const Stack& stack, MonotonicTime seen, NamedWindow& named);
  FrameNamer& NamerOf(Frame frame) { return *namers_[static_cast<size_t>(frame.kind())]; }
  void EndWindow();

  Options options_;
  SymbolizerCounts counts_;
  std::array<std::unique_ptr<FrameNamer>, kKinds> namers_;  // by kind; none is null
  KernelNamer* kernel_;                                     // one of them
  LocationCache<Frame> locations_;
  uint32_t window_ = 0;
};

}  // namespace pyrometer
