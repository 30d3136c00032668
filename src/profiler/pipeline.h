// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/procfs.h"
#include "indexer/in_process_indexer.h"
#include "process/process_tracker.h"
#include "process/resolved_window.h"
#include "profiler/cold_unwinder.h"
#include "profiler/wiring.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"
#include "sampler/sampler.h"
#include "symbolize/symbolizer.h"

namespace pyrometer {

// A sampler with everything it takes to name its samples. Taking and naming are apart because
// they may not wait for each other: naming reads symbol tables, a second of work for a large
// program on a busy machine, while the kernel's maps fill up.
//
// Threads: one calls TakeWindow, one calls Name (it may be another); the process tracker and the
// unwinder of cold samples inside have threads of their own.
class Pipeline {
 public:
  // `keep`: how long what is gone stays known, two windows. `sampler` must outlive the pipeline.
  // On return every process is known to the kernel side. Errors: of the kernel event stream.
  static Result<std::unique_ptr<Pipeline>> Start(Sampler& sampler, const Procfs& procfs,
                                                 std::chrono::nanoseconds keep);

  // The samples since the last call. Those that are still to be unwound come with the next window;
  // the last one has all of them. REQUIRES of the last: the sampler has been stopped.
  Result<ResolvedWindow> TakeWindow(bool last);

  // REQUIRES: windows in the order in which they were taken.
  NamedWindow Name(ResolvedWindow resolved);

 private:
  explicit Pipeline(Sampler& sampler)
      : sampler_(sampler), mappings_(sampler), headers_(indexer_), sources_(indexer_) {}

  Sampler& sampler_;
  InProcessIndexer indexer_;
  KernelMappings mappings_;
  IndexedHeaders headers_;
  WindowSources sources_;
  std::unique_ptr<ProcessTracker> tracker_;
  std::unique_ptr<ColdUnwinder> cold_;
  std::unique_ptr<Symbolizer> symbolizer_;
};

}  // namespace pyrometer
