// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pyrometer/frame.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/profile.h"
#include "pyrometer/sample.h"
#include "symbolize/jit_namer.h"
#include "symbolize/kernel_namer.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/location_cache.h"
#include "symbolize/object_namer.h"
#include "symbolize/symbol_sources.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Gives every frame of a window a location with a name, and remembers them: an equal frame has the
// same LocationRef in every window, as long as it is in use. The name is
// - the function of a symbol, demangled, or of a perf map;
// - "libfoo.so+0x1234" where the object has no symbol, "[kernel]+0xffffffff81000000" likewise;
// - "[unknown]" where not even the object is known.
// Owned by one thread: the one that drains windows.
class Symbolizer {
 public:
  struct Options {
    size_t symbol_table_bytes = size_t{24} << 20;  // kept from window to window
    size_t perf_map_bytes = size_t{16} << 20;      // likewise
    // Locations and failures to read symbols are forgotten when not used for so many windows.
    uint32_t keep_windows = 60;
  };

  // The sources outlive this. `kernel` may be empty, if the kernel hides its symbols.
  Symbolizer(ObjectSource& objects, PerfMapSource& perf_maps, KernelSymbols kernel,
             Options options);
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Each distinct frame that is new is symbolized once; user addresses for the process whose stack
  // it is (Stack::process). REQUIRES: the window is resolved.
  NamedWindow Name(Window window);

  // Kernel code came or went before the end of the next window. REQUIRES: in the order of time.
  void Apply(const KernelSymbolEvent& event);

  const SymbolizerCounts& counts() const { return counts_; }

 private:
  void ForgetReplacedKernelCode();
  void NameNewFrames(const std::vector<Frame>& frames);
  LocationRef NameFrame(Frame frame);
  void NameUserAddresses(NamedWindow& named, const Stack& stack, ProcessKey process);
  void EndWindow();

  Options options_;
  SymbolizerCounts counts_;
  ObjectNamer objects_;
  KernelNamer kernel_;
  JitNamer jit_;
  LocationCache<Frame> locations_;
  std::vector<std::pair<uint64_t, uint64_t>> replaced_;  // kernel address ranges with new code
  uint32_t window_ = 0;
};

}  // namespace pyrometer
