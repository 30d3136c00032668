// SPDX-License-Identifier: Apache-2.0
#include "base/file_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/system_error.h"

namespace pyrometer {
namespace {

// To close what was opened.
constexpr std::chrono::seconds kClosing(2);
constexpr std::chrono::nanoseconds kNow(0);
// Rather than fork another worker.
constexpr std::chrono::milliseconds kNearlyFree(2);

}  // namespace

// A conversation with one worker, which goes on to serve others if it has answered everything.
class FileProcess::Session {
 public:
  Session(FileProcess& owner, Worker worker, std::chrono::nanoseconds limit)
      : owner_(owner), worker_(std::move(worker)), until_(After(MonotonicNow(), limit)) {}
  ~Session() { is_whole_ ? owner_.Return(std::move(worker_)) : owner_.GiveUp(std::move(worker_)); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<Answer> Ask(const FileRequest& request, int attached) {
    is_whole_ = false;
    RETURN_IF_ERROR(worker_.socket.Send(request, attached));
    ASSIGN_OR_RETURN(Answer answer, Receive());
    is_whole_ = true;
    if (answer.reply.what != FileReply::What::kFailed) return answer;
    return Fail(answer.reply.error, "a file of a profiled program cannot be opened");
  }

  // Until the worker can take another request.
  Result<void> AwaitFree() {
    is_whole_ = false;
    ASSIGN_OR_RETURN(const Answer answer, Receive());
    if (answer.reply.what != FileReply::What::kFree) {
      return Fail(ErrorCode::kInternal, "a worker that is not free in its turn");
    }
    is_whole_ = true;
    return {};
  }

 private:
  Result<Answer> Receive() {
    if (!worker_.socket.WaitUntilReadable(Between(MonotonicNow(), until_))) {
      return Fail(ErrorCode::kExhausted, "the file system or process does not answer");
    }
    Answer answer;
    ASSIGN_OR_RETURN(answer.attached, worker_.socket.Receive(answer.reply));
    return answer;
  }

  FileProcess& owner_;
  Worker worker_;
  const MonotonicTime until_;
  bool is_whole_ = true;
};

Result<std::unique_ptr<FileProcess>> FileProcess::Start(const Options& options) {
  const auto serve = [operations = options.operations](MessageSocket socket) {
    FileOperations real;
    ServeFiles(std::move(socket), operations == nullptr ? real : *operations);
  };
  ASSIGN_OR_RETURN(Nursery nursery, Nursery::Start({.name = "pyrometer-files", .serve = serve}));
  return std::unique_ptr<FileProcess>(new FileProcess(options, std::move(nursery)));
}

Result<OpenedFile> FileProcess::OpenForReading(int path_fd, const FilePatience& patience) {
  ASSIGN_OR_RETURN(Worker worker, Take(Work::kOpening, patience.file_system));
  Session session(*this, std::move(worker), patience.limit);
  ASSIGN_OR_RETURN(Answer opened, session.Ask({.what = FileRequest::What::kOpen}, path_fd));
  if (opened.reply.what == FileReply::What::kFile) {
    return OpenedFile{.fd = std::move(opened.attached)};
  }
  RETURN_IF_ERROR(session.AwaitFree());
  ASSIGN_OR_RETURN(UniqueFd copy, copies_.Make(opened.reply.size));
  RETURN_IF_ERROR(session.Ask({.what = FileRequest::What::kCopy}, copy.get()));
  return OpenedFile{.fd = std::move(copy), .is_copy = true};
}

Result<UniqueFd> FileProcess::LookUp(int root_fd, const std::string& path, int flags,
                                     const FilePatience& patience) {
  return AskFor(Work::kLookingUp, {.what = FileRequest::What::kLookUp, .flags = flags}, root_fd,
                path, patience);
}

Result<UniqueFd> FileProcess::ReadText(int directory_fd, const std::string& name, uint64_t most,
                                       const FilePatience& patience) {
  return AskFor(Work::kReading, {.what = FileRequest::What::kRead, .most = most}, directory_fd,
                name, patience);
}

Result<UniqueFd> FileProcess::Follow(int directory_fd, const std::string& name,
                                     const FilePatience& patience) {
  return AskFor(Work::kReading, {.what = FileRequest::What::kFollow}, directory_fd, name, patience);
}

Result<UniqueFd> FileProcess::AskFor(Work work, FileRequest request, int directory_fd,
                                     const std::string& name, const FilePatience& patience) {
  if (name.size() >= request.path.size() || name.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a path that is too long, or has a zero byte");
  }
  std::ranges::copy(name, request.path.begin());
  ASSIGN_OR_RETURN(Worker worker, Take(work, patience.file_system));
  Session session(*this, std::move(worker), patience.limit);
  ASSIGN_OR_RETURN(Answer found, session.Ask(request, directory_fd));
  if (!found.attached) return Fail(ErrorCode::kInternal, "an answer without what was asked for");
  return std::move(found.attached);
}

// Finds out which workers are free by now, which never will be, and which have ended.
void FileProcess::Sweep() {
  const MonotonicTime now = MonotonicNow();
  for (Worker& worker : std::exchange(closing_, {})) {
    if (worker.socket.WaitUntilReadable(kNow)) {
      FileReply reply;
      const bool is_free = worker.socket.Receive(reply) && reply.what == FileReply::What::kFree;
      if (is_free && idle_.size() < options_.max_idle) idle_.push_back(std::move(worker));
    } else if (now < worker.must_be_free) {
      closing_.push_back(std::move(worker));
    } else {
      Kill(std::move(worker));
    }
  }
  // One that was given up may have answered since, but nobody listens; it ends when it is killed,
  // or finds us gone.
  std::erase_if(stuck_, [](const Worker& worker) {
    FileReply reply;
    while (worker.socket.WaitUntilReadable(kNow)) {
      if (!worker.socket.Receive(reply)) return true;
    }
    return false;
  });
}

bool FileProcess::MayTake(Work work, uint64_t file_system) const {
  const auto of_it =
      static_cast<size_t>(std::ranges::count(stuck_, file_system, &Worker::file_system));
  if (file_system != 0 && of_it >= kMostStuckOfOne) return false;
  const auto looking_up =
      static_cast<size_t>(std::ranges::count(stuck_, Work::kLookingUp, &Worker::work));
  return work != Work::kLookingUp || looking_up < (options_.max_stuck + 1) / 2;
}

// What reads in /proc and what opens files take no room from each other: either may have to go on
// while all of the other hang.
bool FileProcess::HasRoomFor(Work work) const {
  const auto reading =
      static_cast<size_t>(std::ranges::count(stuck_, Work::kReading, &Worker::work));
  if (work == Work::kReading) return reading < options_.max_stuck_reading;
  return stuck_.size() - reading + closing_.size() < options_.max_stuck;
}

void FileProcess::Kill(Worker worker) {
  nursery_.Kill(worker.pid);
  stuck_.push_back(std::move(worker));
}

Result<FileProcess::Worker> FileProcess::Take(Work work, uint64_t file_system) {
  const std::scoped_lock lock(mutex_);
  // Usually the one that has just answered.
  if (idle_.empty() && !closing_.empty()) {
    closing_.back().socket.WaitUntilReadable(kNearlyFree);
  }
  Sweep();
  if (!MayTake(work, file_system)) {
    return Fail(ErrorCode::kExhausted, "the file system has not answered before");
  }
  Worker worker;
  if (!idle_.empty()) {
    worker = std::move(idle_.back());
    idle_.pop_back();
  } else if (!HasRoomFor(work)) {
    return Fail(ErrorCode::kExhausted, "too many files wait for file systems that do not answer");
  } else {
    ASSIGN_OR_RETURN(worker, Fork());
  }
  worker.file_system = file_system;
  worker.work = work;
  return worker;
}

Result<FileProcess::Worker> FileProcess::Fork() {
  ASSIGN_OR_RETURN(Nursery::Process child, nursery_.Fork());
  Worker worker;
  worker.socket = std::move(child.socket);
  worker.pid = child.pid;
  return worker;
}

void FileProcess::Return(Worker worker) {
  const std::scoped_lock lock(mutex_);
  worker.must_be_free = After(MonotonicNow(), kClosing);
  closing_.push_back(std::move(worker));
}

void FileProcess::GiveUp(Worker worker) {
  const std::scoped_lock lock(mutex_);
  Kill(std::move(worker));
}

size_t FileProcess::stuck() {
  const std::scoped_lock lock(mutex_);
  Sweep();
  return stuck_.size();
}

}  // namespace pyrometer
