// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "process/held_files.h"
#include "process/object_info.h"
#include "process/object_inspector.h"
#include "process/process_directory.h"
#include "process/process_event.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The two ways to open the file behind a mapping. Each returns an invalid fd if it fails.
class FileFinder {
 public:
  virtual ~FileFinder() = default;
  // Through the mapping itself: the right file even if it is deleted or its path leads elsewhere.
  virtual UniqueFd OpenMapping() = 0;
  // Through its path in the root it was named with.
  virtual UniqueFd OpenPath() = 0;
};

// Assigns object ids to files. Thread-compatible.
//
// Two mappings are of the same object if they lead to the same unchanged file (device, inode,
// ctime). Opening a file for every mapping would be slow, and impossible once its process is gone,
// so names are remembered: (root, path, build id or inode). A build id alone is no name: anyone can
// write any build id into a file. A name is remembered only if its path was seen to lead to the
// very file that was mapped, so a process can mislead us about itself only.
class ObjectTable {
 public:
  struct Options {
    size_t max_objects = (size_t{1} << 20) - 1;  // what fits into a frame
    size_t held_files = 1024;
    size_t max_names = size_t{1} << 18;
  };

  static constexpr ObjectId kVdso{1};
  // The vDSO of 32-bit processes on a 64-bit kernel: a different file, which we cannot read.
  static constexpr ObjectId kCompatVdso{2};

  ObjectTable(const Options& options, ObjectInspector& inspector);

  // The object that `file` names for a process with this root. Opens it if necessary, and accepts
  // only a file with the build id, or else the inode, of the mapping. A file that cannot be opened
  // is an object without facts, until another mapping of that name leads to it. ObjectId(0): not a
  // file that could have symbols (code written to a memfd), or no id is left.
  ObjectId Identify(const RootIdentity& root, const MappedFile& file, FileFinder& finder);

  // True if Identify() will answer without opening anything.
  bool Knows(const RootIdentity& root, const MappedFile& file) const {
    return by_name_.contains(Name{root, file});
  }

  // Null if there is no such object. Valid until the next Identify().
  const ObjectInfo* Find(ObjectId id) const;

  // The same, to share; null if there is no such object.
  std::shared_ptr<const ObjectInfo> Share(ObjectId id) const;

  // The held file, null if it is not held (any more); a duplicate of it, else kNotFound.
  ObjectFile Held(ObjectId id) { return held_.Find(id); }
  Result<UniqueFd> OpenHeld(ObjectId id);

  // Holds `fd` as the object's file again if it is the same unchanged file; false if it is not.
  bool Reopen(ObjectId id, UniqueFd fd);

  // Closes the files of objects that are not `in_use`. The next mapping of such an object opens its
  // file again.
  void CloseUnused(const absl::flat_hash_set<ObjectId>& in_use);

  size_t size() const { return objects_.size(); }
  uint64_t unopened() const { return unopened_; }
  uint64_t refused() const { return refused_; }

 private:
  struct FileIdentity {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t changed_ns = 0;  // ctime: an inode number comes back after deletion

    bool operator==(const FileIdentity&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const FileIdentity& f) {
      return H::combine(std::move(h), f.device, f.inode, f.changed_ns);
    }
  };
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
  enum class Way { kMapping, kRenamed, kPath };

  static std::optional<FileIdentity> IdentityOf(int fd);
  // The object that `fd` is, if it is what `file` tells of; new ones are entered.
  std::optional<ObjectId> Accept(UniqueFd fd, const MappedFile& file, Way way);
  bool Matches(int fd, const MappedFile& file, const BuildId& found, Way way) const;
  void RememberName(const Name& name, ObjectId id);
  ObjectId Unopened(const Name& name);
  ObjectId Enter(ObjectInfo info);

  const Options options_;
  ObjectInspector& inspector_;
  std::vector<std::shared_ptr<const ObjectInfo>> objects_;  // by id - 1
  absl::flat_hash_map<FileIdentity, ObjectId> by_identity_;
  absl::flat_hash_map<Name, ObjectId> by_name_;
  absl::flat_hash_map<Name, ObjectId> unopened_by_name_;
  HeldFiles held_;
  uint64_t unopened_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace pyrometer
