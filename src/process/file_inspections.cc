// SPDX-License-Identifier: Apache-2.0
#include "process/file_inspections.h"

#include <absl/base/thread_annotations.h>
#include <fcntl.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace pyrometer {
namespace {

// Beyond so many it is forgotten which file systems are slow, at the price of waiting once for
// each.
constexpr size_t kMostSlow = 1024;

// What a job needs and leaves behind; it may outlive everybody else.
struct Inspection {
  FileQuestion question;
  std::shared_ptr<ForeignFiles> files;
  std::shared_ptr<ObjectInspector> inspector;
  std::chrono::nanoseconds limit;
  Result<FileFindings> findings = FileFindings();
  bool was_not_read = false;  // nobody could be had to read its headers
  std::chrono::nanoseconds took{};
};

// Nothing is said of the file, or of its file system, if who was to read it is late or dead.
bool SaysNothing(const Error& error) {
  return error.code() == ErrorCode::kIo || error.code() == ErrorCode::kInternal;
}

QuestionEnd WorkOf(const Inspection& inspection) {
  if (inspection.was_not_read) return QuestionEnd::kRefused;
  return EndOf(inspection.findings);
}

Result<FileFindings> Inspect(Inspection& inspection) {
  const FileQuestion& question = inspection.question;
  const MonotonicTime deadline = After(MonotonicNow(), inspection.limit);
  FileFindings found{.file = question.file, .identity = {}, .opened = {}, .facts = {}};
  if (found.file == nullptr) {
    const int flags = question.depth == FileQuestion::Depth::kDirectory ? O_DIRECTORY : 0;
    ASSIGN_OR_RETURN(UniqueFd fd,
                     inspection.files->LookUp(question.root->get(), question.path, flags,
                                              {inspection.limit, question.file_system}));
    found.file = std::make_shared<const UniqueFd>(std::move(fd));
  }
  if (question.depth == FileQuestion::Depth::kDirectory) return found;
  ASSIGN_OR_RETURN(found.identity, IdentityOf(found.file->get()));
  if (question.depth == FileQuestion::Depth::kIdentity) return found;
  ASSIGN_OR_RETURN(found.opened, inspection.files->OpenForReading(
                                     found.file->get(),
                                     {Between(MonotonicNow(), deadline), question.file_system}));
  if (question.depth == FileQuestion::Depth::kFacts) {
    Result<ObjectFacts> facts = inspection.inspector->Inspect(found.opened.fd.get());
    inspection.was_not_read = !facts && SaysNothing(facts.error());
    ASSIGN_OR_RETURN(found.facts, std::move(facts));
  }
  if (!IsUnchanged(found.file->get(), found.identity)) {
    return Fail(ErrorCode::kMalformed, "the file changes while it is looked at");
  }
  return found;
}

}  // namespace

struct FileInspections::Mailbox : Door {
  std::vector<Answer> answers;
};

// Takes the lock back at its end.
class FileInspections::WithoutLock {
 public:
  explicit WithoutLock(absl::Mutex* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS : lock_(lock) {
    if (lock_ == nullptr) return;
    lock_->AssertHeld();
    lock_->Unlock();
  }
  ~WithoutLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (lock_ != nullptr) lock_->Lock();
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  absl::Mutex* const lock_;
};

FileInspections::FileInspections(const Options& options, const Clock& clock,
                                 std::shared_ptr<ForeignFiles> files,
                                 std::shared_ptr<ObjectInspector> inspector)
    : options_(options),
      files_(std::move(files)),
      inspector_(std::move(inspector)),
      mailbox_(std::make_shared<Mailbox>()),
      left_(options.patience_in_all),
      threads_(clock, options.threads) {}

std::optional<FileInspections::Ticket> FileInspections::Ask(FileQuestion question) {
  const uint64_t file_system = question.file_system;
  auto inspection = std::make_shared<Inspection>();
  inspection->question = std::move(question);
  inspection->files = files_;
  inspection->inspector = inspector_;
  inspection->limit = options_.limit;
  const auto job = [inspection] {
    const MonotonicTime begin = MonotonicNow();
    inspection->findings = Inspect(*inspection);
    inspection->took = Between(begin, MonotonicNow());
    return WorkOf(*inspection);
  };
  const Ticket ticket = ++last_;
  const auto deliver = [inspection, file_system, ticket, mailbox = mailbox_](QuestionEnd work) {
    Answer answer{.ticket = ticket, .file_system = file_system, .work = work};
    if (work == QuestionEnd::kDone) {
      answer.findings = std::move(inspection->findings);
      answer.took = inspection->took;
    }
    const std::lock_guard lock(mailbox->mutex);
    mailbox->answers.push_back(std::move(answer));
    mailbox->arrived.notify_one();
  };
  if (!threads_.Post(file_system, options_.limit, job, deliver)) return std::nullopt;
  return ticket;
}

// Who has more patience in all has more for each: a scan finds all files of the machine at once.
std::chrono::nanoseconds FileInspections::PatienceForOne() const {
  return std::min(std::max(options_.patience, left_ / 10), left_);
}

bool FileInspections::WaitFor(Door& door, std::chrono::nanoseconds most,
                              const std::function<bool()>& take) {
  const WithoutLock without(options_.lock);
  const MonotonicTime begin = MonotonicNow();
  std::unique_lock lock(door.mutex);
  const bool in_time = door.arrived.wait_for(lock, std::min(most, PatienceForOne()), take);
  left_ -= std::min(left_, Between(begin, MonotonicNow()));
  return in_time;
}

std::optional<FileInspections::Answer> FileInspections::Await(Ticket ticket, uint64_t file_system) {
  const std::chrono::nanoseconds patience = PatienceForOne();
  if (patience.count() <= 0 || slow_.contains(file_system)) return std::nullopt;
  std::optional<Answer> answer;
  WaitFor(*mailbox_, patience, [&] {
    const auto own = std::ranges::find(mailbox_->answers, ticket, &Answer::ticket);
    if (own == mailbox_->answers.end()) return false;
    answer = std::move(*own);
    mailbox_->answers.erase(own);
    return true;
  });
  if (answer) {
    Note(*answer);
  } else if (patience >= options_.patience) {
    if (slow_.size() >= kMostSlow) slow_.clear();
    slow_.insert(file_system);
  }
  return answer;
}

PathFd FileInspections::FindDirectory(uint64_t file_system, PathFd root, const std::string& path) {
  const auto ticket = Ask({.file_system = file_system,
                           .depth = FileQuestion::Depth::kDirectory,
                           .file = nullptr,
                           .root = std::move(root),
                           .path = path});
  if (!ticket) return nullptr;
  const std::optional<Answer> answer = Await(*ticket, file_system);
  return answer && answer->findings ? answer->findings->file : nullptr;
}

std::vector<FileInspections::Answer> FileInspections::TakeAnswers() {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mailbox_->mutex);
    answers.swap(mailbox_->answers);
  }
  for (const Answer& answer : answers) Note(answer);
  return answers;
}

void FileInspections::Note(const Answer& answer) {
  if (answer.work == QuestionEnd::kDone && answer.took < options_.patience) {
    slow_.erase(answer.file_system);
  }
}

}  // namespace pyrometer
