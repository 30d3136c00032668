// SPDX-License-Identifier: Apache-2.0
#include "foreign/question_threads.h"

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <list>
#include <vector>

namespace pyrometer {
namespace {

// Beyond so many, file systems with nothing under way are forgotten: whether they answer is found
// out anew.
constexpr size_t kMaxKnown = 1024;

using Body = std::function<void()>;

void* RunBody(void* body) {
  const std::unique_ptr<Body> owned(static_cast<Body*>(body));
  (*owned)();
  return nullptr;
}

// A thread that nobody joins and that takes no signals. False: there is no room for one.
bool StartThread(const char* name, Body body) {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_attr_setsigmask_np(&attributes, &all);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto owned = std::make_unique<Body>([name, body = std::move(body)] {
    ::pthread_setname_np(::pthread_self(), name);
    body();
  });
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, &attributes, &RunBody, owned.get()) == 0;
  ::pthread_attr_destroy(&attributes);
  if (started) owned.release();  // NOLINT(bugprone-unused-return-value): RunBody() owns it
  return started;
}

}  // namespace

class QuestionThreads::Pool : public std::enable_shared_from_this<Pool> {
 public:
  explicit Pool(const Options& options) : options_(options) {}

  // `due`: by which it is begun before or after others.
  bool Post(uint64_t file_system, MonotonicTime due, Job job, OnEnd on_end);
  void Close();
  QuestionCounters counters() const;

 private:
  // What is known of a file system; kLate: twice in a row.
  enum class Record : uint8_t { kNone, kAnswers, kLateOnce, kLate };
  // Jobs that run.
  struct Running {
    size_t all = 0;
    size_t large = 0;
  };
  struct FileSystem {
    Record record = Record::kNone;
    size_t waiting = 0;
    Running running = {};
  };
  struct Task {
    uint64_t file_system;
    MonotonicTime due;
    Job job;
    OnEnd on_end;
    Record record = Record::kNone;  // of its file system when it began
    bool is_large = job.effort() == Effort::kLarge;
  };
  using Tasks = std::list<Task>;
  // What is to be called, and destroyed, without the lock.
  struct Ended {
    OnEnd on_end;
    Job job;
    QuestionEnd end;
  };

  void ForgetIdle(bool that_answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoomFor(const FileSystem& file_system) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EnsureThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Tasks::iterator FirstReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Next(Tasks& begun);
  void Finish(Tasks ended, QuestionEnd end);
  void Count(const Task& task, ptrdiff_t change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteLate(const Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefuseWaiting(uint64_t file_system, std::vector<Ended>& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(std::vector<Ended> ended);
  void Work();

  const Options options_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;  // a thread may go on
  absl::flat_hash_map<uint64_t, FileSystem> file_systems_ ABSL_GUARDED_BY(mutex_);
  Tasks waiting_ ABSL_GUARDED_BY(mutex_);  // what is due first comes first
  Running running_ ABSL_GUARDED_BY(mutex_);
  size_t unproven_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, of file systems that may be late again
  size_t late_ ABSL_GUARDED_BY(mutex_) = 0;      // and of those that were late
  QuestionCounters counters_ ABSL_GUARDED_BY(mutex_);
  size_t threads_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t telling_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

bool QuestionThreads::Pool::Post(uint64_t file_system, MonotonicTime due, Job job, OnEnd on_end) {
  const absl::MutexLock lock(&mutex_);
  ++counters_.posted;
  if (file_systems_.size() >= kMaxKnown) {
    ForgetIdle(/*that_answer=*/false);
    if (file_systems_.size() >= kMaxKnown) ForgetIdle(/*that_answer=*/true);
  }
  if (is_closed_ || !HasRoomFor(file_systems_[file_system])) {
    ++counters_.refused;
    return false;
  }
  const auto task = waiting_.insert(std::ranges::upper_bound(waiting_, due, {}, &Task::due),
                                    {file_system, due, std::move(job), std::move(on_end)});
  if (!EnsureThreads()) {
    waiting_.erase(task);
    ++counters_.refused;
    return false;
  }
  ++file_systems_[file_system].waiting;
  changed_.Signal();
  return true;
}

void QuestionThreads::Pool::ForgetIdle(bool that_answer) {
  absl::erase_if(file_systems_, [&](const auto& entry) {
    const FileSystem& known = entry.second;
    const bool is_idle = known.waiting == 0 && known.running.all == 0;
    return is_idle && (known.record == Record::kAnswers) == that_answer;
  });
}

bool QuestionThreads::Pool::HasRoomFor(const FileSystem& file_system) const {
  const size_t waiting = waiting_.size();
  if (waiting >= options_.max_waiting) return false;
  if (file_system.waiting >= (options_.max_waiting + 3) / 4) return false;
  if (file_system.record == Record::kAnswers) return true;
  if (waiting >= (options_.max_waiting + 1) / 2) return false;
  return file_system.record == Record::kNone || file_system.waiting + file_system.running.all == 0;
}

// False if nobody could ever do the work.
bool QuestionThreads::Pool::EnsureThreads() {
  if (idle_ < waiting_.size() && threads_ < options_.threads) {
    if (StartThread("questions", [self = shared_from_this()] { self->Work(); })) ++threads_;
  }
  return threads_ > 0;
}

bool QuestionThreads::Pool::MayBegin(const Task& task) {
  const FileSystem& file_system = file_systems_[task.file_system];
  const size_t for_late = std::max<size_t>(options_.threads / 4, 1);
  const size_t for_unproven = std::max<size_t>(3 * options_.threads / 4, 1);
  if (file_system.running.all >= options_.per_file_system) return false;
  if (file_system.record == Record::kLate && late_ >= for_late) return false;
  if (file_system.record != Record::kAnswers && unproven_ + late_ >= for_unproven) return false;
  return !task.is_large || (running_.large < options_.large &&
                            file_system.running.large < options_.large_per_file_system);
}

QuestionThreads::Pool::Tasks::iterator QuestionThreads::Pool::FirstReady() {
  return std::ranges::find_if(
      waiting_, [this](const Task& task) ABSL_NO_THREAD_SAFETY_ANALYSIS { return MayBegin(task); });
}

// Waits for a task and begins it. False: there will be none.
bool QuestionThreads::Pool::Next(Tasks& begun) {
  const absl::MutexLock lock(&mutex_);
  ++idle_;
  auto task = FirstReady();
  for (; !is_closed_ && task == waiting_.end(); task = FirstReady()) changed_.Wait(&mutex_);
  --idle_;
  if (is_closed_) {
    --threads_;
    return false;
  }
  FileSystem& file_system = file_systems_[task->file_system];
  --file_system.waiting;
  task->record = file_system.record;
  Count(*task, 1);
  begun.splice(begun.end(), waiting_, task);
  return true;
}

// A task that begins, or has ended.
void QuestionThreads::Pool::Count(const Task& task, ptrdiff_t change) {
  const auto by = static_cast<size_t>(change);
  for (Running* const running : {&running_, &file_systems_[task.file_system].running}) {
    running->all += by;
    if (task.is_large) running->large += by;
  }
  if (task.record == Record::kNone || task.record == Record::kLateOnce) unproven_ += by;
  if (task.record == Record::kLate) late_ += by;
}

void QuestionThreads::Pool::Work() {
  for (Tasks task; Next(task);) {
    const QuestionEnd end = task.front().job();
    task.front().job = nullptr;  // what it owns may be slow to go
    Finish(std::exchange(task, {}), end);
  }
}

void QuestionThreads::Pool::Finish(Tasks ended, QuestionEnd end) {
  Task& task = ended.front();
  std::vector<Ended> told;  // destroyed without the lock
  {
    const absl::MutexLock lock(&mutex_);
    Count(task, -1);
    // Its place is free, and its file system may have more by now.
    if (!waiting_.empty()) changed_.SignalAll();
    told.push_back({std::move(task.on_end), nullptr, end});
    switch (end) {
      case QuestionEnd::kDone:
        ++counters_.done;
        file_systems_[task.file_system].record = Record::kAnswers;
        break;
      case QuestionEnd::kRefused:
        ++counters_.refused;
        break;
      case QuestionEnd::kLate:
        ++counters_.late;
        NoteLate(task);
        RefuseWaiting(task.file_system, told);
        break;
    }
    if (is_closed_) return;
    ++telling_;
  }
  Tell(std::move(told));
}

// Those that began together are late together.
void QuestionThreads::Pool::NoteLate(const Task& task) {
  Record& record = file_systems_[task.file_system].record;
  const bool again = task.record == Record::kLateOnce || record == Record::kLate;
  record = again ? Record::kLate : Record::kLateOnce;
}

void QuestionThreads::Pool::RefuseWaiting(uint64_t file_system, std::vector<Ended>& ended) {
  for (auto task = waiting_.begin(); task != waiting_.end();) {
    if (task->file_system != file_system) {
      ++task;
      continue;
    }
    ended.push_back({std::move(task->on_end), std::move(task->job), QuestionEnd::kRefused});
    task = waiting_.erase(task);
    ++counters_.refused;
    --file_systems_[file_system].waiting;
  }
}

// Calls what is to be told of ends. REQUIRES: that is counted in telling_.
void QuestionThreads::Pool::Tell(std::vector<Ended> ended) {
  for (const Ended& end : ended) {
    if (end.on_end) end.on_end(end.end);
  }
  ended.clear();
  const absl::MutexLock lock(&mutex_);
  --telling_;
}

void QuestionThreads::Pool::Close() {
  Tasks dropped;  // destroyed without the lock
  const absl::MutexLock lock(&mutex_);
  is_closed_ = true;
  dropped.swap(waiting_);
  changed_.SignalAll();
  const auto is_told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return telling_ == 0; };
  mutex_.Await(absl::Condition(&is_told));
}

QuestionCounters QuestionThreads::Pool::counters() const {
  const absl::MutexLock lock(&mutex_);
  QuestionCounters counters = counters_;
  counters.waiting = waiting_.size();
  counters.telling = telling_;
  return counters;
}

QuestionThreads::QuestionThreads(const Clock& clock, const Options& options)
    : clock_(clock), pool_(std::make_shared<Pool>(options)) {}

QuestionThreads::~QuestionThreads() {
  pool_->Close();
}

bool QuestionThreads::Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job,
                           OnEnd on_end) {
  return pool_->Post(file_system, After(clock_.Now(), limit), std::move(job), std::move(on_end));
}

QuestionEnd QuestionThreads::Run(uint64_t file_system, std::chrono::nanoseconds wait,
                                 std::chrono::nanoseconds limit, Job job) {
  struct Answer {
    absl::Mutex mutex;
    std::optional<QuestionEnd> end ABSL_GUARDED_BY(mutex);
  };
  const auto answer = std::make_shared<Answer>();
  const bool posted = Post(file_system, limit, std::move(job), [answer](QuestionEnd end) {
    const absl::MutexLock lock(&answer->mutex);
    answer->end = end;
  });
  if (!posted) return QuestionEnd::kRefused;
  const absl::MutexLock lock(&answer->mutex);
  const auto has_ended = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return answer->end.has_value(); };
  answer->mutex.AwaitWithTimeout(absl::Condition(&has_ended), absl::FromChrono(wait));
  return answer->end.value_or(QuestionEnd::kLate);
}

QuestionCounters QuestionThreads::counters() const {
  return pool_->counters();
}

}  // namespace pyrometer
