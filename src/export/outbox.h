// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "export/backoff.h"
#include "export/delivery_counters.h"
#include "export/delivery_ledger.h"
#include "export/delivery_log.h"
#include "export/delivery_turn.h"
#include "export/outbox_options.h"
#include "export/spool_directory.h"
#include "export/spooled_files.h"
#include "export/waiting_parcels.h"
#include "pyrometer/profile.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Delivers windows to one sink, through its outages, and knows of every tick what became of it.
// Whatever the sink and the disk do, nobody else waits for them. Threads: one packs, one looks
// after the spool if there is one, and up to Options::concurrency deliver. Thread-safe.
class Outbox {
 public:
  using Options = OutboxOptions;

  // The others outlive this.
  Outbox(Options options, ProfileSink& sink, const Clock& clock, Log& log);
  // Closes it now, if it was not.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // The profiles of one window, possibly none; other outboxes may share them. Never waits: what
  // does not fit is dropped, oldest first, and counted.
  void Offer(std::shared_ptr<const std::vector<Profile>> profiles);

  // Delivers what is in memory until `deadline` (the spool's turn is the next run's), then cancels
  // what is under way and puts the rest into the spool, or drops it. Returns sooner if nothing is
  // left, or if the sink is failing and its next turn is later. May take longer by what the sink
  // needs to notice its cancellation, and the disk to write. REQUIRES: called once.
  void Close(MonotonicTime deadline);

  DeliveryCounters counters() const;

 private:
  enum class Phase { kOpen, kHurrying, kStopped };

  bool Is(Phase phase) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_ == phase; }
  // Waits for a change, at most until `until`.
  void Await(std::optional<MonotonicTime> until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Await(absl::CondVar& change, std::optional<MonotonicTime> until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::jthread StartThread(void (Outbox::*run)());
  // The threads that pack and look after the spool, unless they run.
  void StartKeeping() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static uint64_t TicksOf(const Profile& profile);

  // The packing thread.
  void PackWindows() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<OfferedWindow> NextWindow() ABSL_LOCKS_EXCLUDED(mutex_);
  void Pack(const OfferedWindow& window) ABSL_LOCKS_EXCLUDED(mutex_);
  void Queue(const OfferedWindow& window, const Profile& profile, Packed packed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShedOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShedMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const WaitingParcel& parcel, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The delivering threads.
  void DeliverParcels() ABSL_LOCKS_EXCLUDED(mutex_);
  void StartDelivering() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<DeliveryTurn> NextTurn() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<DeliveryTurn> TakeTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<MonotonicTime> WhenToLook() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(const WaitingParcel& waiting, uint64_t period) ABSL_LOCKS_EXCLUDED(mutex_);
  void Deliver(const SpooledParcel& spooled, uint64_t period) ABSL_LOCKS_EXCLUDED(mutex_);
  // What all outcomes have in common.
  DeliveryNews Book(const Receipt& receipt, uint64_t period) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsToBeRepeated(const Receipt& receipt) const;

  // The spool's thread; outbox_spool.cc.
  void KeepSpool() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until there is something to do, does one thing. False: no more.
  bool KeepSpoolOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<MonotonicTime> WhenToKeep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::chrono::nanoseconds MaxAgeInSpool() const;
  bool WantsSpilling() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CanUseDisk() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenSpool() ABSL_LOCKS_EXCLUDED(mutex_);
  void AddFound(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  void ShedSpool(uint64_t coming) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(const SpooledFiles::Record& record, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if the disk failed: then they are in memory again.
  bool Spill(std::vector<WaitingParcel> parcels) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveFinished() ABSL_LOCKS_EXCLUDED(mutex_);
  void OpenNext(const SpooledFiles::Record& record) ABSL_LOCKS_EXCLUDED(mutex_);
  void Admit(const SpooledFiles::Record& record, SpoolFile file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SpoolFailed(std::string_view what, const Error& error) ABSL_LOCKS_EXCLUDED(mutex_);
  void LoseSpool() ABSL_LOCKS_EXCLUDED(mutex_);
  // A parcel that is to be sent, whose attempt is on the disk; nothing if it cannot be.
  std::optional<Parcel> Prepare(const SpooledParcel& spooled) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last of Close: nobody else is left.
  void SpillAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void StowAway() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  ProfileSink& sink_;
  const Clock& clock_;
  const DeliveryLog log_;
  // Of the spool's thread, and of Close after it. The delivering threads have files of their own.
  std::optional<SpoolDirectory> directory_;
  uint64_t next_file_ = 1;

  mutable absl::Mutex mutex_;
  absl::CondVar changed_;  // for all threads but those that deliver
  // For delivering threads that have nothing to do: there are hundreds of parcels in a window, and
  // to wake all threads for each costs more than to send it. So of those that wait at least one
  // wakes when the next parcel is due, and each that gets a parcel wakes another if more wait.
  absl::CondVar turns_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kOpen;
  std::deque<OfferedWindow> windows_ ABSL_GUARDED_BY(mutex_);
  std::optional<OfferedWindow> packing_ ABSL_GUARDED_BY(mutex_);
  uint64_t offered_windows_ ABSL_GUARDED_BY(mutex_) = 0;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  WaitingParcels waiting_ ABSL_GUARDED_BY(mutex_);
  SpooledFiles spooled_ ABSL_GUARDED_BY(mutex_);
  DeliveryLedger ledger_ ABSL_GUARDED_BY(mutex_);
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  uint64_t answers_ ABSL_GUARDED_BY(mutex_) = 0;  // deliveries and rejections
  uint32_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // delivering threads that wait
  bool is_spools_turn_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_spool_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicTime disk_resumes_ ABSL_GUARDED_BY(mutex_);
  std::chrono::nanoseconds disk_pause_ ABSL_GUARDED_BY(mutex_){};
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;

  std::jthread packing_thread_ ABSL_GUARDED_BY(mutex_);
  std::jthread spool_thread_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::jthread> delivering_threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pyrometer
