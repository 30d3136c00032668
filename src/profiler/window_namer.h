// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "indexer/artifact_store.h"
#include "process/resolved_window.h"
#include "profiler/object_symbols.h"
#include "profiler/window_sources.h"
#include "pyrometer/ids.h"
#include "pyrometer/profile.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/symbolizer.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// Names windows from what they carry, without asking other threads. It runs on a thread of its own
// because reading symbol tables can take a second for a large program on a busy machine.
class WindowNamer {
 public:
  struct Parts {
    ArtifactStore& store;
    ObjectSymbols& symbols;
    ObjectSymbols* debug_info;         // null: it is not wanted
    std::shared_ptr<Indexer> indexer;  // reads perf maps
    const Clock& clock;
  };

  // What `parts` refers to must outlive this. `kernel` is empty if the kernel hides its symbols.
  WindowNamer(const Parts& parts, KernelSymbols kernel, const Symbolizer::Options& options)
      : sources_({.store = parts.store,
                  .symbols = parts.symbols,
                  .debug_info = parts.debug_info,
                  .indexer = parts.indexer,
                  .clock = parts.clock}),
        symbolizer_(sources_, sources_, std::move(kernel), options) {}

  // REQUIRES: called on one thread, with windows in the order in which they were taken.
  std::shared_ptr<const NamedWindow> Name(ResolvedWindow resolved);

  // For a window that nobody wants named: keeps only what it tells of the kernel's code. Like
  // Name().
  void Skip(const ResolvedWindow& resolved);

  // From `when` on no more files are read; unknown names are then made up. Any thread.
  void GiveUpAt(MonotonicTime when) { sources_.GiveUpAt(when); }

  // As of the last window named. Any thread.
  SymbolizerCounts counts() const;
  size_t without_debug_info() const;  // objects in use, where it is still being read

 private:
  WindowSources sources_;
  Symbolizer symbolizer_;
  mutable absl::Mutex mutex_;
  SymbolizerCounts counts_ ABSL_GUARDED_BY(mutex_);
  size_t without_debug_info_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
