// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_namer.h"

#include <optional>
#include <utility>
#include <vector>

namespace pyrometer {

std::shared_ptr<const NamedWindow> WindowNamer::Name(ResolvedWindow resolved, bool is_last) {
  for (const KernelSymbolEvent& event : resolved.kernel_events) symbolizer_.Apply(event);
  std::erase_if(resolved.unused, [this](ObjectId object) { return remembered_.Needs(object); });
  std::optional<RememberedFrames::Added> added;
  if (name_again_ && is_last) added = remembered_.AddTo(resolved);
  sources_.Use(resolved);
  NamedWindow named = symbolizer_.Name(std::move(resolved.window));
  if (added) named.renamed = RememberedFrames::TakeOut(*added, named);
  if (name_again_ && !is_last) {
    remembered_.Note(named, sources_.objects(), sources_.jit_names());
  }
  sources_.Clear();
  const absl::MutexLock lock(&mutex_);
  counts_ = symbolizer_.counts();
  without_debug_info_ = sources_.without_debug_info();
  return std::make_shared<const NamedWindow>(std::move(named));
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
