// SPDX-License-Identifier: Apache-2.0
// The spool's part of an outbox: who may touch the disk, and when.
#include <algorithm>
#include <utility>

#include "export/outbox.h"
#include "export/spool_survey.h"

namespace pyrometer {
namespace {

constexpr std::chrono::minutes kLongestPause{10};  // between attempts to open a spool
constexpr std::chrono::hours kForEver{24 * 365 * 10};

std::vector<const Parcel*> ParcelsOf(const std::vector<WaitingParcel>& waiting) {
  std::vector<const Parcel*> parcels;
  parcels.reserve(waiting.size());
  for (const WaitingParcel& one : waiting) parcels.push_back(one.parcel.get());
  return parcels;
}

std::chrono::nanoseconds SinceBoot(MonotonicTime time) {
  return std::chrono::nanoseconds(static_cast<int64_t>(time.value()));
}

}  // namespace

void Outbox::KeepSpool() {
  while (KeepSpoolOnce()) {
  }
}

bool Outbox::CanUseDisk() const {
  return clock_.Now() >= disk_resumes_;
}

std::chrono::nanoseconds Outbox::MaxAgeInSpool() const {
  return std::min(options_.spool->max_age, options_.max_age);
}

bool Outbox::WantsSpilling() const {
  if (!waiting_.has_waiting()) return false;
  if (waiting_.bytes() > options_.max_memory / 4 * 3) return true;
  const std::optional<MonotonicTime> since = backoff_.failing_since();
  return since && Between(*since, clock_.Now()) >= options_.spool_after;
}

std::optional<MonotonicTime> Outbox::WhenToKeep() const {
  if (!CanUseDisk()) return disk_resumes_;
  std::optional<MonotonicTime> when;
  if (backoff_.is_failing() && waiting_.has_waiting()) {
    when = After(*backoff_.failing_since(), options_.spool_after);
  }
  if (const SpooledFiles::Record oldest = spooled_.Oldest()) {
    const std::chrono::nanoseconds end =
        oldest->born + std::min<std::chrono::nanoseconds>(MaxAgeInSpool(), kForEver);
    const MonotonicTime too_old(static_cast<uint64_t>(std::max<int64_t>(0, end.count())) + 1);
    when = std::min(too_old, when.value_or(too_old));
  }
  return when;
}

bool Outbox::KeepSpoolOnce() {
  std::vector<WaitingParcel> to_spill;
  SpooledFiles::Record to_open;
  bool is_to_open_spool = false;
  {
    const absl::MutexLock lock(&mutex_);
    while (!Is(Phase::kStopped)) {
      ShedSpool(0);
      if (!CanUseDisk()) {
        Await(WhenToKeep());
        continue;
      }
      is_to_open_spool = !has_spool_;
      if (is_to_open_spool) break;
      if (spooled_.has_finished()) break;
      if (WantsSpilling()) to_spill = waiting_.TakeWindow();
      if (!to_spill.empty()) break;
      to_open = spooled_.NextToOpen();
      if (to_open) break;
      Await(WhenToKeep());
    }
    if (Is(Phase::kStopped)) return false;
  }
  if (is_to_open_spool) OpenSpool();
  RemoveFinished();
  if (!to_spill.empty()) Spill(std::move(to_spill));
  if (to_open) OpenNext(to_open);
  return true;
}

void Outbox::RemoveFinished() {
  std::vector<uint64_t> numbers;
  {
    const absl::MutexLock lock(&mutex_);
    numbers = spooled_.TakeFinished();
  }
  if (!directory_) return;
  for (const uint64_t number : numbers) {
    const Result<void> removed = directory_->Remove(number);
    if (!removed) log_.SpoolFailed("removing a file of the spool", removed.error());
  }
}

void Outbox::OpenSpool() {
  const auto failed = [&](const Error& error) {
    log_.SpoolFailed("goes without a spool", error);
    const absl::MutexLock lock(&mutex_);
    disk_pause_ =
        std::clamp<std::chrono::nanoseconds>(2 * disk_pause_, options_.spool->pause, kLongestPause);
    disk_resumes_ = After(clock_.Now(), disk_pause_);
  };
  Result<SpoolDirectory> directory = SpoolDirectory::Open(options_.spool->directory);
  if (!directory) return failed(directory.error());
  const Result<std::vector<uint64_t>> numbers = directory->List();
  if (!numbers) return failed(numbers.error());
  directory_ = *std::move(directory);
  if (!numbers->empty()) next_file_ = std::max(next_file_, numbers->back() + 1);
  const auto is_stopped = [&] {
    const absl::MutexLock lock(&mutex_);
    return Is(Phase::kStopped);
  };
  for (const uint64_t number : *numbers) {
    // Who closes only wants to write; reading a full spool could take longer than there is time.
    if (is_stopped()) break;
    AddFound(number);
  }
  const absl::MutexLock lock(&mutex_);
  has_spool_ = true;
  disk_pause_ = {};
  WakeAll();
}

void Outbox::AddFound(uint64_t number) {
  const Result<SpoolFile> file = directory_->OpenFile(number);
  if (!file) log_.SpoolFailed("cannot read a file of the spool", file.error());
  const SpoolSurvey found =
      file ? Survey(*file, options_.retry.at_least_once) : SpoolSurvey{.unreadable = 1};
  // What cannot be opened for other reasons may be readable for the next run.
  const bool is_useless = file ? found.parcels == 0 : file.error().code() == ErrorCode::kMalformed;
  if (is_useless) (void)directory_->Remove(number);
  const absl::MutexLock lock(&mutex_);
  ledger_.Found(found.ticks + found.doubtful_ticks + found.corrupt_ticks);
  ledger_.DroppedFromSpool(found.doubtful_ticks, Origin::kEarlierRun, "maybe_arrived");
  ledger_.DroppedFromSpool(found.corrupt_ticks, Origin::kEarlierRun, "corrupt");
  ledger_.Unreadable(found.unreadable);
  if (found.parcels == 0) return;
  const auto age =
      std::max(std::chrono::system_clock::duration::zero(), clock_.WallNow() - found.begin);
  spooled_.Add({.number = number,
                .bytes = file->size(),
                .parcels = found.parcels,
                .ticks = found.ticks,
                .begin = found.begin,
                .born = SinceBoot(clock_.Now()) - age,
                .origin = Origin::kEarlierRun});
}

void Outbox::ShedSpool(uint64_t coming) {
  const std::chrono::nanoseconds now = SinceBoot(clock_.Now());
  while (const SpooledFiles::Record oldest = spooled_.Oldest()) {
    if (now - oldest->born > MaxAgeInSpool()) {
      GiveUp(oldest, "too_old");
    } else if (spooled_.bytes() + coming > options_.spool->max_size) {
      GiveUp(oldest, "spool_full");
    } else {
      return;
    }
  }
}

void Outbox::GiveUp(const SpooledFiles::Record& record, std::string_view reason) {
  ledger_.DroppedFromSpool(spooled_.GiveUp(record, reason), record->origin, reason);
}

bool Outbox::Spill(std::vector<WaitingParcel> parcels) {
  const std::vector<const Parcel*> to_write = ParcelsOf(parcels);
  const uint64_t bytes = SpoolFile::SizeOf(to_write);
  if (bytes > options_.spool->max_size || parcels.size() > SpoolFile::kMostParcels) {
    const absl::MutexLock lock(&mutex_);
    for (const WaitingParcel& parcel : parcels) Drop(parcel, "spool_full");
    return true;
  }
  {
    const absl::MutexLock lock(&mutex_);
    ShedSpool(bytes);
  }
  RemoveFinished();
  const Result<void> written = directory_->Write(next_file_, to_write);
  if (!written) {
    {
      const absl::MutexLock lock(&mutex_);
      waiting_.PutBackFirst(std::move(parcels));
      ShedMemory();
    }
    SpoolFailed("writing to the spool", written.error());
    return false;
  }
  SpooledFile file{.number = next_file_++, .bytes = bytes, .parcels = parcels.size()};
  file.begin = parcels.front().parcel->begin;
  file.born = SinceBoot(parcels.front().born);
  const absl::MutexLock lock(&mutex_);
  for (const WaitingParcel& parcel : parcels) {
    file.ticks += parcel.parcel->samples;
    waiting_.Forget(parcel);
  }
  ledger_.Spooled(file.ticks);
  spooled_.Add(std::move(file));
  WakeAll();
  return true;
}

void Outbox::OpenNext(const SpooledFiles::Record& record) {
  Result<SpoolFile> file = directory_->OpenFile(record->number);
  if (file) {
    const absl::MutexLock lock(&mutex_);
    return Admit(record, *std::move(file));
  }
  const ErrorCode code = file.error().code();
  if (code != ErrorCode::kNotFound && code != ErrorCode::kMalformed) {
    return SpoolFailed("reading the spool", file.error());
  }
  log_.SpoolFailed("lost a file of the spool", file.error());
  {
    const absl::MutexLock lock(&mutex_);
    GiveUp(record, code == ErrorCode::kNotFound ? "spool_lost" : "corrupt");
  }
  if (!directory_->IsInPlace()) LoseSpool();
}

void Outbox::Admit(const SpooledFiles::Record& record, SpoolFile file) {
  std::vector<uint32_t> parcels;
  uint64_t ticks = 0;
  uint64_t doubtful = 0;
  uint64_t doubtful_ticks = 0;
  record->ended.resize(file.entries().size());
  for (uint32_t i = 0; i < file.entries().size(); ++i) {
    const SpoolFile::Entry& entry = file.entries()[i];
    if (record->ended[i]) continue;
    const bool is_sending = entry.status == SpoolFile::Status::kSending;
    if (entry.status == SpoolFile::Status::kPending ||
        (is_sending && options_.retry.at_least_once)) {
      parcels.push_back(i);
      ticks += entry.samples;
    } else if (is_sending) {
      record->ended[i] = true;
      ++doubtful;
      doubtful_ticks += entry.samples;
    }
  }
  const uint64_t known = ticks + doubtful_ticks;
  if (known > record->ticks || parcels.size() + doubtful > record->parcels) {
    return GiveUp(record, "corrupt");  // changed by somebody else
  }
  const uint64_t missing = record->ticks - known;
  ledger_.DroppedFromSpool(doubtful_ticks, record->origin, "maybe_arrived");
  ledger_.DroppedFromSpool(missing, record->origin, "corrupt");
  record->ticks = ticks;
  record->parcels = parcels.size();
  spooled_.Opened(record, std::move(file), std::move(parcels));
  StartDelivering();
  WakeAll();
}

void Outbox::SpoolFailed(std::string_view what, const Error& error) {
  log_.SpoolFailed(what, error);
  if (!directory_->IsInPlace()) return LoseSpool();
  const absl::MutexLock lock(&mutex_);
  disk_resumes_ = After(clock_.Now(), options_.spool->pause);
}

void Outbox::LoseSpool() {
  directory_.reset();
  const absl::MutexLock lock(&mutex_);
  while (const SpooledFiles::Record record = spooled_.Oldest()) GiveUp(record, "spool_lost");
  (void)spooled_.TakeFinished();
  has_spool_ = false;  // a new one is made at once
}

std::optional<Parcel> Outbox::Prepare(const SpooledParcel& spooled) {
  Result<Parcel> parcel = spooled.file->Read(spooled.index);
  if (!parcel && parcel.error().code() == ErrorCode::kMalformed) {
    (void)spooled.file->SetState(spooled.index, SpoolState::kDone);
    log_.SpoolFailed("lost a parcel in the spool", parcel.error());
    const absl::MutexLock lock(&mutex_);
    --under_way_;
    ledger_.DroppedFromSpool(spooled.ticks, spooled.record->origin, "corrupt");
    spooled_.End(spooled);
    WakeAll();
    return std::nullopt;
  }
  Result<void> ready;
  if (!parcel) ready = parcel.error();
  if (ready) ready = spooled.file->SetState(spooled.index, SpoolState::kSending);
  if (ready) ready = spooled.file->Sync();
  if (ready) return *std::move(parcel);
  // Sent without that, it would be sent twice if we were killed.
  (void)spooled.file->SetState(spooled.index, SpoolState::kPending);
  log_.SpoolFailed("using the spool", ready.error());
  const absl::MutexLock lock(&mutex_);
  --under_way_;
  disk_resumes_ = After(clock_.Now(), options_.spool->pause);
  if (!spooled_.PutBack(spooled)) {
    ledger_.DroppedFromSpool(spooled.ticks, spooled.record->origin, spooled.record->given_up);
  }
  WakeAll();
  return std::nullopt;
}

void Outbox::Deliver(const SpooledParcel& spooled, uint64_t period) {
  const std::optional<Parcel> parcel = Prepare(spooled);
  if (!parcel) return;
  const Receipt receipt = sink_.Deliver(*parcel);
  const bool is_to_be_repeated = IsToBeRepeated(receipt);
  // Not synced: what a power loss takes back is "sending", which nobody sends again.
  (void)spooled.file->SetState(spooled.index,
                               is_to_be_repeated ? SpoolState::kPending : SpoolState::kDone);
  DeliveryNews news;
  bool is_refused = false;
  {
    const absl::MutexLock lock(&mutex_);
    const Origin origin = spooled.record->origin;
    SpooledAttempts& tried = spooled.record->tried[spooled.index];
    ledger_.Attempted(tried.attempts++ != 0);
    news = Book(receipt, period);
    std::optional<std::string> dropped;
    if (is_to_be_repeated) {
      if (answers_ != std::exchange(tried.answers_at_last, answers_)) ++tried.refusals;
      if (tried.refusals > options_.max_refusals) {
        dropped = "refused";
        is_refused = true;
        spooled_.End(spooled);
      } else if (!spooled_.PutBack(spooled)) {
        dropped = spooled.record->given_up;
      }
    } else {
      spooled_.End(spooled);
      if (receipt.outcome == Outcome::kDelivered) {
        ledger_.DeliveredFromSpool(*parcel, origin, receipt, clock_.WallNow());
      } else {
        dropped = receipt.outcome == Outcome::kRejected ? receipt.reason : "maybe_arrived";
      }
    }
    if (dropped) ledger_.DroppedFromSpool(spooled.ticks, origin, *dropped);
    WakeAll();
  }
  if (is_refused) (void)spooled.file->SetState(spooled.index, SpoolState::kDone);
  log_.Tell(news, receipt.outcome, parcel->series);
}

void Outbox::SpillAll() {
  while (directory_) {
    std::vector<WaitingParcel> parcels;
    {
      const absl::MutexLock lock(&mutex_);
      parcels = waiting_.TakeWindow();
    }
    if (parcels.empty() || !Spill(std::move(parcels))) return;
  }
}

void Outbox::StowAway() {
  if (options_.spool && !directory_) OpenSpool();
  SpillAll();
  std::deque<OfferedWindow> windows;
  {
    const absl::MutexLock lock(&mutex_);
    windows = std::exchange(windows_, {});
  }
  for (const OfferedWindow& window : windows) {
    if (directory_) {
      Pack(window);
      SpillAll();
    } else {
      const absl::MutexLock lock(&mutex_);
      ledger_.DroppedFromMemory(window.ticks, "shutdown");
    }
  }
  RemoveFinished();
  directory_.reset();  // the next outbox of this sink may be made before this one is destroyed
  const absl::MutexLock lock(&mutex_);
  has_spool_ = false;
  while (const std::optional<WaitingParcel> parcel = waiting_.TakeOldest()) {
    Drop(*parcel, "shutdown");
  }
}

}  // namespace pyrometer
