// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that bounds what one program, process or user may cost.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxNotices = 16;
// Programs that are read again for a window, since there is room for them by now.
constexpr int kMostReadAgain = 64;

uint64_t BytesOf(const std::vector<CodeMapping>& code) {
  uint64_t bytes = 0;
  for (const CodeMapping& c : code) bytes += c.mapping.end.value() - c.mapping.start.value();
  return bytes;
}

// Only root becomes another user, as do those whose parents nobody knew. Who runs what makes him
// root stays who he was.
bool MayBecomeAnother(UserId user) {
  return user == UserId(0) || user == kUnknownUser;
}

bool MayBecomeAnother(const Process& process) {
  return !process.user_is_own && MayBecomeAnother(process.share->user());
}

}  // namespace

ProcessHistory::ReadCode ProcessHistory::WithinShare(std::vector<CodeMapping> code,
                                                     bool is_complete, UserShare& share,
                                                     const Process* known) {
  ReadCode read{.remembered = {}, .is_complete = is_complete && code.size() < kMaxProgramMappings};
  if (code.empty() || processes_.MakeRoom(share)) {
    read.remembered = std::move(code);
    return read;
  }
  if (known != nullptr) read.remembered = known->program().space.KnownPartsOf(code);
  read.has_room = BytesOf(read.remembered) == BytesOf(code);
  return read;
}

void ProcessHistory::NoteRead(Process& process, const ReadCode& read) {
  if (!read.has_room || !read.is_complete) {
    NoteOverBudget(process, read.has_room);
    return;
  }
  Program& program = process.program();
  program.complete = true;
  program.over_budget = false;
  program.over_share = false;
}

void ProcessHistory::NoteOverBudget(Process& process, bool has_room) {
  Program& program = process.program();
  program.complete = false;
  program.over_share = !has_room;
  if (std::exchange(program.over_budget, true)) return;
  changed_.insert(process.key.pid);
  ++counters_.programs_over_budget;
  if (!has_room) {
    NoteOverShare(*process.share);
    return;
  }
  if (notices_.size() >= kMaxNotices) return;
  notices_.push_back(
      {"keeping up with all that is mapped executable",
       fmt::format("process {} ({}) has more than a program may: its frames stay "
                   "addresses where that is unknown; see /proc/{}/maps",
                   process.key.pid.value(), Printable(program.comm), process.key.pid.value())});
}

bool ProcessHistory::NoteRecord(Process& process) {
  ++process.share->records;
  if (processes_.shares().IsLarge(*process.share) && MayBecomeAnother(process) &&
      process.share->questions.Take(options_.clock.Now())) {
    LearnUser(process);
  }
  return processes_.MakeRoom(*process.share);
}

void ProcessHistory::LearnUser(Process& process) {
  if (!MayBecomeAnother(process)) return;
  const ProcessDirectory* const directory = DirectoryOf(process);
  if (directory == nullptr) return;
  if (const auto status = directory->Status()) processes_.SetUser(process, UserId(status->user));
}

bool ProcessHistory::MayAdopt(Pid pid) {
  const ProcessTable::PassedOver* const passed_over = processes_.FindPassedOver(pid);
  if (passed_over == nullptr || processes_.MakeRoom(*passed_over->share)) return true;
  if (!MayBecomeAnother(passed_over->share->user())) return false;
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, pid);
  const Result<ProcStatus> status =
      directory ? directory->Status() : Result<ProcStatus>(directory.error());
  if (!status) return false;
  const std::shared_ptr<UserShare> share = processes_.ShareOf(UserId(status->user));
  processes_.PassOver(pid, {share, passed_over->exec, passed_over->since});  // so are its children
  return processes_.MakeRoom(*share);
}

void ProcessHistory::NoteOverShare(UserShare& share) {
  if (std::exchange(share.told, true)) return;
  ++counters_.users_over_share;
  if (notices_.size() >= kMaxNotices) return;
  const std::string who =
      share.user() == kUnknownUser ? "unknown users" : fmt::format("user {}", share.user().value());
  notices_.push_back({"keeping up with all processes",
                      fmt::format("those of {} take more memory here than their share, {} MiB: "
                                  "frames of new ones stay addresses",
                                  who, share.own().bytes >> 20)});
}

void ProcessHistory::UseNewRoom() {
  std::vector<Process*> waiting;
  processes_.ForEachLiving([&](Process& process) {
    if (process.program().over_share) waiting.push_back(&process);
  });
  const MonotonicTime now = options_.clock.Now();
  int read = 0;
  for (Process* const process : waiting) {
    if (!processes_.MakeRoom(*process->share) || !MayRecheck(*process, now)) continue;
    ReadAgain(*process, now);
    if (++read == kMostReadAgain) break;
  }
  PublishChanged();
}

bool ProcessHistory::MayRecheck(Process& process, MonotonicTime now) {
  if (!process.rechecks.Take(now)) {
    ++counters_.rechecks_refused;
    return false;
  }
  if (process.share->rechecks.Take(now)) return true;
  // Whose are they really?
  UserShare* const thought = process.share.get();
  LearnUser(process);
  if (process.share.get() != thought && process.share->rechecks.Take(now)) return true;
  ++counters_.rechecks_refused;
  return false;
}

void ProcessHistory::PassOver(const ScannedProcess& scanned, const TaskRecord* task) {
  const std::shared_ptr<UserShare> share = processes_.ShareOf(scanned.user);
  ProcessTable::PassedOver passed_over{share, std::nullopt, scanned.read_at};
  if (task != nullptr) {
    passed_over.exec = task->exec;
    passed_over.since = task->read_at;
  }
  processes_.PassOver(scanned.key.pid, std::move(passed_over));
  NoteOverShare(*share);
  Withdraw(scanned.key.pid);
}

// The file is not even looked for, but what was there has gone.
void ProcessHistory::PassOver(Process& process, const MappingEvent& event, bool has_room) {
  ++counters_.mappings_passed_over;
  NoteOverBudget(process, has_room && !process.program().over_share);
  const auto& [start, end] = std::pair(event.range.start, event.range.end);
  if (process.program().space.Forget(start, end, event.when)) changed_.insert(event.pid);
}

}  // namespace pyrometer
