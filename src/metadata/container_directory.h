// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "metadata/container_metadata.h"
#include "metadata/container_source.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// The containers of this machine by id. Nobody who asks is kept waiting: a thread of its own lists
// the source's containers when an id is asked for that it does not have, and not otherwise, so that
// a machine on which no container starts costs nothing. Thread-safe.
class ContainerDirectory {
 public:
  struct Options {
    // Between two listings; after failures it doubles up to the longest.
    std::chrono::nanoseconds pause{std::chrono::seconds(1)};
    std::chrono::nanoseconds longest_pause{std::chrono::minutes(1)};
    // A container is listed only once the runtime has made it, which may be after its first
    // process; one that so many listings lack is none of that runtime.
    uint32_t most_misses = 3;
    // It is asked for nevertheless until it is so old, with pauses as long as its age: the kubelet
    // tells of a container only once its pod's status has been made anew.
    std::chrono::nanoseconds longest_delay{std::chrono::minutes(5)};
    // So many listings in a row may fail before nothing is expected of the source any more.
    uint32_t most_failures = 3;
    // A container that is neither listed nor asked for is remembered for so long.
    std::chrono::nanoseconds keep{std::chrono::minutes(10)};
    // Known or not; of more, those that were of use last stay.
    size_t most_containers = 8192;
    // Told of a failed listing, and with nullptr of a good one after that; may be empty. Called on
    // the directory's thread.
    std::function<void(const Error*)> told{};
  };

  // What is known of a container.
  struct Answer {
    enum class State : uint8_t {
      kKnown,
      kAwaited,  // it is being asked for
      kUnknown,  // nobody knows it, or there is nobody to ask; it may become known nevertheless
    };
    State state = State::kUnknown;
    std::shared_ptr<const ContainerMetadata> metadata = nullptr;  // if it is known
  };

  struct Counters {
    uint64_t listings = 0;
    uint64_t failures = 0;  // of these
    uint64_t known = 0;     // containers and sandboxes, now
    uint64_t awaited = 0;   // ids, now
    uint64_t unknown = 0;   // ids, now
  };

  // Its thread has the capabilities of the thread that calls this. `clock` outlives it.
  ContainerDirectory(Options options, std::unique_ptr<ContainerSource> source, const Clock& clock);
  // Cancels what the source is doing.
  ~ContainerDirectory();
  ContainerDirectory(const ContainerDirectory&) = delete;
  ContainerDirectory& operator=(const ContainerDirectory&) = delete;

  // Answers from memory, at once.
  Answer Find(std::string_view id);

  Counters counters() const;

  // How often what Find() answers of a container that is known has changed.
  uint64_t changes() const { return changes_; }

 private:
  struct Entry {
    std::shared_ptr<const ContainerMetadata> metadata = nullptr;  // null: not known
    MonotonicTime first_use;
    MonotonicTime last_use;  // when it was listed or asked for last
    uint32_t misses = 0;     // listings since the first use that lack it
  };

  void Run();
  // The source has something new.
  void Want();
  // False at the end.
  bool AwaitWork();
  bool IsStopping() const;
  // The error that `answer` was.
  std::optional<Error> TakeAnswer(Result<std::vector<ContainerMetadata>> answer,
                                  MonotonicTime begun);
  void Take(std::vector<ContainerMetadata> list, MonotonicTime begun)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeFailure(const Error& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAwaited(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has `entry`, which so many listings lack, be asked for once more, unless it is too old.
  void AskLater(const Entry& entry, MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<ContainerSource> source_;
  const Clock& clock_;
  std::atomic<uint64_t> changes_ = 0;
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // a listing
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  bool hopeless_ ABSL_GUARDED_BY(mutex_) = false;  // until a listing succeeds
  uint64_t listings_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  MonotonicTime next_ ABSL_GUARDED_BY(mutex_);                  // no listing before
  std::optional<MonotonicTime> later_ ABSL_GUARDED_BY(mutex_);  // a listing nobody has to want
  std::jthread thread_;  // the last: it uses all of the above
};

}  // namespace pyrometer
