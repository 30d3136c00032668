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
#include "symbolize/kernel_namer.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/location_cache.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/symbol_table_cache.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Gives every frame of a window a location with a name, and remembers them: an equal frame has the
// same LocationRef in every window, as long as it is in use and its name does not change. Who names
// a frame depends on its kind; those that are known here give
// - the function of a symbol, demangled, or of a perf map;
// - "libfoo.so+0x1234" where the object has no symbol, "[kernel]+0xffffffff81000000" likewise;
// - "[unknown]" where not even the object is known.
// Owned by one thread: the one that drains windows.
class Symbolizer {
 public:
  struct Options {
    SymbolTableCache::Budget symbol_tables = {};
    size_t perf_map_bytes = size_t{16} << 20;  // kept from window to window
    // Locations and failures to read symbols are forgotten when not used for so many windows.
    uint32_t keep_windows = 60;
    // Where the kernel's symbols are read again when modules have come or gone; nothing: never.
    std::optional<Procfs> kernel = std::nullopt;
  };

  // The sources outlive this. `kernel` may be empty, if the kernel hides its symbols. BPF programs
  // come and go by Apply(), modules are seen in Options::kernel.
  Symbolizer(ObjectSource& objects, PerfMapSource& perf_maps, KernelSymbols kernel,
             Options options);
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Frames of `kind` are named by `namer`, others of no known kind are "[unknown]".
  // REQUIRES: before the first window.
  void Register(Frame::Kind kind, std::unique_ptr<FrameNamer> namer);

  // Each distinct frame that is new is symbolized once; one that means something in its process
  // only for the process whose stack it is (Stack::process). REQUIRES: the window is resolved.
  NamedWindow Name(Window window);

  // Kernel code came or went before the end of the next window. REQUIRES: in the order of time.
  void Apply(const KernelSymbolEvent& event);

  const SymbolizerCounts& counts() const { return counts_; }

 private:
  static constexpr size_t kKinds = size_t{1} << (64 - PYRO_FRAME_KIND_SHIFT);

  void ForgetChangedNames();
  void NameNewFrames(const std::vector<Frame>& frames);
  void NameFramesOf(ProcessKey process, const Stack& stack, NamedWindow& named);
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
