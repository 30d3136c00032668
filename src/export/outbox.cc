// SPDX-License-Identifier: Apache-2.0
#include "export/outbox.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/time/time.h"

namespace pyrometer {
namespace {

constexpr std::chrono::hours kLongestWait{1};

std::chrono::nanoseconds Jitter(std::mt19937_64& random, std::chrono::nanoseconds most) {
  std::uniform_int_distribution<int64_t> distribution(0, std::max<int64_t>(0, most.count()));
  return std::chrono::nanoseconds(distribution(random));
}

uint64_t RandomSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

Outbox::Outbox(Options options, ProfileSink& sink, const Clock& clock, Log& log)
    : options_(std::move(options)),
      sink_(sink),
      clock_(clock),
      log_(options_.name, log),
      random_(RandomSeed()),
      backoff_(options_.retry, std::max(1U, options_.concurrency), RandomSeed()) {
  const absl::MutexLock lock(&mutex_);
  StartKeeping();
}

Outbox::~Outbox() {
  {
    const absl::MutexLock lock(&mutex_);
    if (is_closed_) return;
  }
  Close(clock_.Now());
}

std::jthread Outbox::StartThread(void (Outbox::*run)()) {
  return std::jthread([this, run] {
    options_.on_thread_start();
    (this->*run)();
  });
}

void Outbox::Await(std::optional<MonotonicTime> until) {
  Await(changed_, until);
}

void Outbox::Await(absl::CondVar& change, std::optional<MonotonicTime> until) {
  if (!until) return change.Wait(&mutex_);
  const std::chrono::nanoseconds time = Between(clock_.Now(), *until);
  change.WaitWithTimeout(
      &mutex_, absl::FromChrono(std::clamp<std::chrono::nanoseconds>(time, {}, kLongestWait)));
}

void Outbox::WakeAll() {
  changed_.SignalAll();
  turns_.SignalAll();
}

void Outbox::StartKeeping() {
  try {
    if (!packing_thread_.joinable()) packing_thread_ = StartThread(&Outbox::PackWindows);
    if (options_.spool && !spool_thread_.joinable()) {
      spool_thread_ = StartThread(&Outbox::KeepSpool);
    }
  } catch (const std::system_error&) {
    // No more threads can be had now; the next window asks again.
  }
}

uint64_t Outbox::TicksOf(const Profile& profile) {
  uint64_t ticks = 0;
  for (const ProfileSample& sample : profile.samples) ticks += sample.count;
  return ticks;
}

void Outbox::Offer(std::shared_ptr<const std::vector<Profile>> profiles) {
  uint64_t ticks = 0;
  for (const Profile& profile : *profiles) ticks += TicksOf(profile);
  const MonotonicTime now = clock_.Now();
  const absl::MutexLock lock(&mutex_);
  WakeAll();
  ledger_.Offered(ticks);
  if (!Is(Phase::kOpen)) return ledger_.DroppedFromMemory(ticks, "shutdown");
  StartKeeping();
  if (profiles->empty()) return;
  windows_.push_back({.profiles = std::move(profiles),
                      .number = ++offered_windows_,
                      .ticks = ticks,
                      .offered = now,
                      .not_before = After(now, Jitter(random_, options_.jitter))});
  if (windows_.size() <= std::max(1U, options_.max_windows)) return;
  ledger_.DroppedFromMemory(windows_.front().ticks, "not_packed");
  windows_.pop_front();
}

void Outbox::Close(MonotonicTime deadline) {
  std::vector<std::jthread> threads;
  {
    const absl::MutexLock lock(&mutex_);
    phase_ = Phase::kHurrying;  // no more windows come; what is in memory goes out without jitter
    WakeAll();
    const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (clock_.Now() >= deadline) return true;
      if (!windows_.empty() || packing_ || under_way_ != 0) return false;
      return !waiting_.has_waiting() || (backoff_.is_failing() && backoff_.next() >= deadline);
    };
    while (!is_over()) Await(deadline);
    phase_ = Phase::kStopped;
    is_closed_ = true;
    WakeAll();
    threads = std::exchange(delivering_threads_, {});
    threads.push_back(std::exchange(packing_thread_, {}));
    threads.push_back(std::exchange(spool_thread_, {}));
  }
  sink_.Cancel();
  threads.clear();
  StowAway();
}

DeliveryCounters Outbox::counters() const {
  const absl::MutexLock lock(&mutex_);
  DeliveryCounters counters = ledger_.counters();
  counters.windows_waiting = windows_.size() + (packing_ ? 1 : 0);
  counters.parcels_in_memory = waiting_.count();
  counters.bytes_in_memory = waiting_.bytes();
  counters.under_way = under_way_;
  counters.spool_files = spooled_.count();
  counters.spool_bytes = spooled_.bytes();
  counters.has_spool = has_spool_;
  counters.is_failing = backoff_.is_failing();
  const auto wait = [&](std::optional<std::chrono::system_clock::time_point> begin) {
    if (!begin) return;
    counters.oldest_waiting = std::min(*begin, counters.oldest_waiting.value_or(*begin));
  };
  wait(waiting_.oldest());
  wait(spooled_.oldest());
  if (!windows_.empty()) wait(windows_.front().profiles->front().begin);
  if (packing_) wait(packing_->profiles->front().begin);
  return counters;
}

void Outbox::PackWindows() {
  while (const std::optional<OfferedWindow> window = NextWindow()) Pack(*window);
}

std::optional<OfferedWindow> Outbox::NextWindow() {
  const absl::MutexLock lock(&mutex_);
  while (windows_.empty() && Is(Phase::kOpen)) Await(std::nullopt);
  if (windows_.empty() || Is(Phase::kStopped)) return std::nullopt;
  packing_ = std::move(windows_.front());
  windows_.pop_front();
  return packing_;
}

void Outbox::Pack(const OfferedWindow& window) {
  bool is_first = true;
  for (const Profile& profile : *window.profiles) {
    Packed packed = sink_.Pack(profile);
    const std::string series = packed.parcels.empty() ? "" : packed.parcels.front().series;
    std::vector<std::string> news;
    {
      const absl::MutexLock lock(&mutex_);
      news = ledger_.Altered(packed.altered);
      const bool was_empty = !waiting_.has_waiting();
      Queue(window, profile, std::move(packed));
      StartDelivering();
      const bool is_due = !Is(Phase::kOpen) || clock_.Now() >= window.not_before;
      if (is_due || was_empty || is_first) turns_.Signal();
      if (WantsSpilling() || backoff_.is_failing()) changed_.SignalAll();
      is_first = false;
    }
    for (const std::string& how : news) log_.Altered(how, series);
  }
  const absl::MutexLock lock(&mutex_);
  packing_.reset();
  ShedOld();
  WakeAll();
}

void Outbox::Queue(const OfferedWindow& window, const Profile& profile, Packed packed) {
  uint64_t left = TicksOf(profile);
  for (const auto& [reason, ticks] : packed.dropped) {
    ledger_.DroppedFromMemory(ticks, reason);
    left -= std::min(left, ticks);
  }
  for (Parcel& parcel : packed.parcels) {
    left -= std::min(left, parcel.samples);
    waiting_.Add({.parcel = std::make_shared<const Parcel>(std::move(parcel)),
                  .window = window.number,
                  .born = window.offered,
                  .not_before = window.not_before});
  }
  ledger_.DroppedFromMemory(left, "not_encoded");
  ShedMemory();
}

void Outbox::ShedOld() {
  const MonotonicTime horizon = Before(clock_.Now(), options_.max_age);
  for (const WaitingParcel& parcel : waiting_.TakeBornBefore(horizon)) Drop(parcel, "too_old");
}

void Outbox::ShedMemory() {
  while (waiting_.bytes() > options_.max_memory) {
    const std::optional<WaitingParcel> oldest = waiting_.TakeOldest();
    if (!oldest) break;
    Drop(*oldest, "queue_full");
  }
}

void Outbox::Drop(const WaitingParcel& parcel, std::string_view reason) {
  ledger_.DroppedFromMemory(parcel.parcel->samples, reason);
  waiting_.Forget(parcel);
}

void Outbox::StartDelivering() {
  if (idle_ != 0 || Is(Phase::kStopped)) return;
  if (delivering_threads_.size() >= std::max(1U, options_.concurrency)) return;
  try {
    delivering_threads_.push_back(StartThread(&Outbox::DeliverParcels));
  } catch (const std::system_error&) {
    // No more threads can be had now. Those there are go on; the next window asks again.
  }
}

void Outbox::DeliverParcels() {
  while (const std::optional<DeliveryTurn> turn = NextTurn()) {
    std::visit([&](const auto& parcel) { Deliver(parcel, turn->backoff_period); }, turn->parcel);
  }
}

std::optional<DeliveryTurn> Outbox::NextTurn() {
  const absl::MutexLock lock(&mutex_);
  while (!Is(Phase::kStopped)) {
    if (std::optional<DeliveryTurn> turn = TakeTurn()) {
      // There may be more, also for threads that do not exist yet.
      if (backoff_.Admits(clock_.Now(), under_way_)) StartDelivering();
      if (idle_ != 0 && WhenToLook()) turns_.Signal();
      return turn;
    }
    ++idle_;
    Await(turns_, WhenToLook());
    --idle_;
  }
  return std::nullopt;
}

std::optional<DeliveryTurn> Outbox::TakeTurn() {
  const MonotonicTime now = clock_.Now();
  if (!backoff_.Admits(now, under_way_)) return std::nullopt;
  const auto from_spool = [&]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<DeliveryTurn> {
    if (!spooled_.has_waiting() || !CanUseDisk() || !Is(Phase::kOpen)) return std::nullopt;
    return DeliveryTurn{.parcel = spooled_.Take(), .backoff_period = backoff_.period()};
  };
  // Fresh parcels go first, the spool has what time is left: people look at the present, and the
  // present is what would be too old next. But each in turn finds out whether the sink works again,
  // so that one parcel that is refused for ever does not keep it failing.
  is_spools_turn_ = backoff_.is_failing() && !is_spools_turn_;
  std::optional<DeliveryTurn> turn;
  if (is_spools_turn_) turn = from_spool();
  if (!turn) {
    std::optional<WaitingParcel> parcel = waiting_.Take(now, !Is(Phase::kOpen));
    while (parcel && Between(parcel->born, now) > options_.max_age) {
      Drop(*parcel, "too_old");
      parcel = waiting_.Take(now, !Is(Phase::kOpen));
    }
    if (parcel) turn = {.parcel = *std::move(parcel), .backoff_period = backoff_.period()};
  }
  if (!turn) turn = from_spool();
  if (turn) ++under_way_;
  return turn;
}

// When TakeTurn can have another answer without a change that wakes us.
std::optional<MonotonicTime> Outbox::WhenToLook() const {
  std::optional<MonotonicTime> when = waiting_.NextTurn();
  if (spooled_.has_waiting() && Is(Phase::kOpen)) {
    when = std::min(disk_resumes_, when.value_or(disk_resumes_));
  }
  if (!when || under_way_ >= backoff_.allowed()) return std::nullopt;
  return backoff_.is_failing() ? std::max(*when, backoff_.next()) : *when;
}

void Outbox::Deliver(const WaitingParcel& waiting, uint64_t period) {
  const Parcel& parcel = *waiting.parcel;
  const Receipt receipt = sink_.Deliver(parcel);
  DeliveryNews news;
  {
    const absl::MutexLock lock(&mutex_);
    ledger_.Attempted(waiting.attempts != 0);
    news = Book(receipt, period);
    if (receipt.outcome == Outcome::kDelivered) {
      ledger_.DeliveredFromMemory(parcel, receipt, clock_.WallNow());
      waiting_.Forget(waiting);
    } else if (IsToBeRepeated(receipt)) {
      WaitingParcel again = waiting;
      ++again.attempts;
      if (answers_ != std::exchange(again.answers_at_last, answers_)) ++again.refusals;
      if (again.refusals > options_.max_refusals) {
        Drop(again, "refused");
      } else {
        waiting_.PutBack(std::move(again));
        ShedMemory();
      }
    } else {
      Drop(waiting, receipt.outcome == Outcome::kRejected ? receipt.reason : "maybe_arrived");
    }
    // This thread looks for more itself.
    if (!Is(Phase::kOpen) || news.failure || news.recovered_after) WakeAll();
  }
  log_.Tell(news, receipt.outcome, parcel.series);
}

bool Outbox::IsToBeRepeated(const Receipt& receipt) const {
  return receipt.outcome == Outcome::kNotArrived ||
         (receipt.outcome == Outcome::kMaybeArrived && options_.retry.at_least_once);
}

DeliveryNews Outbox::Book(const Receipt& receipt, uint64_t period) {
  --under_way_;
  const MonotonicTime now = clock_.Now();
  DeliveryNews news;
  news.is_cancelled = Is(Phase::kStopped);
  if (receipt.outcome != Outcome::kDelivered || receipt.rejected_samples != 0) {
    news.failure = ledger_.Failed(receipt, clock_.WallNow());
  } else {
    news.warning = receipt.message;
  }
  if (receipt.outcome == Outcome::kDelivered || receipt.outcome == Outcome::kRejected) {
    ++answers_;
    news.is_first = receipt.outcome == Outcome::kDelivered && !ledger_.counters().last_success;
    const std::optional<MonotonicTime> since = backoff_.failing_since();
    backoff_.Answered(period);
    if (since && !backoff_.is_failing()) news.recovered_after = Between(*since, now);
  } else {
    backoff_.Failed(period, now, receipt.retry_after);
  }
  return news;
}

}  // namespace pyrometer
