// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pyrometer {

// What happened since the tracker started. Each event is counted once.
struct ProcessCounters {
  // Kernel records by type.
  uint64_t mmap_records = 0;
  uint64_t comm_records = 0;
  uint64_t exec_records = 0;
  uint64_t fork_records = 0;
  uint64_t exit_records = 0;
  uint64_t ksymbol_records = 0;
  uint64_t lost_records = 0;       // the kernel's own count of what did not fit into the ring
  uint64_t malformed_records = 0;  // dropped
  uint64_t late_records = 0;       // came after later ones had been applied

  uint64_t scans = 0;                 // of /proc, the first one included
  uint64_t scans_failed = 0;          // /proc could not be listed; tried again
  uint64_t snapshots_failed = 0;      // of tasks and their exec ids; tried again
  uint64_t cpu_rescans_failed = 0;    // looks for CPUs that came or went; tried again
  uint64_t resyncs = 0;               // scans because records were lost
  uint64_t resyncs_put_off = 0;       // of these: later, so soon after another
  uint64_t processes_unreadable = 0;  // failures to read a living process
  // Of these: /proc did not say in time what is mapped, for which it takes a lock of the process.
  uint64_t process_answers_late = 0;
  uint64_t processes_unanswered = 0;  // processes, now, that have yet to say it
  uint64_t publishes = 0;             // that found room
  uint64_t publishes_put_off = 0;     // changes of processes published often lately; done together
  // From the first change of what a process has mapped to the next publish that found room; these
  // are no counters.
  uint64_t publish_us_median = 0;
  uint64_t publish_us_99_percent = 0;
  uint64_t publish_us_longest = 0;
  uint64_t rechecks = 0;          // of one process's mappings, because the kernel disagreed
  uint64_t rechecks_changed = 0;  // of these: the kernel was right
  uint64_t rechecks_refused = 0;  // too many of that process, or of its user

  // With more executable mappings than are kept, or than their users have room for.
  uint64_t programs_over_budget = 0;
  uint64_t mappings_passed_over = 0;  // new ones of these, and of processes passed over
  // Fairness between users; see UserShares.
  uint64_t remembered_bytes = 0;           // now, of all processes and what they have mapped
  uint64_t remembered_ended = 0;           // now; processes
  uint64_t processes_forgotten_early = 0;  // of users with more than their share
  uint64_t processes_passed_over = 0;      // living ones, likewise
  uint64_t users_over_share = 0;

  uint64_t objects = 0;
  uint64_t objects_unopened = 0;        // the file was gone, unreadable or a different one
  uint64_t objects_refused = 0;         // no object id was left
  uint64_t objects_waiting = 0;         // now: their file system has not answered yet
  uint64_t file_questions = 0;          // asked of file systems
  uint64_t file_questions_late = 0;     // no answer in time
  uint64_t file_questions_refused = 0;  // not asked, or nobody could be found to answer
  uint64_t jit_dumps_refused = 0;       // not held, as there are so many; of one user or all
  uint64_t openers_stuck = 0;           // processes that were asked and hang, now
  uint64_t files_overwritten = 0;       // without a build id, while they were mapped
  uint64_t frames_overwritten = 0;      // of these files; left as offsets
  uint64_t kernel_symbols_dropped = 0;  // nobody took them

  // Resolving windows.
  uint64_t unwanted_samples = 0;  // ticks of samples that the observer took out of their windows
  uint64_t unknown_process_samples = 0;  // sample entries whose process or program is not known
  uint64_t resolved_frames = 0;
  uint64_t cut_stacks = 0;       // at an address in no mapping
  uint64_t outdated_frames = 0;  // attributed to a mapping that had ended; corrected
  uint64_t doubtful_frames = 0;  // their mapping changed meanwhile; left as addresses
};

}  // namespace pyrometer
