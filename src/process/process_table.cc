// SPDX-License-Identifier: Apache-2.0
#include "process/process_table.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

// In clock ticks: what may pass from the moment that counts as a process's start to the report of
// its fork. Usually 20 us; a virtual CPU may stand still in between.
constexpr uint64_t kLongestFork = 100;

ExecId Next(ExecId exec) {
  return ExecId(exec.value() + 1);
}

std::optional<ExecId> Next(std::optional<ExecId> exec) {
  return exec ? std::optional(Next(*exec)) : std::nullopt;
}

// All children have it from one place.
std::vector<std::shared_ptr<const InheritableCode>> InheritFrom(Process& parent) {
  if (!parent.has_anonymous_code) return parent.inherited_code;
  if (parent.own_code == nullptr) parent.own_code = std::make_shared<InheritableCode>();
  parent.own_code->of = parent.key;
  if (parent.perf_map != nullptr) parent.own_code->perf_map = parent.perf_map;
  std::vector<std::shared_ptr<const InheritableCode>> code = {parent.own_code};
  const auto before = std::span(parent.inherited_code);
  std::ranges::copy(before.first(std::min(before.size(), InheritableCode::kMost - 1)),
                    std::back_inserter(code));
  return code;
}

}  // namespace

bool Process::StartedAt(StartTime start) const {
  const uint64_t mine = key.start_time.value();
  const uint64_t other = start.value();
  if (start_is_exact || other >= mine) return other == mine;
  return mine - other <= kLongestFork;
}

Process* ProcessTable::Living(Pid pid) {
  const auto it = processes_.find(pid);
  if (it == processes_.end() || !it->second.back()->alive()) return nullptr;
  return it->second.back().get();
}

Process& ProcessTable::Bear(Pid pid, MonotonicTime when, const std::shared_ptr<UserShare>& share) {
  auto process = std::allocate_shared<Process>(Charged<Process>(share), share);
  process->key = {pid, clock_.ToStartTime(when)};
  process->born = when;
  process->number = ++last_number_;
  ++living_;
  Lives& lives = processes_[pid];
  lives.push_back(std::move(process));
  return *lives.back();
}

void ProcessTable::End(Process& process, MonotonicTime when) {
  // Never before an earlier end: then graves stay sorted.
  process.ended = last_end_ = std::max(when, last_end_);
  process.threads.clear();
  --living_;
  const std::shared_ptr<UserShare> share = process.share;
  share->Bury({process.ended, process.key.pid});
  MakeRoom(*share);  // may forget the process itself
}

Program ProcessTable::NewProgram(const Process& process, MonotonicTime since) {
  Program program;
  program.since = since;
  program.space = AddressSpace(process.share);
  return program;
}

Process* ProcessTable::Apply(const ForkEvent& event) {
  Process* const parent = Living(event.parent);
  if (event.pid == event.parent) {
    if (parent != nullptr) parent->threads.insert(event.tid);
    return nullptr;
  }
  Process* known = Living(event.pid);
  if (known != nullptr && event.when <= known->scanned_at) {
    // The scan found the child before its fork was applied. It has all but the exec id.
    known->born = event.when;
    if (!known->program().exec && parent != nullptr) {
      known->program().exec = parent->program().exec;
      known->exec_learnt_at = event.when;
    }
    return known;
  }
  if (known != nullptr) End(*known, event.when);  // its exit was lost
  if (PassOverChild(event, parent)) return nullptr;
  const auto share = parent != nullptr ? parent->share : shares_.Of(kUnknownUser);
  Process& child = Bear(event.pid, event.when, share);
  child.threads.insert(event.tid);
  child.exec_learnt_at = event.when;
  Program program;
  if (parent != nullptr) {
    const Program& image = parent->program();
    program = {
        image.exec,        event.when,        image.comm,       image.space.Fork(event.when, share),
        image.complete,    image.over_budget, image.over_share, image.drifts,
        image.drift_pages, image.code,        image.root,       false};
    child.kernel_thread = parent->kernel_thread;
    child.labels = parent->labels;
    if (parent->seen != Seen::kYes) child.unseen_parent = event.parent;
    child.has_anonymous_code = parent->has_anonymous_code;
    child.inherited_code = InheritFrom(*parent);
    child.jit_dumps = parent->jit_dumps;
    for (JitDumpUse& use : child.jit_dumps) use.until = std::min(use.until, event.when);
  }
  if (parent == nullptr) program = NewProgram(child, event.when);
  child.programs.push_back(std::move(program));
  return &child;
}

bool ProcessTable::PassOverChild(const ForkEvent& event, const Process* parent) {
  passed_over_.erase(event.pid);
  PassedOver child{.share = nullptr, .exec = std::nullopt, .since = event.when};
  if (parent != nullptr) {
    child.share = parent->share;
    child.exec = parent->program().exec;
  } else if (const PassedOver* const passed_over = FindPassedOver(event.parent)) {
    child.share = passed_over->share;
    child.exec = passed_over->exec;
  } else {
    child.share = shares_.Of(kUnknownUser);
  }
  if (MakeRoom(*child.share)) return false;
  PassOver(event.pid, std::move(child));
  return true;
}

bool ProcessTable::Apply(const ExitEvent& event) {
  if (event.pid.value() == event.tid.value()) passed_over_.erase(event.pid);
  Process* const process = Living(event.pid);
  if (process == nullptr || event.when < process->born) return false;
  process->threads.erase(event.tid);
  if (!process->threads.empty()) return false;
  End(*process, event.when);
  return true;
}

Process* ProcessTable::Apply(const CommEvent& event) {
  Process* const process = Living(event.pid);
  if (process == nullptr) {
    const auto passed_over = passed_over_.find(event.pid);
    if (event.exec && passed_over != passed_over_.end() && passed_over->second.since < event.when) {
      passed_over->second.exec = Next(passed_over->second.exec);
      passed_over->second.since = event.when;
    }
    return nullptr;
  }
  Program& program = process->program();
  const bool scanned = event.when <= process->scanned_at;
  if (!event.exec) {
    if (!scanned && event.tid.value() == event.pid.value()) program.comm = event.comm;
    return nullptr;
  }
  if (event.when <= process->exec_learnt_at) return nullptr;
  if (scanned) {
    // The exec came after its task's record was read, and before the mappings were.
    program.exec = Next(program.exec);
    program.space.ForgetShifting();
    program.drifts = 0;
    program.drift_pages = 0;
    process->exec_learnt_at = event.when;
    return process;
  }
  Program next = NewProgram(*process, event.when);
  next.exec = Next(program.exec);
  next.comm = event.comm;
  next.complete = true;
  next.root = program.root;
  process->exec_learnt_at = event.when;
  process->kernel_thread = false;
  process->seen = Seen::kNo;
  process->user_is_own = false;
  process->has_anonymous_code = false;
  process->perf_map.reset();
  if (process->own_code != nullptr) process->own_code->is_over = true;
  process->own_code.reset();
  process->inherited_code.clear();
  process->jit_dumps.clear();
  // Every other thread has ended, and the one that called exec has the leader's id now.
  process->threads = {Tid(event.pid.value())};
  process->programs.push_back(std::move(next));
  if (!MakeRoom(*process->share)) {
    process->programs.erase(process->programs.begin(), process->programs.end() - 1);
  }
  return process;
}

Process& ProcessTable::Add(const ScannedProcess& scanned, const std::vector<CodeMapping>& mappings,
                           const TaskRecord* task) {
  Process* process = Living(scanned.key.pid);
  if (process != nullptr && !process->StartedAt(scanned.key.start_time)) {
    End(*process, scanned.read_at);
    process = nullptr;
  }
  const bool is_new = process == nullptr;
  if (is_new) {
    passed_over_.erase(scanned.key.pid);
    process = &Bear(scanned.key.pid, MonotonicTime(0), shares_.Of(scanned.user));
    process->programs.push_back(NewProgram(*process, MonotonicTime(0)));
  }
  if (scanned.user != kUnknownUser) SetUser(*process, scanned.user);
  process->key = scanned.key;
  process->start_is_exact = true;
  process->kernel_thread = scanned.kernel_thread;
  process->threads = {scanned.threads.begin(), scanned.threads.end()};
  if (scanned.maps || is_new) process->scanned_at = scanned.read_at;
  if (task != nullptr && task->start == scanned.key.start_time) {
    if (!is_new && process->program().exec && process->program().exec != task->exec) {
      Program next = NewProgram(*process, scanned.read_at);  // its exec was lost
      next.root = process->program().root;
      process->programs.push_back(std::move(next));
      process->seen = Seen::kNo;
    }
    process->program().exec = task->exec;
    process->exec_learnt_at = task->read_at;
  }
  Program& program = process->program();
  program.comm = scanned.comm;
  if (scanned.maps) {
    program.complete = true;
    program.space.Replace(mappings, is_new ? MonotonicTime(0) : scanned.read_at);
  }
  return *process;
}

std::vector<Pid> ProcessTable::EndMissing(MonotonicTime when,
                                          const std::function<bool(Pid)>& seen) {
  std::vector<Process*> missing;
  ForEachLiving([&](Process& process) {
    if (process.born < when && !seen(process.key.pid)) missing.push_back(&process);
  });
  std::vector<Pid> pids;
  for (Process* process : missing) {
    pids.push_back(process->key.pid);
    End(*process, when);
  }
  absl::erase_if(passed_over_,
                 [&](const auto& p) { return p.second.since < when && !seen(p.first); });
  return pids;
}

const Process* ProcessTable::Find(const ProcessKey& key, MonotonicTime when) const {
  const auto it = processes_.find(key.pid);
  if (it == processes_.end()) return nullptr;
  const Process* nearest = nullptr;
  for (const auto& life : it->second) {
    if (life->born > when || !life->StartedAt(key.start_time)) continue;
    // Starts ascend, and those that match are not before the key's: the first is the nearest, and
    // of those that began in the same tick the last.
    if (nearest != nullptr && life->key.start_time != nearest->key.start_time) break;
    nearest = life.get();
  }
  return nearest;
}

Process* ProcessTable::Find(const ProcessKey& key, MonotonicTime when) {
  return const_cast<Process*>(std::as_const(*this).Find(key, when));
}

Process* ProcessTable::Life(Pid pid, uint64_t number) {
  const auto it = processes_.find(pid);
  if (it == processes_.end()) return nullptr;
  const auto life = std::ranges::find(it->second, number, [](const auto& p) { return p->number; });
  return life == it->second.end() ? nullptr : life->get();
}

const Process* ProcessTable::At(Pid pid, MonotonicTime when) const {
  const auto it = processes_.find(pid);
  if (it == processes_.end()) return nullptr;
  const Lives& lives = it->second;
  const auto life = std::find_if(lives.rbegin(), lives.rend(), [&](const auto& p) {
    return p->born <= when && p->ended >= when;
  });
  return life == lives.rend() ? nullptr : life->get();
}

const Program* ProcessTable::Find(const ProcessKey& key, ExecId exec, MonotonicTime when) const {
  const Process* const process = Find(key, when);
  if (process == nullptr) return nullptr;
  const Programs& programs = process->programs;
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    if (program->exec == exec) return &*program;
  }
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    if (program->since <= when) return program->exec ? nullptr : &*program;
  }
  return nullptr;
}

void ProcessTable::HalveRecords() {
  shares_.ForEach([](UserShare& share) { share.records /= 2; });
}

bool ProcessTable::LearnStart(const ProcessKey& key, MonotonicTime when) {
  Process* const process = Living(key.pid);
  if (process == nullptr || process->start_is_exact || when < process->born) return false;
  if (!process->StartedAt(key.start_time)) return false;
  process->start_is_exact = true;
  return std::exchange(process->key, key) != key;
}

void ProcessTable::ForEach(const std::function<void(Process&)>& visit) {
  for (auto& [pid, lives] : processes_) {
    for (const std::shared_ptr<Process>& process : lives) visit(*process);
  }
}

void ProcessTable::ForEachLiving(const std::function<void(Process&)>& visit) {
  for (auto& [pid, lives] : processes_) {
    if (lives.back()->alive()) visit(*lives.back());
  }
}

void ProcessTable::PassOver(Pid pid, PassedOver process) {
  const bool is_new = passed_over_.insert_or_assign(pid, std::move(process)).second;
  if (is_new) ++passed_over_count_;
}

const ProcessTable::PassedOver* ProcessTable::FindPassedOver(Pid pid) const {
  const auto found = passed_over_.find(pid);
  return found == passed_over_.end() ? nullptr : &found->second;
}

bool ProcessTable::SetUser(Process& process, UserId user) {
  process.user_is_own = true;
  if (process.share->user() == user) return false;
  process.share = shares_.Of(user);
  process.program().space.ChargeTo(process.share);
  return true;
}

bool ProcessTable::MakeRoom(UserShare& share) {
  while (shares_.IsOver(share) && !share.graves().empty()) {
    ForgetOldest(share);
    ++forgotten_early_;
  }
  return !shares_.IsOverBytes(share);
}

void ProcessTable::ForgetOldest(UserShare& share) {
  const UserShare::Grave grave = share.Unearth();
  const auto it = processes_.find(grave.pid);
  if (it == processes_.end()) return;
  Lives& lives = it->second;
  const auto dead = std::ranges::find_if(
      lives, [&](const auto& p) { return p->ended == grave.ended && p->share.get() == &share; });
  if (dead != lives.end()) lives.erase(dead);
  if (lives.empty()) processes_.erase(it);
}

void ProcessTable::Forget(MonotonicTime horizon) {
  shares_.ForEach([&](UserShare& share) {
    while (!share.graves().empty() && share.graves().front().ended < horizon) ForgetOldest(share);
    if (!shares_.IsLarge(share)) share.told = false;
  });
  ForEachLiving([&](Process& process) {
    Programs& programs = process.programs;
    // A program lasted until the next one began.
    while (programs.size() > 1 && programs[1].since < horizon) programs.erase(programs.begin());
    process.program().space.Forget(horizon);
  });
}

absl::flat_hash_set<ObjectId> ProcessTable::Objects() const {
  absl::flat_hash_set<ObjectId> objects;
  for (const auto& [pid, lives] : processes_) {
    for (const auto& process : lives) {
      for (const Program& program : process->programs) program.space.AddObjects(objects);
    }
  }
  return objects;
}

}  // namespace pyrometer
