// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "base/file_identity.h"
#include "binary/debug_file.h"

namespace pyrometer {
namespace {

// Stands for the file system that the debug files of a root lie on, which may be any: whoever has a
// directory of his own as root may mount there what he likes.
uint64_t DebugFileSystemOf(const UniqueFd& root) {
  const Result<Inode> inode = InodeOf(root.get());
  return inode ? ~(inode->device ^ (inode->number << 32)) : 0;
}

// Looks for the files of one object in one root.
class DebugFileSearch {
 public:
  DebugFileSearch(const UniqueFd& root, const DebugFileCriteria& object, ForeignFiles& files,
                  Indexer& indexer)
      : root_(root),
        object_(object),
        files_(files),
        indexer_(indexer),
        patience_{.limit = DebugFiles::kMostTime, .file_system = DebugFileSystemOf(root)} {}

  Result<FoundDebugFiles> Find() {
    FoundDebugFiles found;
    found.debug = ByBuildId(object_.build_id);
    const DebugLinks own = object_.own == nullptr ? DebugLinks() : LinksOf(*object_.own);
    if (found.debug == nullptr) found.debug = ByName(own);
    const DebugLinks further = found.debug == nullptr ? own : LinksOf(*found.debug);
    found.supplement = Supplement(further);
    if (further.may_be_split) found.splits = Splits(further);
    if (!found.empty()) return found;
    return Fail(ErrorCode::kNotFound, "no debug file of {}", object_.path);
  }

 private:
  // Null if it is not there or not to be trusted, or there is no time left.
  DebugFile Open(const std::string& path) {
    if (MonotonicNow() >= until_) return nullptr;
    const Result<UniqueFd> place = files_.LookUp(root_.get(), path, 0, patience_);
    if (!place) return nullptr;
    const Result<uint32_t> user = OwnerOf(place->get());
    if (!user || (*user != 0 && *user != object_.user)) return nullptr;
    Result<OpenedFile> file = files_.OpenForReading(place->get(), patience_);
    return file ? std::make_shared<const UniqueFd>(std::move(file->fd)) : nullptr;
  }

  bool Has(const DebugFile& file, const BuildId& build_id) {
    if (file == nullptr) return false;
    const Result<ObjectFacts> facts = indexer_.Inspect(file->get());
    return facts && facts->build_id == build_id;
  }

  DebugLinks LinksOf(const UniqueFd& file) {
    return indexer_.Links(file.get()).value_or(DebugLinks());
  }

  DebugFile ByBuildId(const BuildId& build_id) {
    const std::string path = DebugFilePath(build_id);
    if (path.empty()) return nullptr;
    DebugFile file = Open(path);
    return Has(file, build_id) ? file : nullptr;
  }

  DebugFile ByName(const DebugLinks& links) {
    const size_t slash = object_.path.rfind('/');
    const bool is_name = !links.name.empty() && links.name.find('/') == std::string::npos;
    if (!is_name || !object_.path.starts_with('/') || links.name == "." || links.name == "..") {
      return nullptr;
    }
    const std::string directory = object_.path.substr(0, slash + 1);
    for (const std::string& place :
         {directory, directory + ".debug/", "/usr/lib/debug" + directory}) {
      DebugFile file = Open(place + links.name);
      if (file == nullptr) continue;
      // Who has a build id is known by that; else by all bytes of the file.
      if (!object_.build_id.empty()) {
        if (Has(file, object_.build_id)) return file;
        continue;
      }
      const Result<uint32_t> checksum = indexer_.Checksum(file->get());
      if (checksum && *checksum == links.checksum) return file;
    }
    return nullptr;
  }

  // By its build id, which is said to be there, or by its path.
  DebugFile Supplement(const DebugLinks& links) {
    if (links.supplement.empty() || links.supplement_id.empty()) return nullptr;
    if (DebugFile file = ByBuildId(links.supplement_id)) return file;
    const bool is_whole = links.supplement.starts_with('/');
    const std::string by_id = DebugFilePath(object_.build_id);
    const std::string directory = is_whole ? "" : by_id.substr(0, by_id.rfind('/') + 1);
    DebugFile file = Open(directory + links.supplement);
    return Has(file, links.supplement_id) ? file : nullptr;
  }

  // Units in them have numbers that the object's have, too: others are of no use, but do no harm.
  // An object may name any path, so only such a name is looked for, and not for long.
  std::vector<DebugFile> Splits(const DebugLinks& links) {
    std::vector<DebugFile> splits;
    const auto take = [&](const std::string& path) {
      if (DebugFile file = Open(path)) splits.push_back(std::move(file));
    };
    if (object_.path.starts_with('/')) take(object_.path + ".dwp");
    if (!splits.empty()) return splits;
    const MonotonicTime until = After(MonotonicNow(), DebugFiles::kMostTime);
    for (const std::string& path : links.splits) {
      if (path.starts_with('/') && path.ends_with(".dwo") && MonotonicNow() < until) take(path);
    }
    return splits;
  }

  const UniqueFd& root_;
  const DebugFileCriteria& object_;
  ForeignFiles& files_;
  Indexer& indexer_;
  const FilePatience patience_;
  // Files are looked for until then: the answer is what was found, where a file system is slow.
  const MonotonicTime until_ = After(MonotonicNow(), 2 * DebugFiles::kMostTime);
};

}  // namespace

// From a container that shows the host's processes it is process 1 that has the host's root.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs) {
  Result<UniqueFd> root = Open(procfs.Of(Pid(1), "root"), O_PATH | O_DIRECTORY);
  return root ? std::move(root) : Open("/", O_PATH | O_DIRECTORY);
}

std::vector<UniqueFd> RootsOf(ObjectId object, ProcessKnowledge& processes, const Procfs& procfs) {
  std::vector<UniqueFd> roots;
  if (Result<UniqueFd> own = processes.OpenRootOf(object)) roots.push_back(*std::move(own));
  if (Result<UniqueFd> host = OpenHostRoot(procfs)) roots.push_back(*std::move(host));
  return roots;
}

Result<FoundDebugFiles> OpenDebugFiles(const UniqueFd& root, const DebugFileCriteria& object,
                                       ForeignFiles& files, Indexer& indexer) {
  return DebugFileSearch(root, object, files, indexer).Find();
}

struct DebugFiles::Search {
  ObjectId object;
  std::vector<UniqueFd> roots;
  DebugFileCriteria criteria;
  bool asks_server = false;
  OnFound on_found;
};

void DebugFiles::Find(ObjectId object, std::vector<UniqueFd> roots,
                      const DebugFileCriteria& criteria, OnFound on_found) {
  Begin({.object = object,
         .roots = std::move(roots),
         .criteria = criteria,
         .asks_server = true,
         .on_found = std::move(on_found)});
}

void DebugFiles::FindHere(ObjectId object, std::vector<UniqueFd> roots,
                          const DebugFileCriteria& criteria, OnFound on_found) {
  Begin({.object = object,
         .roots = std::move(roots),
         .criteria = criteria,
         .asks_server = false,
         .on_found = std::move(on_found)});
}

void DebugFiles::FindThere(ObjectId object, const DebugFileCriteria& criteria, OnFound on_found) {
  Begin({.object = object,
         .roots = {},
         .criteria = criteria,
         .asks_server = true,
         .on_found = std::move(on_found)});
}

bool DebugFiles::WasMissed(ObjectId object) {
  const absl::MutexLock lock(&mutex_);
  return missed_.Contains(object, parts_.clock.Now());
}

void DebugFiles::Begin(Search search) {
  if (WasMissed(search.object)) return search.on_found({});
  Try(std::make_shared<Search>(std::move(search)), 0);
}

void DebugFiles::Try(const std::shared_ptr<Search>& search, size_t root) {
  if (root >= search->roots.size()) return AskServer(search);
  // The worker's own until it has ended.
  const auto found = std::make_shared<FoundDebugFiles>();
  const bool posted = parts_.workers.Post(
      DebugFileSystemOf(search->roots[root]), 3 * kMostTime,
      [search, root, found, files = parts_.files, indexer = parts_.indexer] {
        Result<FoundDebugFiles> files_there =
            OpenDebugFiles(search->roots[root], search->criteria, *files, *indexer);
        if (files_there) *found = *std::move(files_there);
      },
      lifeline_.To([search, root, found](DebugFiles& self, FileWork work) {
        self.Tried(search, root, work == FileWork::kDone ? *found : FoundDebugFiles());
      }));
  if (!posted) Tried(search, root, {});
}

void DebugFiles::Tried(const std::shared_ptr<Search>& search, size_t root,
                       const FoundDebugFiles& found) {
  if (!found.empty()) return search->on_found(found);
  Try(search, root + 1);
}

void DebugFiles::AskServer(const std::shared_ptr<Search>& search) {
  const bool may_ask = search->asks_server && parts_.server != nullptr;
  const bool will_answer =
      may_ask && !search->criteria.build_id.empty() &&
      parts_.server->Find(search->criteria.build_id,
                          lifeline_.To([search](DebugFiles& self, const DebugFile& file) {
                            if (file == nullptr) return self.Missed(search);
                            self.Served(search, file);
                          }));
  if (!will_answer) Missed(search);
}

// A server may send what it likes.
void DebugFiles::Served(const std::shared_ptr<Search>& search, const DebugFile& file) {
  const auto is_its = std::make_shared<bool>(false);
  const Result<Inode> inode = InodeOf(file->get());
  const bool posted = parts_.workers.Post(
      inode ? inode->device : 0, kMostTime,
      [search, file, is_its, indexer = parts_.indexer] {
        const Result<ObjectFacts> facts = indexer->Inspect(file->get());
        *is_its = facts && facts->build_id == search->criteria.build_id;
      },
      lifeline_.To([search, file, is_its](DebugFiles& self, FileWork work) {
        if (work != FileWork::kDone || !*is_its) return self.Missed(search);
        search->on_found({.debug = file, .supplement = nullptr});
      }));
  if (!posted) Missed(search);
}

void DebugFiles::Missed(const std::shared_ptr<Search>& search) {
  // Others may still ask the server.
  if (search->asks_server || parts_.server == nullptr) {
    const absl::MutexLock lock(&mutex_);
    const MonotonicTime now = parts_.clock.Now();
    if (!missed_.Contains(search->object, now)) missed_.Add(search->object, now);
  }
  search->on_found({});
}

}  // namespace pyrometer
