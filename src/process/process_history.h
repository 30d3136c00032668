// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/latency_histogram.h"
#include "base/procfs.h"
#include "foreign/foreign_files.h"
#include "process/address_space_sink.h"
#include "process/file_inspections.h"
#include "process/object_inspector.h"
#include "process/object_table.h"
#include "process/proc_reader.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "process/process_knowledge.h"
#include "process/process_observer.h"
#include "process/process_table.h"
#include "process/scan_progress.h"
#include "process/task_record.h"
#include "process/user_share.h"
#include "process/window_resolver.h"
#include "pyrometer/result.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// The knowledge of ProcessTracker without its thread and event stream. Takes events as values and
// any /proc tree, so recordings can be replayed into it. Thread-compatible. Those who share it need
// not wait for each other's answers: see FileInspections::Options::lock, and ProcessTracker::State
// for what may be done meanwhile.
class ProcessHistory final : public ProcessKnowledge {
 public:
  struct Options {
    const Clock& clock;  // that of the events; must outlive the history
    Procfs procfs{};
    std::chrono::nanoseconds keep = std::chrono::seconds(20);
    size_t held_files = 1024;
    UserShares::Limits remembered = {};
    ProcessObserver* observer = nullptr;            // optional
    std::shared_ptr<ForeignFiles> files = nullptr;  // null: DirectForeignFiles
    FileInspections::Options inspections = {};
    ProcReader::Options reader = {};
  };

  // `sink` and the observer must outlive the history.
  ProcessHistory(Options options, std::shared_ptr<ObjectInspector> inspector,
                 AddressSpaceSink& sink);

  // Tasks are about to be read for a scan, and events may be applied meanwhile.
  void ExpectTasks() { execs_ = std::vector<CommEvent>(); }

  // Reads all of /proc; `tasks` was read shortly before. Apply() must be given every event since
  // before `tasks` was read, afterwards or since ExpectTasks(). Errors: /proc cannot be listed;
  // then nothing has changed, and TakeLost() says that another Scan() is due.
  Result<void> Scan(std::span<const TaskRecord> tasks);

  // The same in slices of about that length, and events may be applied in between. What is read
  // last are the processes of those users about whom there were the most records of late: theirs
  // is the loss that makes it necessary. True while there is more to read. `patience` is how long
  // files are waited for in all, by a slice or by Apply() if need be; nothing: in each slice as
  // long as in any other burst.
  using ScanPatience = std::optional<std::chrono::nanoseconds>;
  // At the start, when nobody waits for the lock; files that take longer are known a little later.
  static constexpr std::chrono::seconds kFirstScanPatience{2};
  Result<void> BeginScan(std::span<const TaskRecord> tasks, ScanPatience patience = std::nullopt);
  bool ContinueScan(std::chrono::nanoseconds most);

  // Applies a burst of events, in order of time. Publishes each changed process once, now or, if
  // that happens often, at a later PublishDue().
  void Apply(std::span<const ProcessEvent> events);

  // Some events were not and will not be applied; TakeLost() does not tell of that.
  void NoteMissed() { reader_.NoteLost(); }

  // Publishes again what the sink had no room for and misses.
  void PublishMissed();

  // Publishes what was put off long enough. True if something still is: call it again.
  bool PublishDue();

  // All of these answer from the events applied so far.
  ResolvedWindow Resolve(Window window) override;
  std::optional<ProgramMappings> MappingsAt(const ProcessKey& key, ExecId exec,
                                            MonotonicTime when) override;
  void Recheck(const ProcessKey& key) override;
  std::optional<ObjectInfo> Object(ObjectId id) const override;
  Result<UniqueFd> OpenObject(ObjectId id) override;
  std::vector<SampledObject> TakeSampled() override;
  Result<UniqueFd> OpenRootOf(ObjectId id) override;
  void ShowAgain() override;
  void ReplaceLabels(const ProcessKey& key, const LabelSet& of, LabelSet by) override;
  ProcessCounters counters() const override;

  // Resolve() in parts, between which the history may be used for other things. Before the second
  // what TakeUnseen() gives is to be shown, up to what the first returns, before the third what
  // OnSamples() takes out to be taken out: `unwanted` ticks. AttachLabels() returns which samples
  // are of unknown processes.
  uint64_t BeginResolving(const Window& window);
  std::vector<size_t> AttachLabels(Window& window) const;
  ResolvedWindow FinishResolving(Window window, uint64_t unwanted);

  // A process that the observer has yet to see as what it runs now. See SeenProcess.
  struct Unseen {
    uint64_t order = 0;  // in which they come
    Pid pid{};
    uint64_t number = 0;  // of its life
    std::optional<ProcessDirectory> directory = std::nullopt;
    ProcessKey key = {};
    MonotonicTime since = {};  // it runs that
    std::string comm = {};
    LabelSet inherited = nullptr;
  };
  // The next one of those up to `last`, parents before their children; nothing: there is none.
  // Label() is to follow.
  std::optional<Unseen> TakeUnseen(uint64_t last);
  bool has_unseen() const { return !unseen_.empty(); }
  void Label(const Unseen& seen, LabelSet labels);

  // What the log should say, once; some of it if there is much.
  struct Notice {
    std::string_view what;
    std::string why;
  };
  std::vector<Notice> TakeNotices() { return std::exchange(notices_, {}); }

  size_t process_count() const { return processes_.living_count(); }

  // True while answers of file systems and processes are awaited, which Apply() takes, with events
  // or without.
  bool AwaitsAnswers() const { return objects_.asking() > 0 || reader_.is_busy(); }

  // True if MappingsAt() asks nobody about that process, and changes nothing.
  bool Knows(const ProcessKey& key);
  // True if OpenObject() asks nobody about that object, and changes nothing.
  bool Holds(ObjectId id) { return objects_.Held(id) != nullptr; }

  // True once after records were lost or a scan failed: what is known may be wrong until the next
  // Scan().
  bool TakeLost() { return std::exchange(lost_, false); }

 private:
  class Finder;
  struct OpenDirectory {
    Pid pid;
    MonotonicTime born;
    std::optional<ProcessDirectory> directory;  // nothing: it is gone, or cannot be read
  };
  // What /proc shows of a process.
  struct ReadCode {
    std::vector<CodeMapping> remembered;  // all, or what was known of it if the user has no room
    bool is_complete = true;              // no more than a program may have
    bool has_room = true;
  };

  void On(const MappingEvent& event);
  void On(const ForkEvent& event);
  void On(const ExitEvent& event);
  void On(const CommEvent& event);
  void On(const SymbolEvent& event);
  void On(const LostEvent& event);

  void AddScanned(const ScannedProcess& scanned, const ProcessDirectory& directory);
  // What is known of the exec id of a process that is not remembered, or that is being scanned.
  std::optional<TaskRecord> TaskOf(const ProcessKey& key) const;
  // Adds a living process that no event reported, or that was passed over. Null if it cannot be
  // read, or there is no room for it yet.
  Process* Adopt(Pid pid);
  // False for one that was passed over and whose user still has no room. Asks who that is by now,
  // if it may no longer be the parent's.
  bool MayAdopt(Pid pid);
  void AdoptParent(const ForkEvent& event);
  std::vector<Pid> InOrderOfRecords(std::vector<Pid> pids);
  // 0 if it is not known whose process that is.
  uint64_t RecordsOfUser(Pid pid);
  void ScanNext();
  void EndScan();
  // For what is asked of files until EndBurst().
  void BeginBurst();
  void EndBurst();
  // ObjectId(0): anonymous memory.
  // `subject`: who has mapped it; null: /proc is not to be asked. `when`: that happened; nothing:
  // it is so now.
  ObjectId Identify(const FileMapping& range, const MappedFile& file, const RootIdentity& root,
                    const ProcReader::Subject* subject,
                    std::optional<MonotonicTime> when = std::nullopt);
  ObjectId Identify(Process& process, const MappingEvent& event);
  // What is known at its address, if that is held and shows the very same file; `known` may be
  // null.
  std::optional<ObjectId> StillKnown(const ProcMapping& mapping, const Process* known) const;
  // What is known at `address` if `object` is the same file; `known` may be null.
  ObjectId AsKnown(ObjectId object, Address address, const Process* known) const;
  std::span<const Segment> SegmentsOf(ObjectId object) const;
  std::vector<ObjectMapping> ToObjects(const FileMapping& range, ObjectId object) const;
  // What /proc shows of a process of which `known` was known; may be null.
  std::vector<CodeMapping> ToCode(const ProcMaps& maps, const RootIdentity& root,
                                  const ProcReader::Subject& subject, const Process* known);
  // What is to be remembered of the code of a process of which `known` was known; may be null.
  ReadCode WithinShare(std::vector<CodeMapping> code, bool is_complete, UserShare& share,
                       const Process* known);
  void NoteRead(Process& process, const ReadCode& read);
  // It has more than its user has room for, or else than a program may have.
  void NoteOverBudget(Process& process, bool has_room);
  // Reads programs again for which there was no room.
  void UseNewRoom();
  // Something about `process` happened, which may take more memory; false: there is no more for
  // its user.
  bool NoteRecord(Process& process);
  // To be called where a process may no longer be its parent's user's.
  void LearnUser(Process& process);
  void NoteOverShare(UserShare& share);
  bool MayRecheck(Process& process, MonotonicTime now);
  void PassOver(Process& process, const MappingEvent& event, bool has_room);
  void PassOver(const ScannedProcess& scanned, const TaskRecord* task);
  // Gives placeholders their meaning whose files have been read. PublishChanged() is to follow.
  void TakeIdentified();
  // The same place in the object that a placeholder turned out to be.
  Frame AsIdentified(Frame frame) const;
  // Nobody can tell which content samples met in a file without a build id that was written to,
  // except before that: those keep their names, if they were read before, too.
  void NoteOverwritten(Window& window);
  MonotonicTime WrittenAt(ObjectId object);
  void ReadAgainWhoMaps(const absl::flat_hash_set<ObjectId>& overwritten);
  // Reads what a living process has mapped `now`. True if that differs from what was known.
  // PublishChanged() is to follow.
  bool ReadAgain(Process& process, MonotonicTime now);
  // It had that mapped at `when`, or has by now.
  bool TakeMaps(Process& process, const ProcMaps& maps, const ProcReader::Subject& subject,
                MonotonicTime when);
  // What processes said that did not answer at once.
  void TakeProcessAnswers();
  // Asks processes that did not answer, those whose turn it is.
  void ReadUnanswered();
  // Counts a process that could not be read though it lives.
  void NoteUnreadable(const Error& error);
  // Null if the process is gone, or cannot be read now. Valid until the next call, or the end of
  // the burst.
  const ProcessDirectory* DirectoryOf(Process& process);
  // Nothing if there is no directory. Valid as long as that.
  std::optional<ProcReader::Subject> SubjectOf(Process& process);
  void LearnRoot(Process& process);
  // Opens files of `missing` through processes that map them, and takes those out.
  void Reopen(absl::flat_hash_set<ObjectId>& missing, const std::function<void(ObjectId)>& done);
  // `process` has mapped a file, which may be a jitdump. `subject`: as above.
  void NoteJitDump(Process& process, const FileMapping& range, const MappedFile& file,
                   const ProcReader::Subject* subject);
  // All of those that it has mapped.
  void NoteJitDumps(Process& process, const ProcMaps& maps, const ProcReader::Subject& subject);
  bool MayHoldJitDump(const UserShare& share);
  // `key`: as its samples have it.
  void ShareInherited(const Process& process, const ProcessKey& key, ResolvedWindow& resolved);
  // `directory` may be null: then it is looked for.
  void NoteAnonymousCode(Process& process, const ProcessDirectory* directory);
  // Null: not available. The process holds it only if it may, else the caller.
  std::shared_ptr<const PerfMapDirectory> LearnPerfMap(Process& process,
                                                       const ProcessDirectory* directory);
  bool MayHoldPerfMap();
  // Add what is needed to name `resolved`.
  void ShareObjects(ResolvedWindow& resolved);
  void SharePerfMaps(ResolvedWindow& resolved);
  void TakeKernelSymbols(ResolvedWindow& resolved);
  bool IsToBeShown(const Process& process) const;
  // Has the observer see it, once nobody is in the history. `directory` may be null.
  void Show(Process& process, const ProcessDirectory* directory);
  void TakeOut(Window& window, uint64_t unwanted);
  void NoteDrift(const AddressSpace::Picture& before, const ProcessDirectory& directory,
                 Program& program) const;
  // Withdraws the process if it cannot be published.
  void Publish(Pid pid);
  void PublishChanged();
  // What `process` has mapped changed at `when`, or what it runs: it is to be published.
  void NoteChange(Process& process, MonotonicTime when);
  bool MayPublish(Pid pid, MonotonicTime now);
  // Takes those out of what is to be published now that were published often.
  void PutOff();
  void Withdraw(Pid pid);
  void Forget(MonotonicTime horizon);
  // Of windows that end after `end`, no sample can be in the objects whose files this lets go.
  std::vector<ObjectId> CloseUnusedFiles(MonotonicTime end);

  const Options options_;
  const uint64_t page_size_;
  AddressSpaceSink& sink_;
  FileInspections inspections_;
  ProcReader reader_;
  ObjectTable objects_;
  ProcessTable processes_;
  std::optional<ScanProgress> scan_;
  std::optional<std::vector<CommEvent>> execs_;       // since tasks have been expected
  absl::flat_hash_set<Pid> changed_;                  // to publish at the end of the burst
  absl::flat_hash_set<Pid> put_off_;                  // to publish later
  LatencyHistogram publish_latency_;                  // from an event to the sink
  absl::flat_hash_map<RootIdentity, Pid> witnesses_;  // a living process with that root
  std::vector<std::weak_ptr<const PerfMapDirectory>> perf_maps_;
  std::vector<std::weak_ptr<const JitDumpFile>> jit_dumps_;
  uint64_t last_jit_dump_ = 0;
  std::optional<OpenDirectory> open_;  // the last one: bursts are often about one process
  std::vector<SymbolEvent> symbols_;   // later than the last window
  ProcessCounters counters_;
  ResolveTally resolved_;
  MonotonicTime files_looked_through_;  // the end of that window
  struct Identity {
    ObjectId object;
    MonotonicTime since;
  };
  absl::flat_hash_map<ObjectId, Identity> identified_;  // of placeholders
  // When windows may ask again for files that could not be reached.
  absl::flat_hash_map<ObjectId, MonotonicTime> unreachable_;
  std::vector<Notice> notices_;
  uint64_t last_unseen_ = 0;
  std::deque<Unseen> unseen_;  // what is known of them when it is their turn is not there yet
  bool lost_ = false;
};

}  // namespace pyrometer
