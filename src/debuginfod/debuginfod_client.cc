// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/debuginfod_client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "debuginfod/download_cache.h"

namespace pyrometer {
namespace {

// For a process to load its libraries, or to take a question.
constexpr std::chrono::seconds kStarting(10);
constexpr size_t kLeastBuildId = 2;  // bytes; the library takes shorter ones for none

bool NamesServers(const DownloadOptions& downloads) {
  const char* const environment = std::getenv("DEBUGINFOD_URLS");
  const std::string urls =
      downloads.urls.empty() && environment != nullptr ? environment : downloads.urls;
  return urls.find_first_not_of(' ') != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<DebuginfodClient>> DebuginfodClient::Start(Options options) {
  if (!NamesServers(options.downloads)) {
    return Fail(ErrorCode::kInvalid, "debuginfod: no server is named; name one by DEBUGINFOD_URLS");
  }
  RETURN_IF_ERROR(PrepareDownloadDirectory(options.downloads.directory));
  Nursery::Work work = options.work;
  if (!work) {
    work = [downloads = options.downloads](const MessageSocket& socket) {
      ServeDownloads(socket, downloads);
    };
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Nursery> nursery, Nursery::Start("pyro-download", work));
  std::unique_ptr<DebuginfodClient> client(
      new DebuginfodClient(std::move(options), std::move(nursery)));
  RETURN_IF_ERROR(client->Fork());
  return client;
}

DebuginfodClient::~DebuginfodClient() {
  absl::flat_hash_map<BuildId, std::vector<OnFound>> left;
  {
    const absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    // Ends the wait for its answer.
    if (pid_ != 0) nursery_->Kill(pid_);
  }
  if (thread_.joinable()) thread_.join();
  {
    const absl::MutexLock lock(&mutex_);
    left.swap(waiters_);
  }
  for (const auto& [build_id, waiters] : left) {
    for (const OnFound& on_found : waiters) on_found(nullptr);
  }
}

bool DebuginfodClient::Find(const BuildId& build_id, OnFound on_found) {
  const absl::MutexLock lock(&mutex_);
  if (!MayAsk(build_id)) return false;
  std::vector<OnFound>& waiters = waiters_[build_id];
  if (waiters.empty()) waiting_.push_back(build_id);
  waiters.push_back(std::move(on_found));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return true;
}

// Whether it is worth a question, and there is room for one.
bool DebuginfodClient::MayAsk(const BuildId& build_id) {
  if (build_id.bytes().size() < kLeastBuildId || WasMissed(build_id)) return false;
  if (waiters_.contains(build_id)) return true;
  const bool has_room = !is_stopping_ && waiting_.size() < options_.most_waiting;
  if (!has_room) ++counts_.refused;
  return has_room;
}

DebuginfodCounts DebuginfodClient::counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

void DebuginfodClient::Run() {
  BuildId next;
  while (WaitForWork(next)) {
    UniqueFd file;
    std::vector<OnFound> waiters;
    bool may_ask = false;
    {
      const absl::MutexLock lock(&mutex_);
      may_ask = breaker_.Admit(Now());
      if (!may_ask) ++counts_.refused;
    }
    const Outcome outcome = may_ask ? Download(next, file) : Outcome::kNone;
    {
      const absl::MutexLock lock(&mutex_);
      if (may_ask) Note(next, outcome);
      waiters = std::move(waiters_.extract(next).mapped());
    }
    const auto found =
        outcome == Outcome::kFound ? std::make_shared<const UniqueFd>(std::move(file)) : nullptr;
    for (const OnFound& on_found : waiters) on_found(found);
  }
}

// False: there will be none.
bool DebuginfodClient::WaitForWork(BuildId& next) {
  const auto has_something = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_stopping_ || !waiting_.empty();
  };
  const absl::MutexLock lock(&mutex_, absl::Condition(&has_something));
  if (is_stopping_) return false;
  next = waiting_.front();
  waiting_.pop_front();
  return true;
}

DebuginfodClient::Outcome DebuginfodClient::Download(const BuildId& build_id, UniqueFd& file) {
  if (socket_.fd() < 0 && !Fork()) return Outcome::kFailed;
  DownloadRequest request;
  request.size = static_cast<uint32_t>(build_id.bytes().size());
  std::ranges::copy(build_id.bytes(), request.build_id.begin());
  DownloadReply reply;
  const bool was_sent = socket_.Send(request).has_value();
  const bool is_late = was_sent && !socket_.WaitUntilReadable(options_.time_limit);
  Result<UniqueFd> attached = Fail(ErrorCode::kIo, "no answer");
  if (was_sent && !is_late) attached = socket_.Receive(reply);
  if (attached && reply.what == DownloadReply::What::kNone) return Outcome::kNone;
  if (attached && reply.what == DownloadReply::What::kFailed) return Outcome::kFailed;
  if (attached && reply.what == DownloadReply::What::kFound && IsAcceptable(*attached)) {
    file = *std::move(attached);
    return Outcome::kFound;
  }
  GiveUp();
  return is_late ? Outcome::kLate : Outcome::kFailed;
}

// The process may be a server's by now: it may attach whatever it has.
bool DebuginfodClient::IsAcceptable(const UniqueFd& file) const {
  struct stat status {};
  return file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) <= options_.downloads.most_bytes;
}

Result<void> DebuginfodClient::Fork() {
  ASSIGN_OR_RETURN(Nursery::Child child, nursery_->Fork());
  {
    const absl::MutexLock lock(&mutex_);
    pid_ = child.pid;
    socket_ = std::move(child.socket);
    if (is_stopping_) nursery_->Kill(pid_);
  }
  RETURN_IF_ERROR(socket_.LimitSending(kStarting));
  DownloadReply first{.what = DownloadReply::What::kFailed};
  const bool has_begun = socket_.WaitUntilReadable(kStarting) && socket_.Receive(first).has_value();
  if (has_begun && first.what == DownloadReply::What::kReady) return {};
  GiveUp();
  if (has_begun && first.what == DownloadReply::What::kUnable && first.error == 0) {
    return Fail(ErrorCode::kUnsupported,
                "debuginfod: no libdebuginfod.so.1; install libdebuginfod1");
  }
  if (has_begun && first.what == DownloadReply::What::kUnable && first.error == EACCES) {
    return Fail(
        ErrorCode::kPermission,
        "debuginfod: {} cannot be written to without capabilities; choose a directory whose "
        "parents the user {} may enter",
        options_.downloads.directory, ::geteuid());
  }
  return Fail(ErrorCode::kUnsupported,
              "debuginfod: the process that speaks with servers cannot be confined here");
}

void DebuginfodClient::GiveUp() {
  const absl::MutexLock lock(&mutex_);
  if (pid_ != 0) nursery_->Kill(pid_);
  pid_ = 0;
  socket_ = {};
}

void DebuginfodClient::Note(const BuildId& build_id, Outcome outcome) {
  const MonotonicTime now = Now();
  const bool is_answer = outcome == Outcome::kFound || outcome == Outcome::kNone;
  if (is_answer) {
    breaker_.Succeeded();
  } else {
    breaker_.Failed(options_.pauses, now);
  }
  counts_.found += outcome == Outcome::kFound ? 1 : 0;
  counts_.none += outcome == Outcome::kNone ? 1 : 0;
  counts_.failed += outcome == Outcome::kFailed ? 1 : 0;
  counts_.late += outcome == Outcome::kLate ? 1 : 0;
  if (outcome == Outcome::kFound || !missed_.insert(build_id).second) return;
  missed_in_order_.push_back({.build_id = build_id, .when = now});
}

bool DebuginfodClient::WasMissed(const BuildId& build_id) {
  const MonotonicTime now = Now();
  while (!missed_in_order_.empty() && (missed_in_order_.size() > options_.most_missed ||
                                       After(missed_in_order_.front().when, kRetry) <= now)) {
    missed_.erase(missed_in_order_.front().build_id);
    missed_in_order_.pop_front();
  }
  return missed_.contains(build_id);
}

}  // namespace pyrometer
