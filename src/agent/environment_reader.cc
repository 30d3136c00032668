// SPDX-License-Identifier: Apache-2.0
#include "agent/environment_reader.h"

#include <pthread.h>

#include <memory>
#include <utility>

#include "base/await_until.h"
#include "metadata/otel_environment.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

FileWorkers::Options WorkersForEnvironments() {
  return {.threads = 2, .per_file_system = 1, .large = 1, .max_stuck = 8, .max_waiting = 4};
}

// Where another process has the pid by now, it is gone.
Result<ProcessDirectory> Open(const Procfs& procfs, const ProcessKey& process) {
  ASSIGN_OR_RETURN(ProcessDirectory directory, ProcessDirectory::Open(procfs, process.pid));
  ASSIGN_OR_RETURN(const ProcStat stat, directory.Stat());
  if (stat.start != process.start_time) return Fail(ErrorCode::kNotFound, "another process");
  return directory;
}

// Those who share a container and a user may make each other wait.
Result<uint64_t> GroupOf(const ProcessDirectory& directory) {
  constexpr int kUserShift = 32;  // an inode of a namespace has 32 bits
  ASSIGN_OR_RETURN(const ProcStatus status, directory.Status());
  ASSIGN_OR_RETURN(const RootIdentity root, directory.Root());
  return (uint64_t{status.user} << kUserShift) ^ root.mount_namespace;
}

Result<std::string> ReadServiceName(const ProcessDirectory& directory) {
  ASSIGN_OR_RETURN(const std::string environment, directory.Environment());
  if (environment.empty()) {  // as that of a process that has ended and was not waited for
    ASSIGN_OR_RETURN(const ProcStat stat, directory.Stat());
    if (stat.state == 'Z' || stat.state == 'X') return Fail(ErrorCode::kNotFound, "it has ended");
  }
  return OtelServiceName(environment);
}

}  // namespace

EnvironmentReader::EnvironmentReader(Procfs procfs, const Clock& clock, Options options)
    : procfs_(std::move(procfs)),
      clock_(clock),
      options_(options),
      workers_(WorkersForEnvironments()) {}

EnvironmentReader::~EnvironmentReader() {
  Stop();
}

void EnvironmentReader::Start(Tell tell) {
  thread_ = std::thread([this, tell = std::move(tell)] { Run(tell); });
}

void EnvironmentReader::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void EnvironmentReader::Want(const ProcessKey& process, LabelSet labels) {
  const absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= options_.most_waiting) {
    ++counters_.left_out;
    return;
  }
  waiting_.push_back({.due = After(clock_.Now(), options_.delay),
                      .process = process,
                      .labels = std::move(labels)});
}

EnvironmentReader::Counters EnvironmentReader::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

void EnvironmentReader::Run(const Tell& tell) {
  ::pthread_setname_np(::pthread_self(), "environments");
  for (Wanted next; AwaitNext(next);) {
    const Answer answer = Ask(next.process);
    Count(answer);
    if (answer && *answer) tell(next.process, next.labels, **answer);
  }
}

bool EnvironmentReader::AwaitNext(Wanted& next) {
  const absl::MutexLock lock(&mutex_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&has_work));
  if (!stopping_) {
    next = std::move(waiting_.front());
    waiting_.pop_front();
    AwaitUntil(mutex_, clock_, next.due,
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
  }
  return !stopping_;
}

EnvironmentReader::Answer EnvironmentReader::Ask(const ProcessKey& process) {
  ASSIGN_OR_RETURN(ProcessDirectory directory, Open(procfs_, process));
  ASSIGN_OR_RETURN(const uint64_t group, GroupOf(directory));
  // It owns its descriptor: it may run on when nobody waits for it any more.
  auto shared = std::make_shared<const ProcessDirectory>(std::move(directory));
  return workers_.Ask<Result<std::string>>(
      group, options_.limit, options_.limit,
      [shared = std::move(shared)] { return ReadServiceName(*shared); });
}

void EnvironmentReader::Count(const Answer& answer) {
  const absl::MutexLock lock(&mutex_);
  if (!answer) {
    ++counters_.late;
  } else if (*answer) {
    ++counters_.read;
  } else if (IsGone(answer->error())) {
    ++counters_.gone;
  } else {
    ++counters_.refused;
  }
}

}  // namespace pyrometer
