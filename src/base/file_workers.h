// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/circuit_breaker.h"
#include "pyrometer/result.h"

namespace pyrometer {

// How a job of FileWorkers ended.
enum class FileWork {
  kDone,     // it returned in time
  kLate,     // it did not; whatever it still does, nobody waits for it
  kRefused,  // it never began: its file system does not answer, or too much is waiting; or it could
             // not be done for want of something else
};

// How long a job of FileWorkers takes though its file system answers.
enum class FileEffort : uint8_t {
  kSmall,  // milliseconds
  kLarge,  // perhaps seconds, since it computes, too
};

struct FileWorkCounters {
  uint64_t posted = 0;  // done + late + refused + not ended yet
  uint64_t done = 0;
  uint64_t late = 0;
  uint64_t refused = 0;
  uint64_t waiting = 0;  // now
  uint64_t stuck = 0;    // threads now, in jobs that are late
};

// Threads for what a file system may never answer: opening, asking about and reading files of
// profiled programs. (FUSE, NFS and the like wait for a server; such a thread cannot even be
// killed.) A job that is not done in time is given up with its thread, and another thread takes the
// place of that one. A file system with a late job gets no more but one to try it, after pauses
// that double up to a minute, until one is done in time.
//
// Of the jobs that may begin, the one that is due first does: its `limit` after it was posted. So
// it may pass those of longer limits, but only such as were posted less than the difference before
// it, and none waits for ever. Large jobs leave places to small ones, and are passed while they
// have none themselves.
//
// A job may run on after these workers are gone: it must own all that it uses. Threads are started
// when there is work, and wait without a timeout when there is none; they take no signals.
// Thread-safe.
class FileWorkers {
 public:
  struct Options {
    size_t threads = 4;  // besides stuck ones
    // Jobs that one file system may have at a time, those included that are late and have not
    // returned yet. REQUIRES: less than `threads`.
    size_t per_file_system = 2;
    // Large jobs at a time, without late ones: of all, and of one file system. REQUIRES: at least
    // one; less than the numbers above, or small jobs wait for large ones.
    size_t large = 3;
    size_t large_per_file_system = 1;
    // With so many threads stuck, only file systems are served that have answered and were not late
    // since; with twice as many, none.
    size_t max_stuck = 16;
    // Jobs that have not begun; a single file system may have a quarter of them.
    size_t max_waiting = 1024;
    CircuitBreaker::Pauses pauses = {};
  };

  // What a thread is to do. One that gives up by itself, since its file system does not answer,
  // returns FileWork::kLate, one that lacks what is not its file system's FileWork::kRefused; a
  // callable that returns nothing is always done.
  class Job {
   public:
    Job(std::nullptr_t /*none*/ = nullptr) {}
    template <typename Callable>
    requires std::is_invocable_v<Callable&>
    // NOLINTNEXTLINE(google-explicit-constructor): a std::function's is not, too
    Job(Callable callable, FileEffort effort = FileEffort::kSmall) : effort_(effort) {
      if constexpr (std::is_same_v<std::invoke_result_t<Callable&>, FileWork>) {
        work_ = std::move(callable);
      } else {
        work_ = [callable = std::move(callable)]() mutable {
          callable();
          return FileWork::kDone;
        };
      }
    }
    FileWork operator()() { return work_(); }
    FileEffort effort() const { return effort_; }

   private:
    std::function<FileWork()> work_;
    FileEffort effort_ = FileEffort::kSmall;
  };
  using OnEnd = std::function<void(FileWork)>;

  FileWorkers() : FileWorkers(Options()) {}
  explicit FileWorkers(const Options& options);
  // Waits for no job, but for calls of `on_end` under way; none begins afterwards.
  ~FileWorkers();
  FileWorkers(const FileWorkers&) = delete;
  FileWorkers& operator=(const FileWorkers&) = delete;

  // Does `job` on another thread as soon as one is free. `file_system` (st_dev, or any number that
  // stands for it) is what does not answer if the job takes longer than `limit` from its
  // beginning. `on_end` is called once, on another thread, when the job has returned or is given
  // up; it must not wait for anything. False: refused at once, and `on_end` is not called.
  [[nodiscard]] bool Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job,
                          OnEnd on_end);

  // The same, and waits until the job has ended, at most for `wait` in all. kLate: not within
  // `wait`, though it may yet be in time for the file system.
  FileWork Run(uint64_t file_system, std::chrono::nanoseconds wait, std::chrono::nanoseconds limit,
               Job job);

  // The same for a question. Nothing: there was no answer in time, or it was refused.
  template <typename Answer>
  std::optional<Answer> Ask(uint64_t file_system, std::chrono::nanoseconds wait,
                            std::chrono::nanoseconds limit, std::function<Answer()> question) {
    auto answer = std::make_shared<std::optional<Answer>>();
    const FileWork work = Run(file_system, wait, limit, [answer, question = std::move(question)] {
      answer->emplace(question());
    });
    if (work != FileWork::kDone) return std::nullopt;
    return std::move(*answer);
  }

  FileWorkCounters counters() const;

 private:
  class Pool;

  const std::shared_ptr<Pool> pool_;  // its threads share it
};

}  // namespace pyrometer
