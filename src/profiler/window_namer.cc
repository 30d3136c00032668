// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_namer.h"

#include <utility>

namespace pyrometer {

std::shared_ptr<const NamedWindow> WindowNamer::Name(ResolvedWindow resolved) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_.Apply(event);
  sources_.Use(resolved);
  auto named = std::make_shared<const NamedWindow>(symbolizer_.Name(std::move(resolved.window)));
  sources_.Clear();
  const absl::MutexLock lock(&mutex_);
  counts_ = symbolizer_.counts();
  without_debug_info_ = sources_.without_debug_info();
  return named;
}

void WindowNamer::Skip(const ResolvedWindow& resolved) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_.Apply(event);
}

SymbolizerCounts WindowNamer::counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

size_t WindowNamer::without_debug_info() const {
  const absl::MutexLock lock(&mutex_);
  return without_debug_info_;
}

}  // namespace pyrometer
