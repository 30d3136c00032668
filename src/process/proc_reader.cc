// SPDX-License-Identifier: Apache-2.0
#include "process/proc_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <utility>

namespace pyrometer {
namespace {

// What is mapped while an answer is awaited: beyond so much it is asked for again.
constexpr size_t kMostSince = 128;
// What nobody was free to ask is asked soon, and then after pauses that double.
constexpr std::chrono::nanoseconds kSoon = std::chrono::milliseconds(50);
constexpr std::chrono::nanoseconds kMoment = std::chrono::milliseconds(500);
// An answer takes some 0.2 ms.
constexpr std::chrono::nanoseconds kLittlePatience = std::chrono::milliseconds(1);

constexpr uint64_t kAllProcesses = 0;  // among file systems: none keeps another waiting

// That an opener died, or that there was none, is no answer.
bool IsAnswer(const Error& error) {
  return IsGone(error) || error.code() == ErrorCode::kPermission;
}

Error NoAnswer() {
  return Fail(ErrorCode::kExhausted, "no answer in time");
}

Result<ProcMaps> ReadMaps(const ProcessDirectory& directory, const std::string& name,
                          ForeignFiles& files, const FilePatience& patience) {
  const ProcMapsLimits limits;
  ASSIGN_OR_RETURN(const UniqueFd text,
                   files.ReadText(directory.fd(), name, limits.bytes + 1, patience));
  return ReadProcMaps(text.get(), limits);
}

Result<ProcMaps> ReadMappings(const ProcessDirectory& directory, ForeignFiles& files,
                              const FilePatience& patience) {
  Result<ProcMaps> maps = ReadMaps(directory, "maps", files, patience);
  if (!maps && !IsGone(maps.error())) return maps.error();
  if (maps && maps->bytes > 0) return *std::move(maps);
  // A leader that has ended before its other threads shows none.
  ASSIGN_OR_RETURN(const std::vector<Tid> threads, directory.Threads());
  for (const Tid tid : threads) {
    maps = ReadMaps(directory, fmt::format("task/{}/maps", tid.value()), files, patience);
    if (!maps && !IsGone(maps.error())) return maps.error();
    if (maps && maps->bytes > 0) return *std::move(maps);
  }
  return ProcMaps{};
}

}  // namespace

// Jobs may outlive the reader.
struct ProcReader::Mailbox : FileInspections::Door {
  std::vector<Told> told;
};

// As many threads as questions: so none waits for another, and MayAsk() says whose there may be.
ProcReader::ProcReader(const Options& options, const Clock& clock, FileInspections& patience)
    : options_(options),
      clock_(clock),
      patience_(patience),
      mailbox_(std::make_shared<Mailbox>()),
      threads_(clock, {.threads = options.questions, .per_file_system = options.questions}) {}

Result<ProcMaps> ProcReader::Mappings(const Subject& subject) {
  const Pid pid = subject.process.pid;
  const auto known = unanswered_.find(pid);
  if (known != unanswered_.end() && known->second.process != subject.process) {
    unanswered_.erase(known);  // another process had that pid
    return Mappings(subject);
  }
  const MonotonicTime now = clock_.Now();
  const bool answers = known == unanswered_.end();
  if (!answers && (known->second.ticket || now < known->second.due)) {
    return Fail(ErrorCode::kExhausted, "process {} has not answered", pid.value());
  }
  const std::optional<Ticket> ticket =
      Ask(subject, answers ? options_.limit : known->second.limit,
          [](const ProcessDirectory& directory, ForeignFiles& files, const FilePatience& patience)
              -> Result<Content> { return ReadMappings(directory, files, patience); });
  std::optional<Told> told;
  if (ticket && answers) told = Await(*ticket, subject.user);
  if (told && told->content) return std::get<ProcMaps>(*std::move(told->content));
  if (told && IsAnswer(told->content.error())) return told->content.error();
  Unanswered& unanswered = Remember(subject.process, subject.user);
  if (told) {
    NoteLate(unanswered);
  } else if (ticket) {
    unanswered.asked = now;
    unanswered.ticket = ticket;
  } else {
    PutOff(unanswered, kSoon);
  }
  return Fail(ErrorCode::kExhausted, "process {} does not answer at once", pid.value());
}

Result<UniqueFd> ProcReader::OpenMapped(const Subject& subject, const FileMapping& range) {
  const Pid pid = subject.process.pid;
  const auto known = unanswered_.find(pid);
  if (known != unanswered_.end() && known->second.process == subject.process) {
    return Fail(ErrorCode::kExhausted, "process {} has not answered", pid.value());
  }
  const std::string name =
      fmt::format("map_files/{:x}-{:x}", range.start.value(), range.end.value());
  std::optional<Ticket> ticket;
  if (patience_.PatienceForOne().count() > 0) {
    ticket = Ask(subject, options_.limit,
                 [name](const ProcessDirectory& directory, ForeignFiles& files,
                        const FilePatience& patience) -> Result<Content> {
                   return files.Follow(directory.fd(), name, patience);
                 });
  }
  std::optional<Told> told;
  if (ticket) told = Await(*ticket, subject.user);
  if (told && told->content) return std::get<UniqueFd>(*std::move(told->content));
  if (told && IsAnswer(told->content.error())) return told->content.error();
  // Whether it is late its mappings will show.
  PutOff(Remember(subject.process, subject.user), kSoon);
  return Fail(ErrorCode::kExhausted, "process {} does not answer at once", pid.value());
}

std::optional<ProcReader::Ticket> ProcReader::Ask(const Subject& subject,
                                                  std::chrono::nanoseconds limit,
                                                  Question question) {
  if (!MayAsk(subject.user)) return std::nullopt;
  Result<ProcessDirectory> own = subject.directory.Duplicate();
  if (!own) return std::nullopt;
  struct Job {
    ProcessDirectory directory;
    std::shared_ptr<ForeignFiles> files;
    Question question;
    Result<Content> content;
  };
  const auto job = std::make_shared<Job>(
      Job{*std::move(own), patience_.files(), std::move(question), NoAnswer()});
  const uint64_t number =
      NumberOf(pyrometer::Asked::kProcess, std::array{uint64_t{subject.process.pid.value()}});
  const auto work = [job, limit, number] {
    job->content = job->question(job->directory, *job->files, {limit, number});
  };
  const Ticket ticket = ++last_;
  const auto deliver = [job, ticket, mailbox = mailbox_](QuestionEnd /*end*/) {
    const std::lock_guard lock(mailbox->mutex);
    mailbox->told.push_back({ticket, std::move(job->content)});
    mailbox->arrived.notify_one();
  };
  if (!threads_.Post(kAllProcesses, limit, work, deliver)) return std::nullopt;
  asked_[ticket] = {subject.process.pid, subject.user};
  return ticket;
}

bool ProcReader::MayAsk(UserId user) const {
  if (asked_.size() >= options_.questions) return false;
  const auto own = static_cast<size_t>(
      std::ranges::count_if(asked_, [&](const auto& a) { return a.second.user == user; }));
  return own < options_.questions - asked_.size();
}

// True if one of his processes does not answer, as far as is known.
bool ProcReader::KeepsOthersWaiting(UserId user) const {
  return std::ranges::any_of(unanswered_, [&](const auto& u) {
    return u.second.user == user && (u.second.ticket || u.second.pause >= options_.first_pause);
  });
}

std::optional<ProcReader::Told> ProcReader::Await(Ticket ticket, UserId user) {
  const auto most = KeepsOthersWaiting(user) ? kLittlePatience : std::chrono::nanoseconds::max();
  std::optional<Told> own;
  patience_.WaitFor(*mailbox_, most, [&] {
    const auto found = std::ranges::find(mailbox_->told, ticket, &Told::ticket);
    if (found == mailbox_->told.end()) return false;
    own = std::move(*found);
    mailbox_->told.erase(found);
    return true;
  });
  if (own) asked_.erase(ticket);
  return own;
}

std::vector<ProcReader::Answer> ProcReader::TakeAnswers() {
  std::vector<Answer> answers;
  for (Told& told : told_) {
    const auto asked = asked_.find(told.ticket);
    if (asked == asked_.end()) continue;
    const auto found = unanswered_.find(asked->second.pid);
    asked_.erase(asked);
    if (found == unanswered_.end() || found->second.ticket != told.ticket) continue;
    Unanswered& unanswered = found->second;
    if (!told.content && !IsAnswer(told.content.error())) {
      NoteLate(unanswered);
    } else if (told.content && unanswered.has_lost_some) {
      PutOff(unanswered, kSoon);
    } else {
      answers.push_back(Settle(unanswered, std::move(told.content)));
      unanswered_.erase(found);
    }
  }
  const std::lock_guard lock(mailbox_->mutex);
  told_ = std::exchange(mailbox_->told, {});
  return answers;
}

ProcReader::Answer ProcReader::Settle(const Unanswered& unanswered, Result<Content> content) {
  if (!content) return {unanswered.process, unanswered.asked, content.error(), unanswered.pause};
  ProcMaps maps = std::get<ProcMaps>(*std::move(content));
  for (const MappingEvent& event : unanswered.since) maps.Map(event.range, event.file);
  return {unanswered.process, unanswered.asked, std::move(maps), unanswered.pause};
}

std::vector<Pid> ProcReader::Due() const {
  std::vector<std::pair<MonotonicTime, Pid>> due;
  if (unanswered_.empty()) return {};
  const MonotonicTime now = clock_.Now();
  for (const auto& [pid, unanswered] : unanswered_) {
    if (!unanswered.ticket && now >= unanswered.due) due.emplace_back(unanswered.due, pid);
  }
  const size_t some = std::min(due.size(), options_.questions);
  std::ranges::partial_sort(due, due.begin() + static_cast<ptrdiff_t>(some));
  std::vector<Pid> pids;
  for (size_t i = 0; i < some; ++i) pids.push_back(due[i].second);
  return pids;
}

void ProcReader::AskLater(const ProcessKey& process) {
  PutOff(Remember(process, kUnknownUser), kSoon);
}

void ProcReader::AskAgainLater(const Answer& answer) {
  const auto found = unanswered_.find(answer.process.pid);
  if (found == unanswered_.end() || found->second.ticket) return;
  found->second.pause = std::max(found->second.pause, answer.pause);
  PutOff(found->second, kSoon);
}

bool ProcReader::is_busy() const {
  const MonotonicTime soon = After(clock_.Now(), kMoment);
  return !asked_.empty() ||
         std::ranges::any_of(unanswered_, [&](const auto& u) { return u.second.due < soon; });
}

void ProcReader::Note(const MappingEvent& event) {
  const auto found = unanswered_.find(event.pid);
  if (found == unanswered_.end()) return;
  Unanswered& unanswered = found->second;
  if (!unanswered.ticket || event.when <= unanswered.asked) return;
  unanswered.has_lost_some = unanswered.has_lost_some || unanswered.since.size() >= kMostSince;
  if (!unanswered.has_lost_some) unanswered.since.push_back(event);
}

void ProcReader::NoteLost() {
  for (auto& [pid, unanswered] : unanswered_) unanswered.has_lost_some = true;
}

void ProcReader::NoteLost(Pid pid) {
  const auto found = unanswered_.find(pid);
  if (found != unanswered_.end()) found->second.has_lost_some = true;
}

void ProcReader::ForgetBefore(Pid pid, MonotonicTime when) {
  const auto found = unanswered_.find(pid);
  if (found != unanswered_.end() && found->second.asked < when) unanswered_.erase(found);
}

// Not yet asked, as if it never had been.
ProcReader::Unanswered& ProcReader::Remember(const ProcessKey& process, UserId user) {
  Unanswered& unanswered = unanswered_[process.pid];
  if (unanswered.process != process) {
    unanswered = {.process = process, .user = user, .asked = clock_.Now(), .limit = options_.limit};
  }
  if (user != kUnknownUser) unanswered.user = user;
  unanswered.ticket.reset();
  unanswered.since.clear();
  unanswered.has_lost_some = false;
  return unanswered;
}

void ProcReader::PutOff(Unanswered& unanswered, std::chrono::nanoseconds least) const {
  unanswered.ticket.reset();
  unanswered.since.clear();
  unanswered.pause = std::clamp(2 * unanswered.pause, least, options_.longest_pause);
  unanswered.due = After(clock_.Now(), unanswered.pause);
}

void ProcReader::NoteLate(Unanswered& unanswered) {
  ++late_;
  PutOff(unanswered, options_.first_pause);
  unanswered.limit = std::min(2 * unanswered.limit, options_.longest_limit);
}

}  // namespace pyrometer
