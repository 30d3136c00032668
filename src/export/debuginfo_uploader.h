// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/file_workers.h"
#include "base/log.h"
#include "export/backoff.h"
#include "export/debuginfo_client.h"
#include "export/object_files.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Asks a Parca server about the objects that profiles tell of, and sends it the files that it
// wants. One after the other and in no hurry: a file is sent as fast as it can be, since the server
// has little patience, and after it there is a pause, so that on average no more than
// Options::bytes_per_second are sent. A thread of its own does all of it. Thread-safe.
class DebuginfoUploader {
 public:
  struct Options {
    std::string name;  // of the sink, for messages
    DebuginfoClient::Options server;
    RetryPolicy retry{};
    uint64_t max_size = uint64_t{512} << 20;  // larger files are not sent
    uint64_t bytes_per_second = uint64_t{8} << 20;
    std::chrono::nanoseconds between_questions{std::chrono::milliseconds(100)};
    // What the server has it may lose: it is asked again.
    std::chrono::nanoseconds has_it_for{std::chrono::hours(1)};
    // If somebody else is sending it, there is no file at hand, or sending it fails; twice as long
    // each time after that, up to a day.
    std::chrono::nanoseconds at_work_for{std::chrono::minutes(5)};
    // Runs first in the thread: to give up capabilities, say. Those that read files inherit it.
    std::function<void()> on_thread_start = [] {};
  };
  struct Counters {
    uint64_t asked = 0;  // questions that the server answered
    uint64_t uploaded = 0;
    uint64_t uploaded_bytes = 0;
    // Questions without an answer, and files that the server wanted and has not got from us, by
    // reason: "no_file", "too_large", "unreadable", or a receipt's.
    std::map<std::string, uint64_t> failed;
    uint64_t waiting = 0;  // objects, now
  };

  // As DebuginfoClient::Make. The others outlive this.
  static Result<std::unique_ptr<DebuginfoUploader>> Make(Options options, ObjectFiles& files,
                                                         const Clock& clock, Log& log);
  ~DebuginfoUploader() { Stop(); }
  DebuginfoUploader(const DebuginfoUploader&) = delete;
  DebuginfoUploader& operator=(const DebuginfoUploader&) = delete;

  // The objects of these profiles are to be asked about, unless that is known. Never waits; beyond
  // kMostWaiting objects they have to come again.
  void Offer(const std::vector<Profile>& profiles);

  // True if the server names the object's code by itself, as far as is known.
  bool HasNames(const CodeObject& object) const;

  // Ends what is under way; ObjectFiles is not asked any more when it returns. Of one thread.
  void Stop();

  Counters counters() const;

  static constexpr size_t kMostWaiting = 1024;
  // About so many objects it is remembered what the server said.
  static constexpr size_t kMostKnown = 16384;

 private:
  enum class State : uint8_t {
    kUnknown,
    kHasIt,
    kRefused,  // for good
    kLater,
  };
  struct Known {
    State state = State::kUnknown;
    bool is_waiting = false;
    int failures = 0;       // one after the other
    MonotonicTime until{};  // it is not asked before
  };
  using Object = std::shared_ptr<const CodeObject>;

  DebuginfoUploader(Options options, std::unique_ptr<DebuginfoClient> client, ObjectFiles& files,
                    const Clock& clock, Log& log);

  void Run(const std::stop_token& stop);
  Object Next();
  // Until the server may be asked, after it has failed.
  void WaitForServer(const std::stop_token& stop) const;
  void Ask(const CodeObject& object, const std::stop_token& stop);
  void Send(const CodeObject& object, const DebuginfoId& id, const std::stop_token& stop);
  void Conclude(const CodeObject& object, const DebuginfoId& id, uint64_t size,
                const Receipt& receipt);
  // What follows from what the server, or the way to it, has said.
  void Fail(const DebuginfoId& id, const Receipt& receipt, std::chrono::nanoseconds pause);
  void CountFailure(const std::string& reason);
  void Remember(const DebuginfoId& id, State state, std::chrono::nanoseconds time);
  bool IsWorthAsking(const std::string& id, MonotonicTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<DebuginfoClient> client_;
  ObjectFiles& files_;
  const Clock& clock_;
  Log& log_;
  FileWorkers workers_;  // that read files
  Backoff backoff_;      // of the thread
  mutable absl::Mutex mutex_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Object> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);  // by ContentIdOf()
  Counters counters_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // the first to go
};

}  // namespace pyrometer
