// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>

#include <array>
#include <deque>
#include <utility>

#include "base/file.h"
#include "base/file_identity.h"
#include "foreign/reading_budget.h"

namespace pyrometer {
namespace {

// Stands for the file system that the debug files of a root lie on, which may be any: whoever has a
// directory of his own as root may mount there what he likes.
uint64_t DebugFileSystemOf(const UniqueFd& root) {
  const Result<Inode> inode = InodeOf(root.get());
  if (!inode) return 0;
  return NumberOf(Asked::kDebugFiles, std::array{inode->device, inode->number});
}

// Reading all of a file for its checksum.
constexpr std::chrono::nanoseconds kMostOfChecksum = ReadingTime(UINT64_MAX);

}  // namespace

// From a container that shows the host's processes it is process 1 that has the host's root.
Result<UniqueFd> OpenHostRoot(const Procfs& procfs) {
  Result<UniqueFd> root = Open(procfs.Of(Pid(1), "root"), O_PATH | O_DIRECTORY);
  return root ? std::move(root) : Open("/", O_PATH | O_DIRECTORY);
}

struct DebugFiles::Search {
  // Where to look.
  struct Place {
    size_t root = 0;
    std::vector<std::string> paths;
    std::optional<uint32_t> checksum{};  // what a file there must have, if no build ids tell
  };

  ObjectId object;
  File own;
  BuildId build_id;
  std::string path;
  uint32_t user = 0;  // the owner of its file
  std::vector<UniqueFd> roots;
  OnFound on_found{};
  std::deque<Place> places{};  // still to be looked into

  void AddPlaces(const DebugLinks& links);
  bool IsOfObject(int fd, const std::optional<uint32_t>& checksum, Indexer& indexer) const;
  Result<UniqueFd> Open(const Place& place, const std::string& at, ForeignFiles& files,
                        Indexer& indexer) const;
  Result<File> LookInto(const Place& place, ForeignFiles& files, Indexer& indexer) const;
};

void DebugFiles::Search::AddPlaces(const DebugLinks& links) {
  const std::string by_build_id = DebugFilePath(build_id);
  for (size_t root = 0; root < roots.size() && !by_build_id.empty(); ++root) {
    places.push_back({.root = root, .paths = {by_build_id}});
  }
  if (!links.debug_file) return;
  const auto& [name, checksum] = *links.debug_file;
  for (size_t root = 0; root < roots.size(); ++root) {
    places.push_back({.root = root, .paths = DebugLinkPaths(path, name), .checksum = checksum});
  }
}

bool DebugFiles::Search::IsOfObject(int fd, const std::optional<uint32_t>& checksum,
                                    Indexer& indexer) const {
  const Result<ObjectFacts> facts = indexer.Inspect(fd);
  if (!facts) return false;
  const bool both_tell = !facts->build_id.empty() && !build_id.empty();
  if (both_tell || !checksum) return both_tell && facts->build_id == build_id;
  const Result<uint32_t> found = indexer.Checksum(fd);
  return found && *found == *checksum;
}

// Errors: kNotFound; those of ForeignFiles.
Result<UniqueFd> DebugFiles::Search::Open(const Place& place, const std::string& at,
                                          ForeignFiles& files, Indexer& indexer) const {
  const UniqueFd& root = roots[place.root];
  const FilePatience patience{.limit = kMostTime, .file_system = DebugFileSystemOf(root)};
  ASSIGN_OR_RETURN(const UniqueFd found, files.LookUp(root.get(), at, 0, patience));
  ASSIGN_OR_RETURN(const uint32_t owner, OwnerOf(found.get()));
  const Result<Inode> itself = InodeOf(own->get());
  const Result<Inode> inode = InodeOf(found.get());
  const bool is_other = itself && inode && *itself != *inode;
  if (!is_other || (owner != 0 && owner != user)) {
    return Fail(ErrorCode::kNotFound, "{} is not of the object's owner", at);
  }
  ASSIGN_OR_RETURN(OpenedFile file, files.OpenForReading(found.get(), patience));
  if (!IsOfObject(file.fd.get(), place.checksum, indexer)) {
    return Fail(ErrorCode::kNotFound, "{} does not belong to the object", at);
  }
  return std::move(file.fd);
}

// The first of its files that is the object's. A root that does not answer is not asked again.
Result<DebugFiles::File> DebugFiles::Search::LookInto(const Place& place, ForeignFiles& files,
                                                      Indexer& indexer) const {
  for (const std::string& at : place.paths) {
    Result<UniqueFd> file = Open(place, at, files, indexer);
    if (file) return std::make_shared<const UniqueFd>(*std::move(file));
    if (EndOf(file) != QuestionEnd::kDone) return file.error();
  }
  return Fail(ErrorCode::kNotFound, "no debug file");
}

Result<std::shared_ptr<DebugFiles::Search>> DebugFiles::Prepare(ObjectId object,
                                                                const ObjectInfo& info, File own) {
  ASSIGN_OR_RETURN(const uint32_t user, OwnerOf(own->get()));
  const auto search = std::make_shared<Search>(Search{.object = object,
                                                      .own = std::move(own),
                                                      .build_id = info.build_id,
                                                      .path = info.path,
                                                      .user = user,
                                                      .roots = {}});
  std::array roots{parts_.processes.OpenRootOf(object), OpenHostRoot(parts_.procfs)};
  for (Result<UniqueFd>& root : roots) {
    if (root) search->roots.push_back(*std::move(root));
  }
  return search;
}

void DebugFiles::Find(const std::shared_ptr<Search>& search, OnFound on_found) {
  bool was_missed = false;
  {
    const absl::MutexLock lock(&mutex_);
    was_missed = missed_.Contains(search->object, parts_.clock.Now());
  }
  if (was_missed) return on_found({});
  search->on_found = std::move(on_found);
  AskLinks(search);
}

// What the object itself says. If that cannot be read its build id is known still.
void DebugFiles::AskLinks(const std::shared_ptr<Search>& search) {
  // The worker's own until it has ended.
  const auto links = std::make_shared<DebugLinks>();
  const bool posted = parts_.workers.Post(
      AccountOf(search->own->get()), 2 * Indexer::kMostOfHeaders,
      [search, links, indexer = parts_.indexer] {
        if (Result<DebugLinks> read = indexer->Links(search->own->get())) *links = *std::move(read);
      },
      lifeline_.To([search, links](DebugFiles& self, QuestionEnd end) {
        if (end != QuestionEnd::kDone) *links = {};
        if (links->has_debug_info) return search->on_found({.is_own = true});
        search->AddPlaces(*links);
        self.Next(search);
      }));
  if (posted) return;
  search->AddPlaces({});
  Next(search);
}

void DebugFiles::Next(const std::shared_ptr<Search>& search) {
  if (search->places.empty()) return Missed(search);
  const auto place = std::make_shared<Search::Place>(std::move(search->places.front()));
  search->places.pop_front();
  // Without a build id all of a file is read.
  const bool is_large = place->checksum && search->build_id.empty();
  const auto count = static_cast<int64_t>(place->paths.size());
  const auto found = std::make_shared<File>();  // the worker's own until it has ended
  const bool posted = parts_.workers.Post(
      DebugFileSystemOf(search->roots[place->root]),
      (count + 2) * kMostTime + (is_large ? count * kMostOfChecksum : std::chrono::seconds(0)),
      {[search, place, found, files = parts_.files, indexer = parts_.indexer] {
         Result<File> file = search->LookInto(*place, *files, *indexer);
         const QuestionEnd end = EndOf(file);
         if (file) *found = *std::move(file);
         return end;
       },
       is_large ? Effort::kLarge : Effort::kSmall},
      lifeline_.To([search, found](DebugFiles& self, QuestionEnd end) {
        const bool is_there = end == QuestionEnd::kDone && *found != nullptr;
        if (!is_there) return self.Next(search);
        search->on_found({.debug = std::move(*found)});
      }));
  if (!posted) Next(search);
}

void DebugFiles::Missed(const std::shared_ptr<Search>& search) {
  {
    const absl::MutexLock lock(&mutex_);
    const MonotonicTime now = parts_.clock.Now();
    if (!missed_.Contains(search->object, now)) missed_.Add(search->object, now);
  }
  search->on_found({});
}

}  // namespace pyrometer
