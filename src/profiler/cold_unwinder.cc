// SPDX-License-Identifier: Apache-2.0
#include "profiler/cold_unwinder.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/await_until.h"

namespace pyrometer {
namespace {

// While there is something to do: often enough that the ring buffer, which holds a quarter of a
// second, takes what comes meanwhile.
constexpr std::chrono::milliseconds kUnwindingInterval(50);
// Else at the latest, for the few cold samples that wake nobody.
constexpr std::chrono::milliseconds kNothingToUnwind(2000);

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

void ColdUnwinder::Run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "cold-unwinder");
  const std::stop_callback wake(stop, [this] {
    const absl::MutexLock lock(&mutex_);
    hurried_ = true;
    source_.Wake();
  });
  while (!stop.stop_requested()) {
    if (Unwind(stop)) {
      Pause(kUnwindingInterval);
    } else {
      source_.Wait(kNothingToUnwind);
    }
  }
}

bool ColdUnwinder::Unwind(const std::stop_token& stop) {
  TakeUpAgain();
  bool any = false;
  while (!stop.stop_requested()) {
    const ColdSample* const sample = Next();
    if (sample == nullptr) break;
    any |= Done(UnwindOne(*sample));
  }
  tables_.CloseFile();
  return any || IsBehind();
}

const ColdSample* ColdUnwinder::Next() {
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return nullptr;
    if (!taken_.empty()) return &taken_.front();
    if (done_.size() >= kMaxDone && !finishing_) return nullptr;
  }
  // Not under the lock, which whoever takes windows needs: a full ring takes milliseconds to copy.
  const absl::MutexLock source_lock(&source_mutex_);
  bool was_finishing = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return nullptr;  // given up meanwhile
    was_finishing = finishing_;
  }
  std::vector<ColdSample> more = source_.Take();
  const absl::MutexLock lock(&mutex_);
  std::ranges::move(more, std::back_inserter(taken_));
  finished_ = was_finishing && taken_.empty() && put_aside_.empty();
  return taken_.empty() ? nullptr : &taken_.front();
}

// False if it was put aside.
bool ColdUnwinder::Done(ColdStack stack) {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return true;  // it was given up meanwhile
  if (stack.pending != ObjectId(0)) {
    put_aside_bytes_ += taken_.front().stack.size();
    put_aside_.push_back({.sample = std::move(taken_.front()), .so_far = std::move(stack)});
    taken_.pop_front();
    LimitPutAside();
    return false;
  }
  if (stack.over_budget) ++counters_.over_budget;
  if (stack.code_late) ++counters_.code_late;
  taken_.front().stack = {};
  done_.push_back({.sample = std::move(taken_.front()), .stack = std::move(stack)});
  taken_.pop_front();
  ++counters_.unwound;
  return true;
}

// The samples whose table is there by now, or will not come.
void ColdUnwinder::TakeUpAgain() {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  std::deque<PutAside> all = std::exchange(put_aside_, {});
  for (PutAside& one : all) {
    if (tables_.IsPending(one.so_far.pending)) {
      put_aside_.push_back(std::move(one));
      continue;
    }
    put_aside_bytes_ -= one.sample.stack.size();
    taken_.push_back(std::move(one.sample));
  }
}

void ColdUnwinder::LimitPutAside() {
  while (put_aside_bytes_ > kMaxPutAside || put_aside_.size() > kMaxDone) {
    PutAside oldest = std::move(put_aside_.front());
    put_aside_.pop_front();
    put_aside_bytes_ -= oldest.sample.stack.size();
    GiveUp(oldest.sample, std::move(oldest.so_far));
    ++counters_.no_room;
  }
}

// Not by waiting for the ring, in which something may be all the time.
void ColdUnwinder::Pause(std::chrono::milliseconds most) {
  const absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&hurried_), absl::FromChrono(most));
}

bool ColdUnwinder::IsBehind() const {
  const absl::MutexLock lock(&mutex_);
  return done_.size() >= kMaxDone && !finished_;
}

ColdStack ColdUnwinder::UnwindOne(const ColdSample& sample) {
  if (sample.unwound) return {.frames = sample.unwound->frames, .end = sample.unwound->end};
  std::optional<ProgramMappings> mappings =
      processes_.MappingsAt(sample.process, sample.exec, sample.when);
  const bool differs = mappings && mappings->exec_pages != sample.exec_pages;
  // In the middle of an exec the registers are still the old program's, whose stack is gone.
  if (differs && sample.stack.empty() && !sample.kernel_frames.empty()) {
    return {.frames = {}, .end = StackEnd::kNoUserStack};
  }
  if (differs) {
    // Something has been unmapped, of which nobody told us.
    processes_.Recheck(sample.process);
    mappings = processes_.MappingsAt(sample.process, sample.exec, sample.when);
  }
  ColdStack stack = UnwindColdSample(sample, mappings ? &*mappings : nullptr, tables_,
                                     {.now = [this] { return clock_.Now(); }});
  // The kernel side tells only where it stopped. With the rows for all frames, the next sample of
  // this code is unwound there.
  for (const Frame frame : stack.frames) {
    if (frame.kind() == Frame::Kind::kObject) kernel_tables_.Need(frame.object(), frame.offset());
  }
  return stack;
}

void ColdUnwinder::Finish(MonotonicTime until) {
  {
    const absl::MutexLock lock(&mutex_);
    finishing_ = hurried_ = true;
    source_.Wake();
    AwaitUntil(mutex_, clock_, until,
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_; });
    if (finished_) return;
  }
  const absl::MutexLock source_lock(&source_mutex_);
  std::vector<ColdSample> rest = source_.Take();
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  std::ranges::move(rest, std::back_inserter(taken_));
  for (const ColdSample& sample : taken_) GiveUp(sample, {.frames = {Frame::User(sample.pc)}});
  for (PutAside& one : put_aside_) GiveUp(one.sample, std::move(one.so_far));
  const auto is_cold = [](const ColdSample& sample) { return !sample.unwound; };
  counters_.given_up +=
      static_cast<uint64_t>(std::ranges::count_if(taken_, is_cold)) + put_aside_.size();
  put_aside_.clear();
  finished_ = true;
}

// With the stack as it is so far. Leaves the sample its stack bytes and registers, for it may still
// be being unwound.
void ColdUnwinder::GiveUp(const ColdSample& sample, ColdStack stack) {
  ColdSample without_stack;
  without_stack.process = sample.process;
  without_stack.exec = sample.exec;
  without_stack.comm = sample.comm;
  without_stack.thread = sample.thread;
  without_stack.when = sample.when;
  without_stack.event = sample.event;
  without_stack.kernel_frames = sample.kernel_frames;
  without_stack.unwound = sample.unwound;
  if (sample.unwound) {
    stack = UnwindOne(sample);
  } else {
    stack.end = StackEnd::kNotReady;
  }
  done_.push_back({.sample = std::move(without_stack), .stack = std::move(stack)});
}

void ColdUnwinder::MoveInto(Window& window) {
  std::vector<Unwound> done;
  {
    const absl::MutexLock lock(&mutex_);
    // What was taken since the window's end belongs to the next one, which may be of another
    // frequency and filter.
    const auto later = std::stable_partition(
        done_.begin(), done_.end(),
        [&window](const Unwound& unwound) { return unwound.sample.when <= window.end; });
    done.assign(std::make_move_iterator(done_.begin()), std::make_move_iterator(later));
    done_.erase(done_.begin(), later);
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
                              .looked_up = !sample.unwound,
                              .event = sample.event});
  }
}

ColdUnwinder::Counters ColdUnwinder::counters() const {
  const absl::MutexLock lock(&mutex_);
  Counters now = counters_;
  now.waiting = finished_ ? 0 : taken_.size() + put_aside_.size();
  now.put_aside = put_aside_.size();
  now.done = done_.size();
  return now;
}

}  // namespace pyrometer
