// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "process/file_inspections.h"
#include "process/held_files.h"
#include "process/object_info.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The two ways to find the file behind a mapping, neither of which asks a file system.
class FileFinder {
 public:
  // What the kernel knows of a path without asking its file system.
  struct Way {
    UniqueFd file;  // O_PATH; invalid: it leads nowhere, or see below
    UniqueFd root;  // valid: only the file system knows where the path leads in this directory
  };

  virtual ~FileFinder() = default;
  // Through the mapping itself: the right file even if it is deleted or its path leads elsewhere.
  // O_PATH; invalid if that fails.
  virtual UniqueFd OpenMapping() = 0;
  // Through its path in the root it was named with.
  virtual Way FindPath() = 0;
  // When it was mapped; nothing: that is not known.
  virtual std::optional<std::chrono::system_clock::time_point> MappedAt() const { return {}; }
};

// Assigns object ids to files. Thread-compatible.
//
// Two mappings are of the same object if they lead to the same unchanged file (device, inode,
// ctime). Looking for the file of every mapping would be slow, and impossible once its process is
// gone, so names are remembered: (root, path, build id or inode). A build id alone is no name:
// anyone can write any build id into a file. A name is remembered only if its path was seen to lead
// to the very file that was mapped, so a process can mislead us about itself only.
//
// Which file a mapping shows the kernel tells without asking the file system. What is in the file
// is read elsewhere (FileInspections). A file that was written to since it was mapped is not that
// file, unless it has the build id. If that takes longer than a moment the mapping gets a
// placeholder, an object without facts in which addresses are file offsets; TakeIdentified() tells
// later which object it is.
class ObjectTable {
 public:
  struct Options {
    const Clock& clock;                          // must outlive the table
    size_t max_objects = (size_t{1} << 20) - 1;  // what fits into a frame
    size_t held_files = 1024;
    size_t max_names = size_t{1} << 18;
    size_t max_waiting = 4096;  // placeholders; beyond that files stay unopened
  };
  // What is mapped as `placeholder` is `object`; ObjectId(0): code in shared memory.
  struct Identified {
    ObjectId placeholder;
    ObjectId object;
  };

  static constexpr ObjectId kVdso{1};
  // The vDSO of 32-bit processes on a 64-bit kernel: a different file, which we cannot read.
  static constexpr ObjectId kCompatVdso{2};

  ObjectTable(const Options& options, FileInspections& inspections);

  // The object that `file` names for a process with this root. Looks for it if necessary, and
  // accepts only a file with the build id, or else the inode, of the mapping. A file that is gone
  // or cannot be read is an object without facts, a placeholder until another mapping of that name
  // leads to it.
  // ObjectId(0): not a file that could have symbols (code written to shared memory), or no id is
  // left.
  ObjectId Identify(const RootIdentity& root, const MappedFile& file, FileFinder& finder);

  // True if Identify() will answer without looking for the file.
  bool Knows(const RootIdentity& root, const MappedFile& file) {
    return Remembered({root, file}).has_value();
  }

  // Placeholders whose file has been read, or found by another mapping of that name, since the last
  // call. Asks again for those whose file system did not answer, after pauses that double up to a
  // minute.
  std::vector<Identified> TakeIdentified(MonotonicTime now);

  // Null if there is no such object. Valid until the next Identify().
  const ObjectInfo* Find(ObjectId id) const;

  // The same, to share; null if there is no such object.
  std::shared_ptr<const ObjectInfo> Share(ObjectId id) const;

  // True if the object's file is held and is, as far as can be seen, as it was when it was read.
  bool IsHeldAndUnchanged(ObjectId id) const;

  // The held file, null if it is not held (any more); a duplicate of it, else kNotFound.
  ObjectFile Held(ObjectId id) { return held_.Find(id); }
  Result<UniqueFd> OpenHeld(ObjectId id);

  // Holds the object's file again if `path_fd` (O_PATH) is the same unchanged file; false if it is
  // not. Where its file system does not answer at once it is held later.
  bool Reopen(ObjectId id, UniqueFd path_fd);
  // True if others still share so many files that none can be held.
  bool IsFull() const { return held_.is_full(); }

  // True if the file has been written to, as far as that can be seen, and has no build id that
  // would tell one content from the other.
  bool IsOverwritten(ObjectId id) const;
  // What stands for an object of which nobody can tell which content a sample met, if it was taken
  // at `since` or later: one without facts. Names do not lead to the object any more.
  struct Substitute {
    ObjectId by;
    MonotonicTime since;  // the earliest that was told
  };
  Substitute Overwritten(ObjectId id, MonotonicTime since);

  // Closes the files of objects that are not `in_use`, and waits for them no longer. The next
  // mapping of such an object looks for its file again. Those that were not in use at the call
  // before either are forgotten; after kQuarantine further calls their ids may be given to others.
  // Returns those whose files it has closed or that it has forgotten.
  std::vector<ObjectId> CloseUnused(const absl::flat_hash_set<ObjectId>& in_use);

  // Ids go round slowly: whoever remembers one (the kernel side, windows under way, caches of
  // names) has dropped it by then, and as long as half of all ids are new those are taken first.
  static constexpr uint64_t kQuarantine = 64;

  size_t size() const { return objects_.size() - forgotten_.size(); }
  // Questions that have no answer yet, and of these the ones that a file system is working on.
  size_t waiting() const { return by_ticket_.size() + later_.size(); }
  size_t asking() const { return by_ticket_.size(); }
  uint64_t unopened() const { return unopened_; }
  uint64_t refused() const { return refused_; }

 private:
  using WallTime = std::chrono::system_clock::time_point;
  struct Name {
    RootIdentity root;
    MappedFile file;

    bool operator==(const Name&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Name& n) {
      return H::combine(std::move(h), n.root, n.file);
    }
  };
  // kRenamed: through a mapping whose file has another name by now.
  enum class Through { kMapping, kRenamed, kPath };
  struct Candidate {
    PathFd file;  // null: none
    FileIdentity identity;
    Through through = Through::kPath;
    std::optional<WallTime> mapped = {};  // when, if that is known and matters
    bool is_newer = false;                // it may have been written to since; see CandidateOf()
  };
  struct Placeholder {
    ObjectId id;
    BuildId claimed;  // empty: nobody said which it has
    // When it was mapped by someone for whom it may have been written to since.
    std::optional<WallTime> newer_than = {};
  };
  // Stands for a file that was not found.
  struct NotFound {
    ObjectId id;
    WallTime mapped;  // or when it was looked for, if that is not known
  };
  // Why a question was asked.
  struct Wanted {
    enum class What { kObject, kName, kFile };
    What what = What::kObject;
    FileQuestion question;
    FileIdentity identity = {};  // of question.file, if that is there
    Name name = {};
    Through through = Through::kPath;
    bool is_name_true = false;            // its path leads to the file
    std::optional<WallTime> mapped = {};  // as in Candidate
    ObjectId object = {};                 // the placeholder, or what is to get a file
    std::chrono::nanoseconds pause{};
  };
  struct Later {
    MonotonicTime when;
    Wanted wanted;
  };

  std::optional<ObjectId> Remembered(const Name& name);
  // The object that RememberInode() was told of, unless it may have been written to since `mapped`.
  std::optional<ObjectId> RememberedInode(const MappedFile& file,
                                          const std::optional<WallTime>& mapped);
  // None if it may have been written to since it was mapped, and is not where code is written to.
  Candidate CandidateOf(UniqueFd path_fd, Through through, const std::optional<WallTime>& mapped,
                        std::string_view path) const;
  bool IsNewer(const FileIdentity& identity, const std::optional<WallTime>& mapped) const;
  static bool IsInodeOf(const MappedFile& file, const FileIdentity& identity);
  static bool MatchesInode(const Candidate& candidate, const MappedFile& file);
  // The object that `candidate` is, if it is what `name` tells of.
  std::optional<ObjectId> Accept(const Candidate& candidate, const Name& name, bool is_name_true);
  std::optional<ObjectId> AcceptKnown(ObjectId id, const Candidate& candidate, const Name& name);
  // Asks, and waits for a moment; a placeholder if there is no answer yet.
  std::optional<ObjectId> Ask(Wanted wanted);
  ObjectId PlaceholderOf(const Wanted& wanted);
  void ForgetPlaceholder(const Wanted& wanted);
  void CheckName(const Name& name, PathFd root);
  void HoldAgain(ObjectId id, PathFd file, const FileIdentity& identity);
  void OnFile(const Wanted& wanted, FileInspections::Answer& answer);
  void OnName(const Wanted& wanted, const FileInspections::Answer& answer);
  std::optional<Identified> OnObject(Wanted wanted, FileInspections::Answer& answer,
                                     MonotonicTime now);
  // The object that was found; nothing if it is not what was wanted.
  std::optional<ObjectId> Settle(const Wanted& wanted, FileInspections::Answer& answer);
  ObjectId EnterFound(const MappedFile& file, FileFindings& found);
  void AskLater(Wanted wanted, MonotonicTime now);
  void AskAgain(MonotonicTime now);
  void RememberName(const Name& name, ObjectId id);
  // What was mapped under that name while the file could not be found is `id`, too.
  void FindLate(const Name& name, ObjectId id);
  // Where the kernel tells the inode, the file is known in each root, as long as it is held: no
  // other can get that inode. (Overlay file systems tell another: there it is false.)
  bool RememberInode(const MappedFile& file, ObjectId id);
  ObjectId Unopened(const Name& name, const std::optional<WallTime>& mapped);
  ObjectId Enter(ObjectInfo info);
  bool MayForget(ObjectId id) const;
  std::vector<ObjectId> TakeUnused(const absl::flat_hash_set<ObjectId>& in_use);
  void Forget(const std::vector<ObjectId>& ids);

  struct Forgotten {
    ObjectId id;
    uint64_t look;
  };
  const Options options_;
  FileInspections& inspections_;
  std::vector<std::shared_ptr<const ObjectInfo>> objects_;  // by id - 1; null: forgotten
  std::deque<Forgotten> forgotten_;                         // oldest first
  absl::flat_hash_set<ObjectId> unused_;                    // at the last look
  uint64_t looks_ = 0;                                      // for objects that are not in use
  absl::flat_hash_map<FileIdentity, ObjectId> by_identity_;
  absl::flat_hash_map<Name, ObjectId> by_name_;
  absl::flat_hash_map<Name, NotFound> unopened_by_name_;
  std::vector<Identified> found_late_;
  absl::flat_hash_map<ObjectId, Substitute> overwritten_;
  absl::flat_hash_map<FileIdentity, Placeholder> placeholders_;
  absl::flat_hash_set<ObjectId> pending_;         // placeholders that a question is about
  absl::flat_hash_set<FileIdentity> unreadable_;  // until CloseUnused()
  absl::flat_hash_map<FileInspections::Ticket, Wanted> by_ticket_;
  absl::flat_hash_set<ObjectId> opening_;  // of these a file is awaited
  std::vector<Later> later_;               // were late or refused
  MonotonicTime next_later_{UINT64_MAX};
  HeldFiles held_;
  uint64_t unopened_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace pyrometer
