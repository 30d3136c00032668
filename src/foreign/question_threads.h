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

#include "base/clock.h"
#include "pyrometer/result.h"

namespace pyrometer {

// How a question ended.
enum class QuestionEnd {
  kDone,     // it was answered, if only with an error
  kLate,     // it was not: its file system, or whoever was asked, takes too long
  kRefused,  // it was never asked, since too much is waiting or another one was late; or it could
             // not be answered for want of something else
};

// How long an answer takes though the file system is there.
enum class Effort : uint8_t {
  kSmall,  // milliseconds
  kLarge,  // perhaps seconds, since something is computed, too
};

// Of a job that got this from openers.
template <typename T>
QuestionEnd EndOf(const Result<T>& answer) {
  if (answer) return QuestionEnd::kDone;
  if (answer.error().code() == ErrorCode::kLate) return QuestionEnd::kLate;
  return answer.error().code() == ErrorCode::kExhausted ? QuestionEnd::kRefused
                                                        : QuestionEnd::kDone;
}

struct QuestionCounters {
  uint64_t posted = 0;  // done + late + refused + not ended yet
  uint64_t done = 0;
  uint64_t late = 0;
  uint64_t refused = 0;
  uint64_t waiting = 0;  // now
  uint64_t telling = 0;  // threads that tell of ends, which may lead to other questions, now
};

// Threads that ask openers (ForeignFiles) and readers (Indexer), and wait for them. These may
// take seconds where a file system does not answer, but heed a limit, so each job ends. What
// does not answer takes little from the rest: a file system has only so many jobs at a time. One
// that was late the last time has one, waiting or not, and the rest is refused. Those that were
// late twice in a row have a quarter of the threads, and three quarters, and half of the places to
// wait, together with those that have not answered since.
//
// Of the jobs that may begin, the one that is due first does: its `limit` after it was posted. So
// it may pass those of longer limits, but only such as were posted less than the difference before
// it, and none waits for ever. Large jobs leave places to small ones, and are passed while they
// have none themselves.
//
// A job under way is not waited for at the end, as it may take its limit: it must own all that it
// uses. Threads are started when there is work, and wait without a timeout when there is none; they
// take no signals. Thread-safe.
class QuestionThreads {
 public:
  struct Options {
    size_t threads = 4;  // REQUIRES: at least 2
    // Jobs at a time. REQUIRES: less than `threads`, or one file system may keep all others
    // waiting.
    size_t per_file_system = 2;
    // Large jobs at a time: of all, and of one file system. REQUIRES: at least one; less than
    // three quarters of the threads, and than `per_file_system`, or small jobs wait for large ones.
    size_t large = 2;
    size_t large_per_file_system = 1;
    // Jobs that have not begun; a single file system may have a quarter of them.
    size_t max_waiting = 1024;
  };

  // What a thread is to do. A callable that returns nothing is always done.
  class Job {
   public:
    Job(std::nullptr_t /*none*/ = nullptr) {}
    template <typename Callable>
    requires std::is_invocable_v<Callable&>
    // NOLINTNEXTLINE(google-explicit-constructor): a std::function's is not, too
    Job(Callable callable, Effort effort = Effort::kSmall) : effort_(effort) {
      if constexpr (std::is_same_v<std::invoke_result_t<Callable&>, QuestionEnd>) {
        work_ = std::move(callable);
      } else {
        work_ = [callable = std::move(callable)]() mutable {
          callable();
          return QuestionEnd::kDone;
        };
      }
    }
    QuestionEnd operator()() { return work_(); }
    Effort effort() const { return effort_; }

   private:
    std::function<QuestionEnd()> work_;
    Effort effort_ = Effort::kSmall;
  };
  using OnEnd = std::function<void(QuestionEnd)>;

  // `clock` outlives them, but not their jobs.
  explicit QuestionThreads(const Clock& clock) : QuestionThreads(clock, Options()) {}
  QuestionThreads(const Clock& clock, const Options& options);
  // Waits for no job, but for calls of `on_end` under way; none begins afterwards.
  ~QuestionThreads();
  QuestionThreads(const QuestionThreads&) = delete;
  QuestionThreads& operator=(const QuestionThreads&) = delete;

  // Does `job` on another thread as soon as one is free. `file_system` (st_dev, or any number that
  // stands for it) is what may not answer, or whose turn it is (AccountOf()). `limit` is about how
  // long the job takes at most, by its own account. `on_end` is called once, on another thread,
  // when the job has returned, or will not be done; it must not wait for anything. False: refused
  // at once, and `on_end` is not called.
  [[nodiscard]] bool Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job,
                          OnEnd on_end);

  // The same, and waits until the job has ended, at most for `wait` in all. kLate: not within
  // `wait`, though it may yet end well.
  QuestionEnd Run(uint64_t file_system, std::chrono::nanoseconds wait,
                  std::chrono::nanoseconds limit, Job job);

  // The same for a question. Nothing: there was no answer in time, or it was refused.
  template <typename Answer>
  std::optional<Answer> Ask(uint64_t file_system, std::chrono::nanoseconds wait,
                            std::chrono::nanoseconds limit, std::function<Answer()> question) {
    auto answer = std::make_shared<std::optional<Answer>>();
    const QuestionEnd end = Run(file_system, wait, limit, [answer, question = std::move(question)] {
      answer->emplace(question());
    });
    if (end != QuestionEnd::kDone) return std::nullopt;
    return std::move(*answer);
  }

  QuestionCounters counters() const;

 private:
  class Pool;

  const Clock& clock_;
  const std::shared_ptr<Pool> pool_;  // its threads share it
};

}  // namespace pyrometer
