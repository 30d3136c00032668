// SPDX-License-Identifier: Apache-2.0
#include "profiler/cold_unwinder.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace pyrometer {
namespace {

// While there is something to do: often enough that the ring buffer, which holds a quarter of a
// second, takes what comes meanwhile, and that a new program's libraries have their tables soon.
constexpr std::chrono::milliseconds kBusyInterval(50);
// Else at the latest, for the few cold samples that wake nobody.
constexpr std::chrono::seconds kIdleInterval(1);
// Tables are loaded for so long before a recording starts, and then for so long at a time: between
// them the ring buffer is emptied, for what waits for a table is unwound in user space meanwhile.
// That must not last either, or more and more is shipped for want of a table.
constexpr std::chrono::milliseconds kLoadingTimeAtStart(300);
constexpr std::chrono::milliseconds kLoadingTime(50);
constexpr std::chrono::milliseconds kUnwindingTime(50);
// Unwound samples that wait for a window to be taken, some 1 KiB each. Beyond, the kernel side's
// ring fills up, and it refuses what does not fit: those stacks say so.
constexpr size_t kMaxDone = 16384;
// Tables that are needed here; the largest library's takes 4 MB.
constexpr size_t kTableBytes = size_t{12} << 20;

uint32_t AddStack(Window& window, const ColdSample& sample, const ColdStack& stack) {
  window.stacks.push_back({.first_frame = static_cast<uint32_t>(window.frames.size()),
                           .kernel_frames = static_cast<uint16_t>(sample.kernel_frames.size()),
                           .user_frames = static_cast<uint16_t>(stack.frames.size()),
                           .end = stack.end});
  window.frames.insert(window.frames.end(), sample.kernel_frames.begin(),
                       sample.kernel_frames.end());
  window.frames.insert(window.frames.end(), stack.frames.begin(), stack.frames.end());
  return static_cast<uint32_t>(window.stacks.size() - 1);
}

}  // namespace

ColdUnwinder::ColdUnwinder(Sampler& sampler, ProcessTracker& tracker, Indexer& indexer)
    : sampler_(sampler), tracker_(tracker), tables_(tracker, indexer, kTableBytes) {
  {
    // What is mapped now has its tables before the first tick, as far as that does not take long.
    const absl::MutexLock lock(&work_);
    LoadTables(kLoadingTimeAtStart);
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

ColdUnwinder::~ColdUnwinder() = default;

void ColdUnwinder::Run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "cold-unwinder");
  const std::stop_callback wake(stop, [this] {
    sampler_.cold().Wake();
    sampler_.tables().Wake();
  });
  // Wanted tables wake this thread, too.
  const std::jthread forward([this, &stop] {
    while (!stop.stop_requested()) {
      sampler_.tables().Wait(kIdleInterval);
      sampler_.cold().Wake();
    }
  });
  while (!stop.stop_requested()) {
    switch (Work()) {
      case Next::kMore:
        break;
      case Next::kSoon:
        std::this_thread::sleep_for(kBusyInterval);
        break;
      case Next::kWait:
        sampler_.cold().Wait(kIdleInterval);
        break;
    }
  }
}

ColdUnwinder::Next ColdUnwinder::Work() {
  const absl::MutexLock work(&work_);
  const bool loaded = LoadTables(kLoadingTime);
  const bool is_behind = IsBehind();
  const bool unwound = !is_behind && UnwindSamples(kUnwindingTime);
  if (!wanted_.empty() || (!taken_.empty() && !is_behind)) return Next::kMore;
  return loaded || unwound || is_behind ? Next::kSoon : Next::kWait;
}

bool ColdUnwinder::LoadTables(std::chrono::milliseconds time) {
  // What was mapped last is about to run; before it comes what samples had to be unwound with.
  const std::vector<ObjectId> more = sampler_.tables().TakeWanted();
  wanted_.insert(wanted_.begin(), more.begin(), more.end());
  // Not std::ranges::stable_partition: clang 14, which checks this code, cannot compile subranges.
  std::stable_partition(wanted_.begin(), wanted_.end(),
                        [this](ObjectId object)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_) { return tables_.Has(object); });
  const bool any = !wanted_.empty();
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!wanted_.empty() && std::chrono::steady_clock::now() < deadline) {
    sampler_.tables().Load(wanted_.front(), *tables_.Of(wanted_.front()));
    wanted_.pop_front();
  }
  return any;
}

bool ColdUnwinder::UnwindSamples(std::chrono::milliseconds time) {
  if (taken_.empty()) std::ranges::move(sampler_.cold().Take(), std::back_inserter(taken_));
  const bool any = !taken_.empty();
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (; !taken_.empty() && std::chrono::steady_clock::now() < deadline; taken_.pop_front()) {
    ColdSample& sample = taken_.front();
    ColdStack stack = UnwindOne(sample);
    sample.stack = {};
    const absl::MutexLock lock(&done_mutex_);
    done_.push_back({.sample = std::move(sample), .stack = std::move(stack)});
  }
  tables_.CloseFile();
  return any;
}

bool ColdUnwinder::IsBehind() const {
  const absl::MutexLock lock(&done_mutex_);
  return done_.size() >= kMaxDone;
}

ColdStack ColdUnwinder::UnwindOne(const ColdSample& sample) {
  std::optional<ProgramMappings> mappings =
      tracker_.MappingsAt(sample.process, sample.exec, sample.when);
  const bool differs = mappings && mappings->exec_pages != sample.exec_pages;
  // In the middle of an exec the registers are still the old program's, whose stack is gone.
  if (differs && sample.stack.empty() && !sample.kernel_frames.empty()) {
    return {.frames = {}, .end = StackEnd::kNoUserStack};
  }
  if (differs) {
    // Something has been unmapped, of which nobody told us.
    tracker_.Recheck(sample.process);
    mappings = tracker_.MappingsAt(sample.process, sample.exec, sample.when);
  }
  return UnwindColdSample(sample, mappings ? &*mappings : nullptr, tables_);
}

void ColdUnwinder::Finish() {
  const absl::MutexLock work(&work_);
  while (UnwindSamples(std::chrono::hours(1))) {
  }
}

void ColdUnwinder::MoveInto(Window& window) {
  std::vector<Unwound> done;
  {
    const absl::MutexLock lock(&done_mutex_);
    done = std::exchange(done_, {});
  }
  for (Unwound& unwound : done) {
    ColdSample& sample = unwound.sample;
    window.samples.push_back({.process = sample.process,
                              .exec = sample.exec,
                              .comm = std::move(sample.comm),
                              .thread = std::move(sample.thread),
                              .stack = AddStack(window, sample, unwound.stack),
                              .count = 1,
                              .first_seen = sample.when,
                              .last_seen = sample.when,
                              .looked_up = true});
  }
}

}  // namespace pyrometer
