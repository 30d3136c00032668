// SPDX-License-Identifier: Apache-2.0
#include "agent/environment_reader.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/await_until.h"
#include "base/file.h"
#include "metadata/otel_environment.h"
#include "process/process_directory.h"

namespace pyrometer {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // of an environment
constexpr size_t kMostLeftOut = 1024;
constexpr std::chrono::nanoseconds kLongestPause = std::chrono::minutes(1);

// Where another process has the pid by now, it is gone.
Result<ProcessDirectory> Open(const Procfs& procfs, const ProcessKey& process) {
  ASSIGN_OR_RETURN(ProcessDirectory directory, ProcessDirectory::Open(procfs, process.pid));
  ASSIGN_OR_RETURN(const ProcStat stat, directory.Stat());
  if (stat.start != process.start_time) return Fail(ErrorCode::kNotFound, "another process");
  return directory;
}

// Those who share a container and a user may make each other wait.
Result<uint64_t> GroupOf(const ProcessDirectory& directory) {
  ASSIGN_OR_RETURN(const ProcStatus status, directory.Status());
  ASSIGN_OR_RETURN(const RootIdentity root, directory.Root());
  return NumberOf(Asked::kEnvironment, std::array{uint64_t{status.user}, root.mount_namespace});
}

// See proc(5) for `environ`.
Result<std::string> ReadServiceName(const ProcessDirectory& directory, const UniqueFd& text) {
  ASSIGN_OR_RETURN(const std::string environment, ReadAll(text.get(), kMostBytes));
  if (environment.empty()) {  // as that of a process that has ended and was not waited for
    ASSIGN_OR_RETURN(const ProcStat stat, directory.Stat());
    if (stat.state == 'Z' || stat.state == 'X') return Fail(ErrorCode::kNotFound, "it has ended");
  }
  return OtelServiceName(environment);
}

}  // namespace

EnvironmentReader::EnvironmentReader(Procfs procfs, const Clock& clock,
                                     std::shared_ptr<ForeignFiles> files, Options options)
    : procfs_(std::move(procfs)), clock_(clock), files_(std::move(files)), options_(options) {}

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
  ASSIGN_OR_RETURN(const ProcessDirectory directory, Open(procfs_, process));
  ASSIGN_OR_RETURN(const uint64_t group, GroupOf(directory));
  if (IsLeftOut(group)) return std::nullopt;
  const Result<UniqueFd> text =
      files_->ReadText(directory.fd(), "environ", kMostBytes + 1, {options_.limit, group});
  if (text) return ReadServiceName(directory, *text);
  switch (text.error().code()) {
    case ErrorCode::kLate:
      LeaveOut(group);
      return std::nullopt;
    case ErrorCode::kExhausted:  // nobody could be asked, which says nothing of the process
      return std::nullopt;
    default:
      return text.error();
  }
}

bool EnvironmentReader::IsLeftOut(uint64_t group) {
  const absl::MutexLock lock(&mutex_);
  const auto found = left_out_.find(group);
  return found != left_out_.end() && clock_.Now() < found->second.until;
}

void EnvironmentReader::LeaveOut(uint64_t group) {
  const absl::MutexLock lock(&mutex_);
  if (left_out_.size() >= kMostLeftOut) left_out_.clear();
  LeftOut& left_out = left_out_[group];
  left_out.pause = std::clamp(2 * left_out.pause, options_.pause, kLongestPause);
  left_out.until = After(clock_.Now(), left_out.pause);
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
