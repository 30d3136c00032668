// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that tells the kernel side what is mapped.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

// So often anonymous code must have come or gone without a report before that is allowed for.
constexpr uint32_t kHabit = 4;

// True if so small a file's mapping may be gone while the count of executable pages is within its
// slack. Nobody unmaps the executable or the vDSO.
bool MayHaveGone(const ObjectMapping& mapping, const Program& program, uint64_t page_size) {
  if (program.drifts < kHabit) return false;
  if (mapping.object == ObjectId(0) || mapping.object == ObjectTable::kVdso) return false;
  const uint64_t pages = (mapping.end.value() - mapping.start.value()) / page_size;
  return pages <= 2 * program.drift_pages && !mapping.Contains(program.code);
}

std::vector<PublishedMapping> ToPublish(const std::vector<ObjectMapping>& mappings,
                                        const Program& program, uint64_t page_size) {
  const AddressRanges& shifting = program.space.shifting();
  std::vector<PublishedMapping> published;
  published.reserve(mappings.size());
  for (const ObjectMapping& mapping : mappings) {
    const bool may_have_gone = MayHaveGone(mapping, program, page_size);
    for (Address start = mapping.start; start < mapping.end;) {
      const Address end = shifting.EndOfStretch(start, mapping.end);
      const bool is_shifting = may_have_gone || shifting.Contains(start);
      published.push_back({{start, end, mapping.object, mapping.bias}, is_shifting});
      start = end;
    }
  }
  return published;
}

}  // namespace

void ProcessHistory::Publish(Pid pid) {
  put_off_.erase(pid);
  Process* const process = processes_.Living(pid);
  if (process == nullptr) {
    Withdraw(pid);
    return;
  }
  // Where it is unreadable its first sample shows it.
  if (IsToBeShown(*process)) {
    if (const ProcessDirectory* const directory = DirectoryOf(*process)) Show(*process, directory);
  }
  Program& program = process->program();
  if (process->kernel_thread || !program.exec || program.over_budget || program.space.empty()) {
    Withdraw(pid);
    program.space.NoteTold(options_.clock.Now());
    program.changed_since.reset();
    return;
  }
  const AddressSpace::Picture now = program.space.Current();
  const ExecPages exec_pages{.count = now.counted_bytes / page_size_,
                             .slack = program.drifts < kHabit ? 0 : program.drift_pages};
  const bool is_known = sink_.Publish(process->key, *program.exec, exec_pages,
                                      ToPublish(now.mappings, program, page_size_));
  const MonotonicTime told = options_.clock.Now();
  program.space.NoteTold(told);  // either way nothing leads to what was mapped before
  if (!is_known) return;         // and it is published again when it is missed
  if (program.changed_since) publish_latency_.Add(Between(*program.changed_since, told));
  program.changed_since.reset();
  ++counters_.publishes;
}

void ProcessHistory::NoteChange(Process& process, MonotonicTime when) {
  Program& program = process.program();
  if (!program.changed_since) program.changed_since = when;
  changed_.insert(process.key.pid);
}

void ProcessHistory::PublishChanged() {
  // Parents before their children, which inherit what the observer says of them.
  std::vector<std::pair<MonotonicTime, Pid>> by_birth;
  by_birth.reserve(changed_.size());
  for (const Pid pid : std::exchange(changed_, {})) {
    const Process* const process = processes_.Living(pid);
    by_birth.emplace_back(process == nullptr ? MonotonicTime(0) : process->born, pid);
  }
  std::ranges::sort(by_birth);
  for (const auto& [born, pid] : by_birth) Publish(pid);
  open_.reset();
}

void ProcessHistory::PublishMissed() {
  for (const Pid pid : sink_.TakeMissed()) changed_.insert(pid);
  PublishChanged();
}

bool ProcessHistory::MayPublish(Pid pid, MonotonicTime now) {
  Process* const process = processes_.Living(pid);
  return process == nullptr || process->program().publishes.Take(now);
}

void ProcessHistory::PutOff() {
  const MonotonicTime now = options_.clock.Now();
  absl::erase_if(changed_, [&](Pid pid) {
    if (MayPublish(pid, now)) return false;
    put_off_.insert(pid);
    ++counters_.publishes_put_off;
    return true;
  });
}

bool ProcessHistory::PublishDue() {
  if (put_off_.empty()) return false;
  const MonotonicTime now = options_.clock.Now();
  absl::erase_if(put_off_, [&](Pid pid) {
    if (!MayPublish(pid, now)) return false;
    changed_.insert(pid);
    return true;
  });
  PublishChanged();
  return !put_off_.empty();
}

void ProcessHistory::Withdraw(Pid pid) {
  changed_.erase(pid);
  put_off_.erase(pid);
  // Also where nothing was published: the kernel side gives a child what it knows of the parent.
  sink_.Withdraw(pid);
}

}  // namespace pyrometer
