// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "foreign/question_threads.h"
#include "process/file_inspections.h"
#include "process/object_mapping.h"
#include "process/proc_maps.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "process/user_share.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Reads what /proc shows of a process's memory. The kernel takes the lock of that memory for it
// (mmap_lock), which a process can hold for ever: whoever has a file system of his own that does
// not answer, and unmaps a page of it that is to be written back; as can a frozen file system, or a
// CPU quota, for a while. So others are asked to read, and waited for a moment, out of the patience
// of the burst (FileInspections), and only 1 ms for those of a user who keeps others waiting: what
// takes longer is taken when it comes, and what does not answer is asked again after pauses, with
// more time. Thread-compatible.
class ProcReader {
 public:
  struct Options {
    // After so long a process is taken for one that does not answer, for now; twice as long the
    // next time. The most mappings that a process may have, 65,530 by default, take some 50 ms.
    std::chrono::nanoseconds limit = std::chrono::milliseconds(250);
    std::chrono::nanoseconds longest_limit = std::chrono::seconds(4);
    // Before one that did not answer is asked again: they double.
    std::chrono::nanoseconds first_pause = std::chrono::seconds(1);
    std::chrono::nanoseconds longest_pause = std::chrono::seconds(60);
    // Of questions that await their answers a user may have as many as all together leave free.
    size_t questions = 16;
  };

  // Who is asked. Not owned.
  struct Subject {
    const ProcessDirectory& directory;
    ProcessKey process;
    UserId user;  // whose it is
  };

  // An answer that was not waited for.
  struct Answer {
    ProcessKey process;
    MonotonicTime asked;
    // As of a moment since `asked`, and with all that was mapped from then until now. Errors: see
    // IsGone(), or kPermission.
    Result<ProcMaps> maps;
    std::chrono::nanoseconds pause;  // before the question
  };

  ProcReader(const Options& options, const Clock& clock, FileInspections& patience);

  // Executable mappings, from a living thread where the leader has ended. Errors: kExhausted if the
  // answer did not come soon, or does not come yet: TakeAnswers() will have it, or Due() the
  // process; else see IsGone(), or kPermission.
  Result<ProcMaps> Mappings(const Subject& subject);

  // The file mapped at exactly this range, whatever its path leads to now. O_PATH. Errors: as
  // above, but a late answer is lost, and who has not answered yet is not asked.
  Result<UniqueFd> OpenMapped(const Subject& subject, const FileMapping& range);

  // Those that had come by the last call, of processes that are not forgotten. So all events before
  // them have been noted, if that is done between the calls.
  std::vector<Answer> TakeAnswers();

  // Some processes whose mappings are to be asked for again now; who waits longest comes first.
  std::vector<Pid> Due() const;
  // It could not be asked, or its answer could not be used.
  void AskLater(const ProcessKey& process);
  // If the process is to be asked again since not all could be looked at that this answer tells of,
  // then after a longer pause than this time.
  void AskAgainLater(const Answer& answer);

  // To be told of all that is mapped, in order: an answer that is awaited may not have it.
  void Note(const MappingEvent& event);
  // Some of that, or an exec, was not noted: answers that are awaited are no good.
  void NoteLost();
  void NoteLost(Pid pid);

  // A process has ended, or ran another program at `when`: whether it answers is not known.
  void Forget(Pid pid) { unanswered_.erase(pid); }
  void ForgetBefore(Pid pid, MonotonicTime when);

  bool awaits_answers() const { return !asked_.empty(); }
  // The same, or questions are to be asked within the next moment.
  bool is_busy() const;
  bool has_answered(Pid pid) const { return !unanswered_.contains(pid); }
  uint64_t unanswered() const { return unanswered_.size(); }  // processes, now
  uint64_t late() const { return late_; }                     // answers that did not come in time

 private:
  using Ticket = uint64_t;
  using Content = std::variant<ProcMaps, UniqueFd>;
  using Question =
      std::function<Result<Content>(const ProcessDirectory&, ForeignFiles&, const FilePatience&)>;
  struct Told {
    Ticket ticket;
    Result<Content> content;
  };
  struct Mailbox;
  struct Asked {
    Pid pid;
    UserId user;
  };
  struct Unanswered {
    ProcessKey process;
    UserId user;
    MonotonicTime asked;                // the last time
    std::optional<Ticket> ticket = {};  // while its mappings are awaited
    std::vector<MappingEvent> since = {};
    bool has_lost_some = false;  // of these
    MonotonicTime due = {};      // if they are not
    std::chrono::nanoseconds pause{};
    std::chrono::nanoseconds limit;
  };

  std::optional<Ticket> Ask(const Subject& subject, std::chrono::nanoseconds limit,
                            Question question);
  std::optional<Told> Await(Ticket ticket, UserId user);
  static Answer Settle(const Unanswered& unanswered, Result<Content> content);
  bool MayAsk(UserId user) const;
  bool KeepsOthersWaiting(UserId user) const;
  Unanswered& Remember(const ProcessKey& process, UserId user);
  void PutOff(Unanswered& unanswered, std::chrono::nanoseconds least) const;
  void NoteLate(Unanswered& unanswered);

  const Options options_;
  const Clock& clock_;
  FileInspections& patience_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<Told> told_;  // at the last TakeAnswers()
  absl::flat_hash_map<Ticket, Asked> asked_;
  absl::flat_hash_map<Pid, Unanswered> unanswered_;
  Ticket last_ = 0;
  uint64_t late_ = 0;
  QuestionThreads threads_;
};

}  // namespace pyrometer
