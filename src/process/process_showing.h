// SPDX-License-Identifier: Apache-2.0
// How a ProcessHistory and its observer meet: the observer is called while nobody holds the lock of
// the history.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "process/process_history.h"
#include "process/process_observer.h"
#include "process/resolved_window.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// Shows `observer` whom it has not seen: up to `last`, at most `most`. `with_history` calls what it
// is given with the history, under its lock, and returns what that returns. REQUIRES: one call at a
// time.
template <typename WithHistory>
void ShowUnseen(ProcessObserver& observer, uint64_t last, size_t most,
                const WithHistory& with_history) {
  for (size_t i = 0; i < most; ++i) {
    const std::optional<ProcessHistory::Unseen> next =
        with_history([&](ProcessHistory& history) { return history.TakeUnseen(last); });
    if (!next) return;
    LabelSet labels =
        observer.OnProcess({.key = next->key,
                            .comm = next->comm,
                            .directory = next->directory ? &*next->directory : nullptr,
                            .inherited = next->inherited});
    with_history([&](ProcessHistory& history) { history.Label(*next, std::move(labels)); });
  }
}

inline uint64_t TicksIn(const std::vector<Sample>& samples) {
  uint64_t ticks = 0;
  for (const Sample& sample : samples) ticks += sample.count;
  return ticks;
}

// Resolves a window; `observer` may be null. Otherwise as above.
template <typename WithHistory>
ResolvedWindow ResolveShowing(ProcessObserver* observer, Window window,
                              const WithHistory& with_history) {
  const uint64_t last =
      with_history([&](ProcessHistory& history) { return history.BeginResolving(window); });
  uint64_t unwanted = 0;
  if (observer != nullptr) {
    // Who comes meanwhile is not in the window, or is not waited for: there may be no end of them.
    ShowUnseen(*observer, last, SIZE_MAX, with_history);
    const std::vector<size_t> unknown =
        with_history([&](ProcessHistory& history) { return history.AttachLabels(window); });
    for (const size_t i : unknown) {
      Sample& sample = window.samples[i];
      sample.labels = observer->OfUnknown(sample.process.pid, sample.comm);
    }
    const uint64_t before = TicksIn(window.samples);
    observer->OnSamples(window.samples);
    unwanted = before - TicksIn(window.samples);
  }
  return with_history([&](ProcessHistory& history) {
    return history.FinishResolving(std::move(window), unwanted);
  });
}

}  // namespace pyrometer
