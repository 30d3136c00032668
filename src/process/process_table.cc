// SPDX-License-Identifier: Apache-2.0
#include "process/process_table.h"

#include <algorithm>
#include <utility>

namespace pyrometer {
namespace {

// A fork bomb must not make us remember it all: beyond this the longest ended are forgotten early.
constexpr size_t kMaxEnded = 32768;

// In clock ticks: what may pass from the moment that counts as a process's start to the report of
// its fork. Usually 20 us; a virtual CPU may stand still in between.
constexpr uint64_t kLongestFork = 100;

ExecId Next(ExecId exec) {
  return ExecId(exec.value() + 1);
}

std::optional<ExecId> Next(std::optional<ExecId> exec) {
  return exec ? std::optional(Next(*exec)) : std::nullopt;
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

Process& ProcessTable::Bear(Pid pid, MonotonicTime when) {
  auto process = std::make_unique<Process>();
  process->key = {pid, clock_.ToStartTime(when)};
  process->born = when;
  ++living_;
  Lives& lives = processes_[pid];
  lives.push_back(std::move(process));
  return *lives.back();
}

void ProcessTable::End(Process& process, MonotonicTime when) {
  // Never before an earlier grave's: then graves_ stays sorted.
  process.ended = graves_.empty() ? when : std::max(when, graves_.back().ended);
  process.threads.clear();
  --living_;
  graves_.push_back({process.ended, process.key.pid});
  if (graves_.size() > kMaxEnded) ForgetOldest();
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
  Process& child = Bear(event.pid, event.when);
  child.threads.insert(event.tid);
  child.exec_learnt_at = event.when;
  Program program;
  if (parent != nullptr) {
    const Program& image = parent->program();
    program = {image.exec,     event.when,        image.comm,   image.space.Fork(event.when),
               image.complete, image.over_budget, image.drifts, image.drift_pages,
               image.code,     image.root,        false};
    child.kernel_thread = parent->kernel_thread;
    child.labels = parent->labels;
    if (!parent->shown) child.unshown_parent = event.parent;
    child.has_anonymous_code = parent->has_anonymous_code;
  }
  program.since = event.when;
  child.programs.push_back(std::move(program));
  return &child;
}

bool ProcessTable::Apply(const ExitEvent& event) {
  Process* const process = Living(event.pid);
  if (process == nullptr || event.when < process->born) return false;
  process->threads.erase(event.tid);
  if (!process->threads.empty()) return false;
  End(*process, event.when);
  return true;
}

Process* ProcessTable::Apply(const CommEvent& event) {
  Process* const process = Living(event.pid);
  if (process == nullptr) return nullptr;
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
  Program next;
  next.exec = Next(program.exec);
  next.since = event.when;
  next.comm = event.comm;
  next.complete = true;
  next.root = program.root;
  process->exec_learnt_at = event.when;
  process->kernel_thread = false;
  process->shown = false;
  process->has_anonymous_code = false;
  process->perf_map.reset();
  // Every other thread has ended, and the one that called exec has the leader's id now.
  process->threads = {Tid(event.pid.value())};
  process->programs.push_back(std::move(next));
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
    process = &Bear(scanned.key.pid, MonotonicTime(0));
    process->programs.emplace_back();
  }
  process->key = scanned.key;
  process->start_is_exact = true;
  process->kernel_thread = scanned.kernel_thread;
  process->threads = {scanned.threads.begin(), scanned.threads.end()};
  process->scanned_at = scanned.read_at;
  if (task != nullptr && task->start == scanned.key.start_time) {
    if (!is_new && process->program().exec && process->program().exec != task->exec) {
      Program next;  // its exec was lost
      next.since = scanned.read_at;
      next.root = process->program().root;
      process->programs.push_back(std::move(next));
      process->shown = false;
    }
    process->program().exec = task->exec;
    process->exec_learnt_at = task->read_at;
  }
  Program& program = process->program();
  program.comm = scanned.comm;
  program.complete = true;
  program.space.Replace(mappings, is_new ? MonotonicTime(0) : scanned.read_at);
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
  const std::vector<Program>& programs = process->programs;
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    if (program->exec == exec) return &*program;
  }
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    if (program->since <= when) return program->exec ? nullptr : &*program;
  }
  return nullptr;
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
    for (const std::unique_ptr<Process>& process : lives) visit(*process);
  }
}

void ProcessTable::ForEachLiving(const std::function<void(Process&)>& visit) {
  for (auto& [pid, lives] : processes_) {
    if (lives.back()->alive()) visit(*lives.back());
  }
}

void ProcessTable::ForgetOldest() {
  const Grave grave = graves_.front();
  graves_.pop_front();
  const auto it = processes_.find(grave.pid);
  if (it == processes_.end()) return;
  Lives& lives = it->second;
  const auto dead =
      std::find_if(lives.begin(), lives.end(), [](const auto& p) { return !p->alive(); });
  if (dead != lives.end()) lives.erase(dead);
  if (lives.empty()) processes_.erase(it);
}

void ProcessTable::Forget(MonotonicTime horizon) {
  while (!graves_.empty() && graves_.front().ended < horizon) ForgetOldest();
  ForEachLiving([&](Process& process) {
    std::vector<Program>& programs = process.programs;
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
