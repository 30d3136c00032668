// SPDX-License-Identifier: Apache-2.0
#include "foreign/opener_pool.h"

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
// Who waits looks so often whether everybody is to give up.
constexpr std::chrono::milliseconds kLook(50);
// So long each is waited for even then: who answers takes some 0.2 ms.
constexpr std::chrono::milliseconds kMoment(100);
// Rather than fork another opener.
constexpr std::chrono::milliseconds kNearlyFree(2);

Error OpenerDied() {
  return Fail(ErrorCode::kInternal, "the process that was asked for a file has died");
}

}  // namespace

// A conversation with one opener, which goes on to serve others if it has answered everything.
class OpenerPool::Session {
 public:
  Session(OpenerPool& owner, Opener opener, std::chrono::nanoseconds limit)
      : owner_(owner),
        opener_(std::move(opener)),
        began_(owner.options_.clock->Now()),
        until_(After(began_, limit)) {}
  ~Session() { is_whole_ ? owner_.Return(std::move(opener_)) : owner_.GiveUp(std::move(opener_)); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<Answer> Ask(const OpenerRequest& request, int attached) {
    is_whole_ = false;
    if (!opener_.socket.Send(request, attached)) return OpenerDied();
    ASSIGN_OR_RETURN(Answer answer, Receive());
    is_whole_ = true;
    if (answer.reply.what != OpenerReply::What::kFailed) return answer;
    return Fail(answer.reply.error, "a file of a profiled program cannot be opened");
  }

  // Until the opener can take another request.
  Result<void> AwaitFree() {
    is_whole_ = false;
    ASSIGN_OR_RETURN(const Answer answer, Receive());
    if (answer.reply.what != OpenerReply::What::kFree) {
      return Fail(ErrorCode::kInternal, "an opener that is not free in its turn");
    }
    is_whole_ = true;
    return {};
  }

 private:
  Result<Answer> Receive() {
    if (!AwaitAnswer()) {
      return Fail(ErrorCode::kLate, "the file system or process does not answer");
    }
    Answer answer;
    Result<UniqueFd> attached = opener_.socket.Receive(answer.reply);
    if (!attached) return OpenerDied();
    answer.attached = *std::move(attached);
    return answer;
  }

  bool AwaitAnswer() {
    std::chrono::nanoseconds left{};
    do {
      const MonotonicTime give_up_at =
          std::max(MonotonicTime(owner_.give_up_at_), After(began_, kMoment));
      left = Between(owner_.options_.clock->Now(), std::min(until_, give_up_at));
      if (opener_.socket.WaitUntilReadable(std::min<std::chrono::nanoseconds>(left, kLook))) {
        return true;
      }
    } while (left > kLook);
    return false;
  }

  OpenerPool& owner_;
  Opener opener_;
  const MonotonicTime began_;
  const MonotonicTime until_;
  bool is_whole_ = true;
};

Result<std::unique_ptr<OpenerPool>> OpenerPool::Start(const Options& options) {
  const auto serve = [operations = options.operations](MessageSocket socket) {
    FileOperations real;
    ServeOpener(std::move(socket), operations == nullptr ? real : *operations);
  };
  ASSIGN_OR_RETURN(Nursery nursery, Nursery::Start({.name = "pyrometer-files", .serve = serve}));
  return std::unique_ptr<OpenerPool>(new OpenerPool(options, std::move(nursery)));
}

// That an opener died says nothing of what it was asked for: it is asked for once more. Who dies of
// it again is as good as late.
template <typename Question>
auto OpenerPool::AgainIfItDies(const FilePatience& patience, const Question& question) {
  const MonotonicTime until = After(options_.clock->Now(), patience.limit);
  auto answer = question(patience);
  const auto has_died = [&] { return !answer && answer.error().code() == ErrorCode::kInternal; };
  if (has_died()) {
    answer = question({Between(options_.clock->Now(), until), patience.file_system});
  }
  if (has_died()) answer = Fail(ErrorCode::kLate, "{}", answer.error().message());
  return answer;
}

Result<OpenedFile> OpenerPool::OpenForReading(int path_fd, const FilePatience& patience) {
  return AgainIfItDies(patience, [&](const FilePatience& left) { return Open(path_fd, left); });
}

Result<OpenedFile> OpenerPool::Open(int path_fd, const FilePatience& patience) {
  ASSIGN_OR_RETURN(Opener opener, Take(Work::kOpening, patience.file_system));
  Session session(*this, std::move(opener), patience.limit);
  ASSIGN_OR_RETURN(Answer opened, session.Ask({.what = OpenerRequest::What::kOpen}, path_fd));
  if (opened.reply.what == OpenerReply::What::kFile) {
    return OpenedFile{.fd = std::move(opened.attached)};
  }
  RETURN_IF_ERROR(session.AwaitFree());
  ASSIGN_OR_RETURN(UniqueFd copy, copies_.Make(opened.reply.size));
  RETURN_IF_ERROR(session.Ask({.what = OpenerRequest::What::kCopy}, copy.get()));
  return OpenedFile{.fd = std::move(copy), .is_copy = true};
}

Result<UniqueFd> OpenerPool::LookUp(int root_fd, const std::string& path, int flags,
                                    const FilePatience& patience) {
  return AskFor(Work::kLookingUp, {.what = OpenerRequest::What::kLookUp, .flags = flags}, root_fd,
                path, patience);
}

Result<UniqueFd> OpenerPool::ReadText(int directory_fd, const std::string& name, uint64_t most,
                                      const FilePatience& patience) {
  return AskFor(Work::kReading, {.what = OpenerRequest::What::kRead, .most = most}, directory_fd,
                name, patience);
}

Result<UniqueFd> OpenerPool::Follow(int directory_fd, const std::string& name,
                                    const FilePatience& patience) {
  return AskFor(Work::kReading, {.what = OpenerRequest::What::kFollow}, directory_fd, name,
                patience);
}

Result<UniqueFd> OpenerPool::AskFor(Work work, const OpenerRequest& request, int directory_fd,
                                    const std::string& name, const FilePatience& patience) {
  return AgainIfItDies(patience, [&](const FilePatience& left) {
    return AskOnce(work, request, directory_fd, name, left);
  });
}

Result<UniqueFd> OpenerPool::AskOnce(Work work, OpenerRequest request, int directory_fd,
                                     const std::string& name, const FilePatience& patience) {
  if (name.size() >= request.path.size() || name.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a path that is too long, or has a zero byte");
  }
  std::ranges::copy(name, request.path.begin());
  ASSIGN_OR_RETURN(Opener opener, Take(work, patience.file_system));
  Session session(*this, std::move(opener), patience.limit);
  ASSIGN_OR_RETURN(Answer found, session.Ask(request, directory_fd));
  if (!found.attached) return Fail(ErrorCode::kInternal, "an answer without what was asked for");
  return std::move(found.attached);
}

// Finds out which openers are free by now, which never will be, and which have ended.
void OpenerPool::Sweep() {
  const MonotonicTime now = options_.clock->Now();
  for (Opener& opener : std::exchange(closing_, {})) {
    if (opener.socket.WaitUntilReadable(kNow)) {
      OpenerReply reply;
      const bool is_free = opener.socket.Receive(reply) && reply.what == OpenerReply::What::kFree;
      if (is_free && idle_.size() < options_.max_idle) idle_.push_back(std::move(opener));
    } else if (now < opener.must_be_free) {
      closing_.push_back(std::move(opener));
    } else {
      Kill(std::move(opener));
    }
  }
  // One that was given up may have answered since, but nobody listens; it ends when it is killed,
  // or finds us gone.
  std::erase_if(stuck_, [](const Opener& opener) {
    OpenerReply reply;
    while (opener.socket.WaitUntilReadable(kNow)) {
      if (!opener.socket.Receive(reply)) return true;
    }
    return false;
  });
}

bool OpenerPool::MayTake(Work work, uint64_t file_system) const {
  const auto of_it =
      static_cast<size_t>(std::ranges::count(stuck_, file_system, &Opener::file_system));
  if (file_system != 0 && of_it >= kMostStuckOfOne) return false;
  const auto looking_up =
      static_cast<size_t>(std::ranges::count(stuck_, Work::kLookingUp, &Opener::work));
  return work != Work::kLookingUp || looking_up < (options_.max_stuck + 1) / 2;
}

// What reads in /proc and what opens files take no room from each other: either may have to go on
// while all of the other hang.
bool OpenerPool::HasRoomFor(Work work) const {
  const auto reading =
      static_cast<size_t>(std::ranges::count(stuck_, Work::kReading, &Opener::work));
  if (work == Work::kReading) return reading < options_.max_stuck_reading;
  return stuck_.size() - reading + closing_.size() < options_.max_stuck;
}

void OpenerPool::Kill(Opener opener) {
  nursery_.Kill(opener.pid);
  stuck_.push_back(std::move(opener));
}

Result<OpenerPool::Opener> OpenerPool::Take(Work work, uint64_t file_system) {
  const std::scoped_lock lock(mutex_);
  // Usually the one that has just answered.
  if (idle_.empty() && !closing_.empty()) {
    closing_.back().socket.WaitUntilReadable(kNearlyFree);
  }
  Sweep();
  if (!MayTake(work, file_system)) {
    return Fail(ErrorCode::kLate, "the file system has not answered before");
  }
  Opener opener;
  // Who has nothing to do says nothing, unless it has ended.
  std::erase_if(idle_, [](const Opener& idle) { return idle.socket.WaitUntilReadable(kNow); });
  if (!idle_.empty()) {
    opener = std::move(idle_.back());
    idle_.pop_back();
  } else if (!HasRoomFor(work)) {
    return Fail(ErrorCode::kExhausted, "too many files wait for file systems that do not answer");
  } else {
    ASSIGN_OR_RETURN(opener, Fork());
  }
  opener.file_system = file_system;
  opener.work = work;
  return opener;
}

Result<OpenerPool::Opener> OpenerPool::Fork() {
  ASSIGN_OR_RETURN(Nursery::Process child, nursery_.Fork());
  Opener opener;
  opener.socket = std::move(child.socket);
  opener.pid = child.pid;
  return opener;
}

void OpenerPool::Return(Opener opener) {
  const std::scoped_lock lock(mutex_);
  opener.must_be_free = After(options_.clock->Now(), kClosing);
  closing_.push_back(std::move(opener));
}

void OpenerPool::GiveUp(Opener opener) {
  const std::scoped_lock lock(mutex_);
  Kill(std::move(opener));
}

size_t OpenerPool::stuck() {
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    Sweep();
    last_stuck_ = stuck_.size();
  }
  return last_stuck_;
}

}  // namespace pyrometer
