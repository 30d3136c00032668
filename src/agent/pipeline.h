// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "agent/wiring.h"
#include "base/procfs.h"
#include "indexer/in_process_indexer.h"
#include "process/process_tracker.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"
#include "sampler/sampler.h"
#include "symbolize/symbolizer.h"

namespace pyrometer {

// A sampler with everything it takes to name its samples: what makes a NamedWindow out of the
// kernel's maps. Owned by one thread; the process tracker inside has a thread of its own.
class Pipeline {
 public:
  // `keep`: how long what is gone stays known, two windows. `sampler` must outlive the pipeline.
  // On return every process is known to the kernel side. Errors: of the kernel event stream.
  static Result<std::unique_ptr<Pipeline>> Start(Sampler& sampler, const Procfs& procfs,
                                                 std::chrono::nanoseconds keep);

  // The samples since the last call, with names.
  Result<NamedWindow> NextWindow();

  const ProcessTracker& tracker() const { return *tracker_; }

 private:
  Pipeline(Sampler& sampler) : sampler_(sampler), mappings_(sampler), headers_(indexer_) {}

  Sampler& sampler_;
  InProcessIndexer indexer_;
  KernelMappings mappings_;
  IndexedHeaders headers_;
  std::unique_ptr<ProcessTracker> tracker_;
  std::unique_ptr<TrackedObjects> objects_;
  std::unique_ptr<TrackedPerfMaps> perf_maps_;
  std::unique_ptr<Symbolizer> symbolizer_;
};

}  // namespace pyrometer
