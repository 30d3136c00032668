// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_namer.h"

#include <utility>

namespace pyrometer {

// One table gets no more than a quarter of the file, so that none keeps others out.
SymbolTableOptions WindowNamer::OptionsFor(const std::shared_ptr<SpillFile>& spill) {
  return {.spill = spill, .most_spilled = spill == nullptr ? 0 : spill->most() / 4};
}

std::shared_ptr<const NamedWindow> WindowNamer::Name(ResolvedWindow resolved) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_.Apply(event);
  sources_.Use(resolved);
  auto named = std::make_shared<const NamedWindow>(symbolizer_.Name(std::move(resolved.window)));
  sources_.Clear();
  const absl::MutexLock lock(&mutex_);
  counts_ = symbolizer_.counts();
  return named;
}

void WindowNamer::Skip(const ResolvedWindow& resolved) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_.Apply(event);
}

SymbolizerCounts WindowNamer::counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace pyrometer
