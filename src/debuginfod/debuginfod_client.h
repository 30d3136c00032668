// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/circuit_breaker.h"
#include "base/clock.h"
#include "base/message_socket.h"
#include "base/nursery.h"
#include "base/unique_fd.h"
#include "debuginfod/debuginfod_child.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

struct DebuginfodCounts {
  uint64_t found = 0;
  uint64_t none = 0;     // no server has it
  uint64_t failed = 0;   // servers that cannot be reached, or answer nonsense
  uint64_t late = 0;     // did not answer in time: the process was killed
  uint64_t refused = 0;  // not asked for, because too many wait, or servers failed just before
};

// Asks debuginfod servers for debug files, in another process: see ServeDownloads(). One at a time;
// nobody waits. A process that does not answer in time, ends or talks nonsense is killed, and the
// next question gets another one. What is not found is not asked for again for a while; when
// servers do not answer at all, nothing is, for a while that doubles. Thread-safe.
class DebuginfodClient {
 public:
  // libdebuginfod does not ask again for 10 minutes (cache_miss_s).
  static constexpr std::chrono::minutes kRetry{11};

  struct Options {
    DownloadOptions downloads;
    std::chrono::nanoseconds time_limit = std::chrono::seconds(120);  // of one file
    CircuitBreaker::Pauses pauses{.first = std::chrono::seconds(10),
                                  .longest = std::chrono::minutes(10)};
    size_t most_waiting = 1024;
    size_t most_missed = 16384;  // 1 MB
    // For tests: another clock than the machine's, which must outlive the client, and what the
    // process does instead of ServeDownloads().
    const Clock* clock = nullptr;
    Nursery::Work work = {};
  };

  // Makes the directory of downloads and starts the process. REQUIRES: this process has one thread.
  // Errors: kInvalid if no server is named; kUnsupported if there is no libdebuginfod, or the
  // process cannot be confined; kPermission if the directory cannot be reached once it is; those of
  // the directory and of Nursery.
  static Result<std::unique_ptr<DebuginfodClient>> Start(Options options);
  // Answers what waits with null.
  ~DebuginfodClient();
  DebuginfodClient(const DebuginfodClient&) = delete;
  DebuginfodClient& operator=(const DebuginfodClient&) = delete;

  // A regular file of at most the size allowed, and nothing more is known of it: whoever uses it
  // checks its build id, and trusts its bytes no more than those of any other file. Null: there is
  // none. Called once, on another thread or by the destructor; must not wait for anything.
  using OnFound = std::function<void(std::shared_ptr<const UniqueFd>)>;
  // False if no server will be asked, because none had it or too many questions wait: then
  // `on_found` is never called, so that nobody is called with his own locks held.
  [[nodiscard]] bool Find(const BuildId& build_id, OnFound on_found);

  DebuginfodCounts counts() const;

 private:
  enum class Outcome { kFound, kNone, kFailed, kLate };
  struct Miss {
    BuildId build_id;
    MonotonicTime when;
  };

  DebuginfodClient(Options options, std::unique_ptr<Nursery> nursery)
      : options_(std::move(options)), nursery_(std::move(nursery)) {}

  MonotonicTime Now() const {
    return options_.clock == nullptr ? MonotonicNow() : options_.clock->Now();
  }

  // The thread's.
  void Run();
  bool WaitForWork(BuildId& next);
  Outcome Download(const BuildId& build_id, UniqueFd& file);
  bool IsAcceptable(const UniqueFd& file) const;
  Result<void> Fork();
  void GiveUp();

  void Note(const BuildId& build_id, Outcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WasMissed(const BuildId& build_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayAsk(const BuildId& build_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<Nursery> nursery_;
  MessageSocket socket_;  // to the process, if there is one; the thread's, once it runs

  mutable absl::Mutex mutex_;
  pid_t pid_ ABSL_GUARDED_BY(mutex_) = 0;  // of the process; 0: none
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<BuildId> waiting_ ABSL_GUARDED_BY(mutex_);
  // Who waits for what is waiting, or is being downloaded.
  absl::flat_hash_map<BuildId, std::vector<OnFound>> waiters_ ABSL_GUARDED_BY(mutex_);
  std::deque<Miss> missed_in_order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<BuildId> missed_ ABSL_GUARDED_BY(mutex_);
  CircuitBreaker breaker_ ABSL_GUARDED_BY(mutex_);
  DebuginfodCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // begins with the first question
};

}  // namespace pyrometer
