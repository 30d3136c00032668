// SPDX-License-Identifier: Apache-2.0
#include "sampler/sample_windows.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <utility>

#include "sampler/grace_period.h"
#include "sampler/sample_rate.h"

namespace pyrometer {
namespace {

std::array<WindowMaps, 2> HalvesOf(const sampler_bpf& skeleton) {
  const auto& maps = skeleton.maps;
  return {WindowMaps{
              bpf_map__fd(maps.counts_0),
              {bpf_map__fd(maps.small_0), bpf_map__fd(maps.medium_0), bpf_map__fd(maps.large_0)}},
          WindowMaps{
              bpf_map__fd(maps.counts_1),
              {bpf_map__fd(maps.small_1), bpf_map__fd(maps.medium_1), bpf_map__fd(maps.large_1)}}};
}

}  // namespace

// Of a few readings the one that was disturbed least: a thread may be kept from its CPU between the
// two clocks, and they would disagree by as much.
SampleWindows::Moment SampleWindows::Now() const {
  constexpr std::chrono::microseconds kUndisturbed(100);
  constexpr int kAttempts = 4;
  Moment best;
  auto shortest = std::chrono::nanoseconds::max();
  for (int i = 0; i < kAttempts && shortest > kUndisturbed; ++i) {
    const Moment now{.monotonic = clock_.Now(), .wall = clock_.WallNow()};
    const std::chrono::nanoseconds took = Between(now.monotonic, clock_.Now());
    if (took < shortest) best = now;
    shortest = std::min(shortest, took);
  }
  return best;
}

Result<std::unique_ptr<SampleWindows>> SampleWindows::Open(sampler_bpf& skeleton,
                                                           const Options& options) {
  const bpf_map* map = skeleton.maps.journals;
  const size_t bytes = size_t{bpf_map__value_size(map)} * bpf_map__max_entries(map);
  ASSIGN_OR_RETURN(auto journals, MappedArray<std::byte>::Map(map, bytes));
  return std::unique_ptr<SampleWindows>(new SampleWindows(skeleton, options, std::move(journals)));
}

SampleWindows::SampleWindows(sampler_bpf& skeleton, const Options& options,
                             MappedArray<std::byte> journals)
    : skeleton_(skeleton),
      clock_(options.clock),
      procfs_(options.procfs),
      halves_(HalvesOf(skeleton)),
      capacity_{options.sizes.small_stacks, options.sizes.medium_stacks, options.sizes.large_stacks,
                options.sizes.counts},
      filters_(skeleton),
      denied_(bpf_map__fd(skeleton.maps.denied_cgroups), skeleton.bss->denial_generation),
      outcomes_(bpf_map__fd(skeleton.maps.outcomes), bpf_map__fd(skeleton.maps.tick_time)),
      events_(skeleton.progs.pyro_tick,
              {.event = options.event, .frequency = options.frequency, .procfs = options.procfs}),
      journal_memory_(std::move(journals)),
      journals_(journal_memory_.entries(), options.sizes.journal_bytes),
      drain_(reader_) {}

uint32_t SampleWindows::active() const {
  return std::atomic_ref<uint32_t>(skeleton_.bss->active).load();
}

Result<void> SampleWindows::SetFilter(const SampleFilter& filter) {
  RETURN_IF_ERROR(filters_.Prepare(filter));
  std::atomic_ref<uint32_t>(skeleton_.bss->active).store(filters_.bits());
  filters_.Commit();
  return {};
}

Result<void> SampleWindows::Start() {
  window_begin_ = Now();
  return events_.FollowCpus();
}

bool SampleWindows::NearlyFull() const {
  const auto& used = skeleton_.bss->used[active() & PYRO_ACTIVE_HALF];
  for (size_t map = 0; map < capacity_.size(); ++map) {
    if (used[map] >= MapSizes::NearlyFull(capacity_[map])) return true;
  }
  return false;
}

std::chrono::nanoseconds SampleWindows::TimeUntilNearlyFull() const {
  const auto& used = skeleton_.bss->used[active() & PYRO_ACTIVE_HALF];
  const uint64_t ticks = events_.TicksPerSecond();
  auto least = std::chrono::nanoseconds::max();
  for (size_t map = 0; map < capacity_.size(); ++map) {
    const uint64_t limit = MapSizes::NearlyFull(capacity_[map]);
    least = std::min(least, MapSizes::TimeUntil(limit, used[map], ticks));
  }
  return least;
}

Result<void> SampleWindows::Prepare(const SamplingChange& change) {
  if (change.frequency) {
    if (events_.event().counted()) {
      return Fail(ErrorCode::kInvalid, "{} are counted and have no frequency",
                  FactsOf(events_.event().kind).noun);
    }
    if (change.frequency->value == 0) {
      return Fail(ErrorCode::kInvalid, "a frequency of 0 samples nothing");
    }
    RETURN_IF_ERROR(CheckSampleRate(procfs_, *change.frequency));
  }
  if (change.filter) RETURN_IF_ERROR(filters_.Prepare(*change.filter));
  if (change.frequency) next_frequency_ = change.frequency;
  return {};
}

// What an earlier call could not read comes first. It is a window of its own if the frequency has
// changed since, and else becomes part of this one.
Result<Window> SampleWindows::Drain() {
  if (quieting_) RETURN_IF_ERROR(Collect());
  if (HasLeftover()) return TakeWindow();
  Swap();
  RETURN_IF_ERROR(Collect());
  return TakeWindow();
}

// Ends the window for every tick that begins from here on.
void SampleWindows::Swap() {
  const uint32_t full = active() & PYRO_ACTIVE_HALF;
  const Hertz frequency = events_.frequency();
  const bool changes = next_frequency_ && *next_frequency_ != frequency;
  // So that no tick of one frequency falls into a window of another.
  if (changes) events_.Pause();
  // Before the ticks are counted: what is due must not run ahead of them.
  quieting_ = Quieting{.half = full, .due = events_.DueTicks()};
  window_frequency_ = frequency;
  // Its journals begin anew.
  ++skeleton_.bss->journal_window[full ^ PYRO_ACTIVE_HALF];
  // A tick that has begun may be some microseconds later. Where no more come, the window ends with
  // the last of them, however late it is drained.
  window_end_ = stopped_.value_or(Now());
  std::atomic_ref<uint32_t>(skeleton_.bss->active)
      .store((full ^ PYRO_ACTIVE_HALF) | filters_.bits());
  filters_.Commit();
  if (changes) events_.Resume(*next_frequency_);
  next_frequency_.reset();
}

// Moves what is in the half that was swapped away into the window.
Result<void> SampleWindows::Collect() {
  Quieting& quieting = *quieting_;
  if (!quieting.is_quiet) {
    RETURN_IF_ERROR(WaitForRunningPrograms(skeleton_));
    quieting.is_quiet = true;
    filters_.Sweep();
  }
  if (!quieting.is_booked) {
    RETURN_IF_ERROR(Book(quieting));
    quieting.is_booked = true;
  }
  journals_.TakeAll(quieting.half, [this](const pyro_journal_record& record, auto frames) {
    drain_.Add(record, frames);
  });
  RETURN_IF_ERROR(drain_.Take(halves_[quieting.half]));
  std::ranges::fill(skeleton_.bss->used[quieting.half], 0);
  quieting_.reset();
  has_window_ = true;
  return {};
}

Result<void> SampleWindows::Book(const Quieting& quieting) {
  ASSIGN_OR_RETURN(const Accounting now, outcomes_.OfHalf(quieting.half));
  Accounting books = now - std::exchange(booked_[quieting.half], now);
  // What is due runs a little ahead of what was counted, or behind: only what is more than ever
  // before is added, so that the windows' sum is the total.
  const uint64_t ticks = booked_[0].Ticks() + booked_[1].Ticks();
  const uint64_t before = undelivered_;
  const uint64_t after = std::max(before, quieting.due - std::min(quieting.due, ticks));
  undelivered_ = after;
  books.undelivered = after - before;
  window_books_ += books;
  return {};
}

Window SampleWindows::TakeWindow() {
  Window window = drain_.Finish();
  window.begin = window_begin_.monotonic;
  window.wall_begin = window_begin_.wall;
  window.end = window_end_.monotonic;
  window.wall_end = window_end_.wall;
  window.event = events_.event();
  window.frequency = window_frequency_;
  window.accounting = std::exchange(window_books_, {});
  window_begin_ = window_end_;
  has_window_ = false;
  uint64_t ticks = 0;
  for (const Sample& sample : window.samples) ticks += sample.count;
  drained_ += ticks;
  return window;
}

Accounting SampleWindows::accounting() const {
  // Due ticks first: they must not run ahead of the ticks counted below.
  const uint64_t due = events_.DueTicks();
  Accounting sum;
  for (const uint32_t half : {0U, 1U}) {
    // A map that is there cannot fail to be read.
    sum += outcomes_.OfHalf(half).value_or(Accounting());
  }
  sum.undelivered = std::max<uint64_t>(undelivered_, due - std::min(due, sum.Ticks()));
  return sum;
}

std::chrono::nanoseconds SampleWindows::tick_time() const {
  // As above: it cannot fail.
  return outcomes_.Time().value_or(std::chrono::nanoseconds(0));
}

}  // namespace pyrometer
