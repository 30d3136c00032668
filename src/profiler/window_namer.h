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
#include "profiler/remembered_frames.h"
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
    std::shared_ptr<Indexer> indexer;  // reads perf maps and jitdumps
    const Clock& clock;
    bool name_again = false;  // the last window has NamedWindow::renamed
  };

  // What `parts` refers to must outlive this. `kernel` is empty if the kernel hides its symbols.
  WindowNamer(const Parts& parts, KernelSymbols kernel, const Symbolizer::Options& options)
      : name_again_(parts.name_again),
        sources_({.store = parts.store,
                  .symbols = parts.symbols,
                  .debug_info = parts.debug_info,
                  .indexer = parts.indexer,
                  .clock = parts.clock}),
        symbolizer_({sources_, sources_, sources_}, std::move(kernel), options),
        remembered_(parts.debug_info != nullptr) {}

  // REQUIRES: called on one thread, with windows in the order in which they were taken.
  // `is_last`: no other follows.
  std::shared_ptr<const NamedWindow> Name(ResolvedWindow resolved, bool is_last = false);

  // For a window that nobody wants named: keeps only what it tells of the kernel's code. Like
  // Name().
  void Skip(const ResolvedWindow& resolved);

  // From `when` on no more files are read; unknown names are then made up. Any thread.
  void GiveUpAt(MonotonicTime when) { sources_.GiveUpAt(when); }

  // As of the last window named. Any thread.
  SymbolizerCounts counts() const;
  size_t without_debug_info() const;  // objects in use, where it is still being read

 private:
  const bool name_again_;
  WindowSources sources_;
  Symbolizer symbolizer_;
  RememberedFrames remembered_;  // none, unless they are to be named again
  mutable absl::Mutex mutex_;
  SymbolizerCounts counts_ ABSL_GUARDED_BY(mutex_);
  size_t without_debug_info_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pyrometer
