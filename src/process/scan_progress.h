// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "process/process_event.h"
#include "process/task_record.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// How far all of /proc has been read. Thread-compatible.
struct ScanProgress {
  MonotonicTime begin;
  std::vector<Pid> pids;  // that existed then, in the order in which they are read
  size_t next = 0;        // of these
  // Those read since then, for whatever reason, and those that live but could not be read.
  absl::flat_hash_set<Pid> seen;
  // What is left for the files of all of them, and of what happens meanwhile; nothing: each slice
  // has its own.
  std::optional<std::chrono::nanoseconds> patience;

  // Read shortly before `begin`.
  void SetTasks(std::span<const TaskRecord> tasks) {
    for (const TaskRecord& task : tasks) tasks_[task.pid] = task;  // its threads agree on the exec
  }
  // As of the last event that was noted; null if there is none of that process.
  const TaskRecord* TaskOf(Pid pid) const {
    const auto task = tasks_.find(pid);
    return task == tasks_.end() ? nullptr : &task->second;
  }
  // An exec between the moment of its record and that of its reading counts.
  void NoteExec(const CommEvent& event) {
    const auto task = tasks_.find(event.pid);
    if (task == tasks_.end() || event.when <= task->second.read_at) return;
    task->second.exec = ExecId(task->second.exec.value() + 1);
    task->second.read_at = event.when;
  }

 private:
  absl::flat_hash_map<Pid, TaskRecord> tasks_;
};

}  // namespace pyrometer
