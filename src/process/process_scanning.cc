// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that reads all of /proc.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "process/process_history.h"

namespace pyrometer {

Result<void> ProcessHistory::Scan(std::span<const TaskRecord> tasks) {
  RETURN_IF_ERROR(BeginScan(tasks, kFirstScanPatience));
  while (ContinueScan(std::chrono::hours(1))) continue;
  return {};
}

Result<void> ProcessHistory::BeginScan(std::span<const TaskRecord> tasks, ScanPatience patience) {
  ScanProgress scan;
  scan.begin = options_.clock.Now();
  scan.patience = patience;
  const std::optional<std::vector<CommEvent>> execs = std::exchange(execs_, std::nullopt);
  Result<std::vector<Pid>> pids = ListProcesses(options_.procfs);
  if (!pids) {
    ++counters_.scans_failed;
    lost_ = true;
    return pids.error();
  }
  scan.pids = InOrderOfRecords(*std::move(pids));
  scan.SetTasks(tasks);
  if (execs) std::ranges::for_each(*execs, [&](const CommEvent& exec) { scan.NoteExec(exec); });
  scan_ = std::move(scan);
  return {};
}

std::vector<Pid> ProcessHistory::InOrderOfRecords(std::vector<Pid> pids) {
  std::vector<std::pair<uint64_t, Pid>> by_records;
  by_records.reserve(pids.size());
  for (const Pid pid : pids) {
    by_records.emplace_back(RecordsOfUser(pid), pid);
  }
  std::ranges::sort(by_records);
  std::ranges::transform(by_records, pids.begin(), [](const auto& p) { return p.second; });
  processes_.HalveRecords();
  return pids;
}

uint64_t ProcessHistory::RecordsOfUser(Pid pid) {
  if (const Process* const process = processes_.Living(pid)) return process->share->records;
  const ProcessTable::PassedOver* const passed_over = processes_.FindPassedOver(pid);
  return passed_over == nullptr ? 0 : passed_over->share->records;
}

bool ProcessHistory::ContinueScan(std::chrono::nanoseconds most) {
  if (!scan_) return false;
  const MonotonicTime enough = After(options_.clock.Now(), most);
  processes_.set_clock(BootClock::Now());
  BeginBurst();
  TakeIdentified();
  do {
    if (scan_->next == scan_->pids.size()) {
      EndScan();
      break;
    }
    ScanNext();
  } while (options_.clock.Now() < enough);
  EndBurst();
  PublishChanged();
  return scan_.has_value();
}

// What happens during the first scan finds all files of a process just as well: of its own one at
// the least, which starts threads and others meanwhile.
void ProcessHistory::BeginBurst() {
  if (scan_ && scan_->patience) {
    inspections_.BeginBurst(*scan_->patience);
  } else {
    inspections_.BeginBurst();
  }
}

void ProcessHistory::EndBurst() {
  if (scan_ && scan_->patience) scan_->patience = inspections_.left();
}

void ProcessHistory::ScanNext() {
  const Pid pid = scan_->pids[scan_->next++];
  if (scan_->seen.contains(pid)) return;
  if (!MayAdopt(pid)) {
    scan_->seen.insert(pid);
    return;
  }
  const Result<ProcessDirectory> directory = ProcessDirectory::Open(options_.procfs, pid);
  const Result<ScannedProcess> process = directory
                                             ? ScanProcess(*directory, pid, reader_, options_.clock)
                                             : Result<ScannedProcess>(directory.error());
  if (process) {
    AddScanned(*process, *directory);
  } else if (!IsGone(process.error())) {
    scan_->seen.insert(pid);
    ++counters_.processes_unreadable;
  }
}

void ProcessHistory::EndScan() {
  const auto is_seen = [this](Pid pid) { return scan_->seen.contains(pid); };
  for (const Pid gone : processes_.EndMissing(scan_->begin, is_seen)) Withdraw(gone);
  absl::flat_hash_set<Pid> living = std::move(scan_->seen);
  processes_.ForEachLiving([&](const Process& process) { living.insert(process.key.pid); });
  sink_.Sweep(std::vector<Pid>(living.begin(), living.end()));
  ++counters_.scans;
  scan_.reset();
}

// Of a parent that was not read yet the child could not inherit anything.
void ProcessHistory::AdoptParent(const ForkEvent& event) {
  const Pid parent = event.parent;
  if (processes_.Living(parent) != nullptr || scan_->seen.contains(parent)) return;
  if (scan_->TaskOf(parent) != nullptr) Adopt(parent);
}

}  // namespace pyrometer
