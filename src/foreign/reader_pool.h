// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "foreign/indexer.h"
#include "foreign/nursery.h"
#include "foreign/reader_answers.h"
#include "foreign/reader_messages.h"
#include "foreign/reading_budget.h"
#include "foreign/sandbox.h"
#include "foreign/source_trust.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Processes that read files of profiled programs, in a sandbox: one task at a time each, killed and
// forgotten if they are late, and forked again when they are needed. One that has read a file which
// somebody may have made to take it over reads only that one's. Thread-safe; each caller waits for
// its own task only, but for the memory that all may take together.
class ReaderPool {
 public:
  // How much memory a task may take.
  enum class Room : uint8_t { kHeaders, kSmall, kLarge };

  struct Options {
    // Shared, as threads that are lost in a task may outlive all else.
    std::shared_ptr<const Clock> clock;
    // What all readers may take together, in bytes: those of headers, who are waited for, and the
    // others. REQUIRES: as much as each. Of 30 programs and
    // libraries up to 190 MB none took more than 48 MiB, most of 20 to 100 MB took 12 to 24; a
    // library of 555 MB with 5.9 million rows takes 64.
    uint64_t for_headers = uint64_t{32} << 20;
    uint64_t for_others = uint64_t{144} << 20;
    uint64_t of_headers = uint64_t{4} << 20;
    uint64_t of_small = uint64_t{16} << 20;
    uint64_t of_large = uint64_t{96} << 20;
    ReadingBudget::Options cpu = {};  // each 8 CPUs earn that, or fewer, if there are no more
    size_t max_idle = 6;  // readers that are kept for the next task, and how long without one
    std::chrono::nanoseconds longest_idle = std::chrono::seconds(10);
    std::shared_ptr<Indexer> indexer = nullptr;  // that each reader has; null: an InProcessIndexer
  };
  struct Counters {
    uint64_t started = 0;   // readers
    uint64_t tasks = 0;     // begun
    uint64_t late = 0;      // of these, given up
    uint64_t died = 0;      // of these, with their reader, for whatever reason
    uint64_t no_room = 0;   // tasks that never began: others took all memory meanwhile
    uint64_t over_cpu = 0;  // likewise: the payer, or all, had spent what CPU time they may take
    uint64_t cpu_us = 0;    // CPU time that tasks took
    uint64_t living = 0;    // readers, now
    uint64_t reserved = 0;  // of their memory, in bytes, now
  };

  // REQUIRES: this process has one thread. Errors: those of Nursery; kUnsupported if there is no
  // sandbox to read in.
  static Result<std::unique_ptr<ReaderPool>> Start(const Options& options);

  ~ReaderPool();
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // What the first reader could give away, and so each.
  const SandboxLevel& level() const { return level_; }
  const Clock& clock() const { return *options_.clock; }
  // The process that forks them now.
  pid_t nursery() const;

  // A task, with a reader of its own until this ends.
  class Task : public AnswerMessages {
   public:
    ~Task() override;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    // To be called once, before Next(). `value` goes with it. Errors: kInternal if the reader has
    // died.
    Result<void> Begin(ReaderTask task, const FilesToRead& files, std::span<const std::byte> value);
    // Errors: kIo if the reader is late; kInternal if it has died; kExhausted if a stop came first.
    Result<ReaderChannel::Message> Next() override;
    // The reader has no further task.
    void Distrust() { is_fit_ = false; }

   private:
    friend class ReaderPool;
    struct Reader;

    Task(ReaderPool& pool, std::unique_ptr<Reader> reader, MonotonicTime until,
         std::stop_token stop);

    ReaderPool& pool_;
    std::unique_ptr<Reader> reader_;
    const MonotonicTime until_;
    const std::stop_token stop_;
    bool is_fit_ = false;  // the reader has said its last word of this task, and no other
  };
  struct Limits {
    Payer payer{};
    Room room = Room::kSmall;
    std::chrono::nanoseconds time{};  // by the clock, waiting included
    std::stop_token stop{};
  };

  // Those who wait for memory get it in the order in which they came; but nobody waits with headers
  // for those who wait with the rest of a file. Errors: kIo if there was none in time, or the payer
  // has spent too much CPU time ("not read: over budget"), or no process could be had.
  Result<std::unique_ptr<Task>> Take(const SourceTrust& trust, const Limits& limits);

  // Ends readers that have had no task for long. One that a file has taken over may use CPU time
  // meanwhile, which no task has a limit on, and nobody else looks. To be called now and then.
  void EndLongIdle();

  Counters counters();

 private:
  using Reader = Task::Reader;
  // A part of the memory, and an element for each who waits for it.
  struct Share {
    uint64_t memory = 0;
    uint64_t reserved = 0;
    std::list<char> waiting{};
  };

  ReaderPool(const Options& options, Nursery nursery);

  uint64_t MemoryOf(Room room) const;
  std::unique_ptr<Reader> TakeIdle(const SourceTrust& trust, Room room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTheDead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Share& ShareOf(Room room) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(Room room) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(std::unique_ptr<Reader> reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountTheGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<std::unique_ptr<Reader>> Reserve(const SourceTrust& trust, Room room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result<std::unique_ptr<Reader>> TakeOrReserve(const SourceTrust& trust, const Limits& limits,
                                                MonotonicTime until);
  Result<SandboxLevel> Prepare(Reader& reader) const;
  void Return(std::unique_ptr<Reader> reader, bool is_fit);
  void Charge(Reader& reader, std::chrono::nanoseconds if_gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(uint64_t Counters::*counter);

  const Options options_;
  SandboxLevel level_;
  mutable absl::Mutex mutex_;
  Nursery nursery_ ABSL_GUARDED_BY(mutex_);
  // The one used last comes last.
  std::vector<std::unique_ptr<Reader>> idle_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Reader>> ending_ ABSL_GUARDED_BY(mutex_);  // killed, and not gone yet
  ReadingBudget cpu_ ABSL_GUARDED_BY(mutex_);
  Share of_headers_ ABSL_GUARDED_BY(mutex_);
  Share of_others_ ABSL_GUARDED_BY(mutex_);
  absl::CondVar changed_;  // somebody may go on who waits
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

// What holds a reader, which is started for this. REQUIRES and errors: those of ReaderPool::Start.
Result<SandboxLevel> ProbeSandbox(const Clock& clock);

}  // namespace pyrometer
