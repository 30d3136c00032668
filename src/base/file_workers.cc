// SPDX-License-Identifier: Apache-2.0
#include "base/file_workers.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace pyrometer {
namespace {

// Beyond so many, file systems with nothing under way are forgotten, which costs at most a late job
// each.
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

class FileWorkers::Pool : public std::enable_shared_from_this<Pool> {
 public:
  explicit Pool(const Options& options) : options_(options) {}

  bool Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job, OnEnd on_end);
  void Close();
  FileWorkCounters counters() const;

 private:
  struct FileSystem {
    CircuitBreaker breaker;
    size_t waiting = 0;
    size_t running = 0;         // late ones included
    size_t large = 0;           // of these, large ones that are not late
    bool has_answered = false;  // and was not late since
  };
  struct Task {
    uint64_t file_system;
    std::chrono::nanoseconds limit;
    Job job;
    OnEnd on_end;
    MonotonicTime due;  // by which it is begun before or after others
    bool is_large = job.effort() == FileEffort::kLarge;
    MonotonicTime deadline = {};  // once it runs
    bool is_late = false;
  };
  using Tasks = std::list<Task>;
  using Lock = std::unique_lock<std::mutex>;
  // What is to be called, and destroyed, without the lock.
  struct Ended {
    OnEnd on_end;
    Job job;
    FileWork work;
  };

  // All of these with the lock held.
  bool Admits(FileSystem& file_system, MonotonicTime now) const;
  bool EnsureThreads();
  void ForgetSome();
  bool MayBegin(const Task& task);
  Tasks::iterator FirstReady();
  Tasks::iterator Next(Lock& lock);
  bool Finish(Tasks::iterator task, FileWork work, Lock& lock);
  void LeaveLarge(const Task& task);
  std::vector<Ended> GiveUpLate(MonotonicTime now);
  void NoteLate(Task& task, MonotonicTime now, std::vector<Ended>& ended);
  void RefuseWaiting(uint64_t file_system, std::vector<Ended>& ended);
  MonotonicTime NextDeadline() const;
  void Tell(std::vector<Ended> ended, Lock& lock);

  void Work();
  void Watch();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable work_;   // for workers
  std::condition_variable watch_;  // for the one that watches the deadlines
  std::condition_variable told_;   // for Close()
  std::unordered_map<uint64_t, FileSystem> file_systems_;
  Tasks waiting_;  // what is due first comes first
  Tasks running_;
  MonotonicTime watched_{UINT64_MAX};  // the watching thread sleeps until then
  FileWorkCounters counters_;
  size_t large_ = 0;    // jobs that run and are not late
  size_t threads_ = 0;  // not stuck
  size_t idle_ = 0;
  size_t telling_ = 0;
  bool is_watching_ = false;
  bool is_closed_ = false;
};

bool FileWorkers::Pool::Admits(FileSystem& file_system, MonotonicTime now) const {
  if (is_closed_ || waiting_.size() >= options_.max_waiting) return false;
  if (file_system.waiting >= (options_.max_waiting + 3) / 4) return false;
  if (counters_.stuck >= 2 * options_.max_stuck) return false;
  if (counters_.stuck >= options_.max_stuck && !file_system.has_answered) return false;
  const bool can_begin = file_system.running < options_.per_file_system;
  if (file_system.breaker.is_open() && !can_begin) return false;
  return file_system.breaker.Admit(now);
}

bool FileWorkers::Pool::Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job,
                             OnEnd on_end) {
  const std::lock_guard lock(mutex_);
  ++counters_.posted;
  if (file_systems_.size() >= kMaxKnown) ForgetSome();
  FileSystem& target = file_systems_[file_system];
  const MonotonicTime now = MonotonicNow();
  if (!Admits(target, now)) {
    ++counters_.refused;
    return false;
  }
  const MonotonicTime due = After(now, limit);
  const auto task = waiting_.insert(std::ranges::upper_bound(waiting_, due, {}, &Task::due),
                                    {file_system, limit, std::move(job), std::move(on_end), due});
  if (!EnsureThreads()) {
    waiting_.erase(task);
    target.breaker.Withdrawn();
    ++counters_.refused;
    return false;
  }
  ++target.waiting;
  work_.notify_one();
  return true;
}

// False if nobody could ever do the work.
bool FileWorkers::Pool::EnsureThreads() {
  const auto self = shared_from_this();
  if (!is_watching_) is_watching_ = StartThread("file-watch", [self] { self->Watch(); });
  if (!is_watching_) return false;
  if (idle_ < waiting_.size() && threads_ < options_.threads) {
    if (StartThread("file-worker", [self] { self->Work(); })) ++threads_;
  }
  return threads_ > 0;
}

void FileWorkers::Pool::ForgetSome() {
  std::erase_if(file_systems_, [](const auto& entry) {
    return entry.second.waiting == 0 && entry.second.running == 0;
  });
}

bool FileWorkers::Pool::MayBegin(const Task& task) {
  const FileSystem& file_system = file_systems_[task.file_system];
  if (file_system.running >= options_.per_file_system) return false;
  if (!task.is_large) return true;
  return large_ < options_.large && file_system.large < options_.large_per_file_system;
}

FileWorkers::Pool::Tasks::iterator FileWorkers::Pool::FirstReady() {
  return std::ranges::find_if(waiting_, [this](const Task& task) { return MayBegin(task); });
}

// Waits for a task and begins it; running_.end() if there will be none.
FileWorkers::Pool::Tasks::iterator FileWorkers::Pool::Next(Lock& lock) {
  ++idle_;
  auto task = waiting_.end();
  work_.wait(lock, [&] { return is_closed_ || (task = FirstReady()) != waiting_.end(); });
  --idle_;
  if (is_closed_) return running_.end();
  FileSystem& file_system = file_systems_[task->file_system];
  --file_system.waiting;
  ++file_system.running;
  if (task->is_large) {
    ++file_system.large;
    ++large_;
  }
  task->deadline = After(MonotonicNow(), task->limit);
  running_.splice(running_.end(), waiting_, task);
  if (task->deadline < watched_) watch_.notify_one();
  return task;
}

void FileWorkers::Pool::Work() {
  Lock lock(mutex_);
  while (true) {
    const auto task = Next(lock);
    if (task == running_.end()) break;
    lock.unlock();
    const FileWork work = task->job();
    task->job = nullptr;  // what it owns may be slow to go
    lock.lock();
    if (!Finish(task, work, lock)) return;
  }
  --threads_;
}

// False if the thread was given up meanwhile.
bool FileWorkers::Pool::Finish(Tasks::iterator task, FileWork work, Lock& lock) {
  FileSystem& file_system = file_systems_[task->file_system];
  --file_system.running;
  const bool is_late = task->is_late;
  std::vector<Ended> ended;
  if (!is_late) LeaveLarge(*task);
  if (is_late) {
    --counters_.stuck;
  } else if (work == FileWork::kDone) {
    file_system.has_answered = !file_system.breaker.is_open();
    file_system.breaker.Succeeded();
    ++counters_.done;
    ended.push_back({std::move(task->on_end), nullptr, FileWork::kDone});
  } else if (work == FileWork::kRefused) {
    ++counters_.refused;
    ended.push_back({std::move(task->on_end), nullptr, FileWork::kRefused});
  } else {
    NoteLate(*task, MonotonicNow(), ended);
  }
  running_.erase(task);
  if (!waiting_.empty()) work_.notify_one();  // the file system has room for one more
  Tell(std::move(ended), lock);
  return !is_late;
}

// Makes room for another large one.
void FileWorkers::Pool::LeaveLarge(const Task& task) {
  if (!task.is_large) return;
  --file_systems_[task.file_system].large;
  --large_;
}

// Calls what is to be told of ends, without the lock.
void FileWorkers::Pool::Tell(std::vector<Ended> ended, Lock& lock) {
  if (is_closed_ || ended.empty()) return;
  ++telling_;
  lock.unlock();
  for (Ended& end : ended) {
    if (end.on_end) end.on_end(end.work);
  }
  ended.clear();
  lock.lock();
  if (--telling_ == 0) told_.notify_all();
}

void FileWorkers::Pool::Watch() {
  Lock lock(mutex_);
  while (!is_closed_) {
    Tell(GiveUpLate(MonotonicNow()), lock);
    watched_ = NextDeadline();
    const MonotonicTime now = MonotonicNow();
    if (watched_ == MonotonicTime(UINT64_MAX)) {
      watch_.wait(lock);
    } else if (now < watched_) {
      watch_.wait_for(lock, Between(now, watched_));
    }
  }
}

MonotonicTime FileWorkers::Pool::NextDeadline() const {
  MonotonicTime next(UINT64_MAX);
  for (const Task& task : running_) {
    if (!task.is_late) next = std::min(next, task.deadline);
  }
  return is_closed_ ? MonotonicTime(0) : next;
}

std::vector<FileWorkers::Pool::Ended> FileWorkers::Pool::GiveUpLate(MonotonicTime now) {
  std::vector<Ended> ended;
  for (Task& task : running_) {
    if (task.is_late || now < task.deadline) continue;
    task.is_late = true;
    --threads_;
    ++counters_.stuck;
    LeaveLarge(task);
    NoteLate(task, now, ended);
  }
  if (!waiting_.empty()) EnsureThreads();
  if (!ended.empty()) work_.notify_all();  // there may be room for large ones
  return ended;
}

void FileWorkers::Pool::NoteLate(Task& task, MonotonicTime now, std::vector<Ended>& ended) {
  ++counters_.late;
  FileSystem& file_system = file_systems_[task.file_system];
  file_system.has_answered = false;
  file_system.breaker.Failed(options_.pauses, now);
  ended.push_back({std::move(task.on_end), nullptr, FileWork::kLate});
  RefuseWaiting(task.file_system, ended);
}

void FileWorkers::Pool::RefuseWaiting(uint64_t file_system, std::vector<Ended>& ended) {
  for (auto task = waiting_.begin(); task != waiting_.end();) {
    if (task->file_system != file_system) {
      ++task;
      continue;
    }
    ended.push_back({std::move(task->on_end), std::move(task->job), FileWork::kRefused});
    task = waiting_.erase(task);
    ++counters_.refused;
    --file_systems_[file_system].waiting;
  }
}

void FileWorkers::Pool::Close() {
  Tasks dropped;  // destroyed without the lock
  Lock lock(mutex_);
  is_closed_ = true;
  dropped.swap(waiting_);
  work_.notify_all();
  watch_.notify_all();
  told_.wait(lock, [this] { return telling_ == 0; });
}

FileWorkCounters FileWorkers::Pool::counters() const {
  const std::lock_guard lock(mutex_);
  FileWorkCounters counters = counters_;
  counters.waiting = waiting_.size();
  return counters;
}

FileWorkers::FileWorkers(const Options& options) : pool_(std::make_shared<Pool>(options)) {}

FileWorkers::~FileWorkers() {
  pool_->Close();
}

bool FileWorkers::Post(uint64_t file_system, std::chrono::nanoseconds limit, Job job,
                       OnEnd on_end) {
  return pool_->Post(file_system, limit, std::move(job), std::move(on_end));
}

FileWork FileWorkers::Run(uint64_t file_system, std::chrono::nanoseconds wait,
                          std::chrono::nanoseconds limit, Job job) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<FileWork> work;
  };
  const auto answer = std::make_shared<Answer>();
  const bool posted = Post(file_system, limit, std::move(job), [answer](FileWork work) {
    const std::lock_guard lock(answer->mutex);
    answer->work = work;
    answer->ended.notify_one();
  });
  if (!posted) return FileWork::kRefused;
  std::unique_lock lock(answer->mutex);
  answer->ended.wait_for(lock, wait, [&] { return answer->work.has_value(); });
  return answer->work.value_or(FileWork::kLate);
}

FileWorkCounters FileWorkers::counters() const {
  return pool_->counters();
}

}  // namespace pyrometer
