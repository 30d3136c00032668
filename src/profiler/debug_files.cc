// SPDX-License-Identifier: Apache-2.0
#include "profiler/debug_files.h"

#include <fcntl.h>

#include <array>
#include <deque>
#include <functional>
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

// Where a link leads to is as its object's owner chose it: if that does not answer, he waits for
// it.
uint64_t AccountOfLink(const UniqueFd& root, uint64_t account) {
  return NumberOf(Asked::kDebugFiles, std::array{DebugFileSystemOf(root), account});
}

// All of a file is read for its checksum: a second of CPU time for so much.
constexpr uint64_t kMostChecked = uint64_t{1} << 30;
constexpr std::chrono::nanoseconds kMostOfChecksum = ReadingTime(kMostChecked);

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
    std::optional<uint32_t> checksum{};  // what a file there must have, without a build id
    uint64_t account = 0;                // who waits if it does not answer
  };
  // Those who can open and read what is there.
  struct Helpers {
    ForeignFiles& files;
    Indexer& indexer;
  };
  using IsWanted = std::function<bool(int fd)>;

  ObjectId object;
  File own;
  BuildId build_id;
  std::string path;
  uint32_t user = 0;  // the owner of its file
  std::vector<UniqueFd> roots{};
  bool has_own_root = false;  // the first one is that of a process that has it mapped
  bool was_missed = false;    // a while ago
  OnFound on_found{};
  DebugLinks links{};  // of its file
  bool knows_links = false;
  bool is_sure = true;         // all roots have answered
  std::deque<Place> places{};  // still to be looked into

  void AddPlaces();
  std::vector<std::string> PathsOf(const DebugLink& link, size_t root) const;
  bool IsOfObject(int fd, const std::optional<uint32_t>& checksum, Indexer& indexer) const;
  Result<File> Open(const Place& place, const std::string& at, const IsWanted& is_wanted,
                    ForeignFiles& files) const;
  Result<Found> LookInto(const Place& place, const Helpers& helpers) const;
  Result<File> FindAlternate(const Place& place, const std::string& of, const AlternateLink& link,
                             const Helpers& helpers) const;
};

// What it has itself needs no debug file, but perhaps an alternate one.
void DebugFiles::Search::AddPlaces() {
  const std::string by_build_id = DebugFilePath(build_id);
  const uint64_t account = AccountOf(own->get());
  for (size_t root = 0; root < roots.size(); ++root) {
    if (links.has_debug_info) {
      if (!links.alternate) continue;
      places.push_back(
          {.root = root, .paths = {path}, .account = AccountOfLink(roots[root], account)});
    } else if (!by_build_id.empty()) {
      places.push_back(
          {.root = root, .paths = {by_build_id}, .account = DebugFileSystemOf(roots[root])});
    }
  }
  if (links.has_debug_info || !links.debug_file) return;
  for (size_t root = 0; root < roots.size(); ++root) {
    places.push_back({.root = root,
                      .paths = PathsOf(*links.debug_file, root),
                      .checksum = links.debug_file->checksum,
                      .account = AccountOfLink(roots[root], account)});
  }
}

// In the root of its process its owner may have put anything anywhere. In the host's he has nothing
// to say, but chooses the path.
std::vector<std::string> DebugFiles::Search::PathsOf(const DebugLink& link, size_t root) const {
  std::vector<std::string> paths = DebugLinkPaths(path, link.name);
  const bool is_own = has_own_root && root == 0;
  if (!is_own) std::erase_if(paths, [](const std::string& at) { return !IsDebugPath(at); });
  return paths;
}

bool DebugFiles::Search::IsOfObject(int fd, const std::optional<uint32_t>& checksum,
                                    Indexer& indexer) const {
  const Result<ObjectFacts> facts = indexer.Inspect(fd);
  if (!facts || facts->segments.empty()) return false;  // no ELF file
  if (!build_id.empty()) return facts->build_id == build_id;
  if (!checksum) return false;
  const Result<FileIdentity> file = IdentityOf(fd);
  if (!file || file->size > kMostChecked) return false;
  const Result<uint32_t> found = indexer.Checksum(fd);
  return found && *found == *checksum;
}

// Errors: kNotFound; those of ForeignFiles.
Result<DebugFiles::File> DebugFiles::Search::Open(const Place& place, const std::string& at,
                                                  const IsWanted& is_wanted,
                                                  ForeignFiles& files) const {
  const FilePatience patience{.limit = kMostTime, .file_system = place.account};
  ASSIGN_OR_RETURN(const UniqueFd found, files.LookUp(roots[place.root].get(), at, 0, patience));
  ASSIGN_OR_RETURN(const uint32_t owner, OwnerOf(found.get()));
  const Result<Inode> itself = InodeOf(own->get());
  const Result<Inode> inode = InodeOf(found.get());
  const bool is_other = itself && inode && *itself != *inode;
  if (!is_other || (owner != 0 && owner != user)) {
    return Fail(ErrorCode::kNotFound, "{} is not of the object's owner", at);
  }
  ASSIGN_OR_RETURN(OpenedFile file, files.OpenForReading(found.get(), patience));
  if (!is_wanted(file.fd.get())) return Fail(ErrorCode::kNotFound, "{} is another's", at);
  return std::make_shared<const UniqueFd>(std::move(file.fd));
}

// The first of its files that is the object's. A root that does not answer is not asked again.
Result<DebugFiles::Found> DebugFiles::Search::LookInto(const Place& place,
                                                       const Helpers& helpers) const {
  if (links.has_debug_info) {
    ASSIGN_OR_RETURN(File alternate, FindAlternate(place, path, *links.alternate, helpers));
    return Found{.is_own = true, .alternate = std::move(alternate)};
  }
  const IsWanted is_wanted = [&](int fd) {
    return IsOfObject(fd, place.checksum, helpers.indexer);
  };
  for (const std::string& at : place.paths) {
    Result<File> file = Open(place, at, is_wanted, helpers.files);
    if (!file && EndOf(file) != QuestionEnd::kDone) return file.error();
    if (!file) continue;
    Found found{.debug = *std::move(file)};
    const Result<DebugLinks> of_debug = helpers.indexer.Links(found.debug->get());
    if (!of_debug || !of_debug->alternate) return found;
    Result<File> alternate = FindAlternate(place, at, *of_debug->alternate, helpers);
    if (alternate) found.alternate = *std::move(alternate);
    return found;
  }
  return Fail(ErrorCode::kNotFound, "no debug file");
}

// In the same root.
Result<DebugFiles::File> DebugFiles::Search::FindAlternate(const Place& place,
                                                           const std::string& of,
                                                           const AlternateLink& link,
                                                           const Helpers& helpers) const {
  const IsWanted is_wanted = [&](int fd) {
    const Result<DebugLinks> found = helpers.indexer.Links(fd);
    return found && found->as_alternate == link.build_id;
  };
  for (const std::string& at : AlternatePaths(of, link)) {
    Result<File> file = Open(place, at, is_wanted, helpers.files);
    if (file || EndOf(file) != QuestionEnd::kDone) return file;
  }
  return Fail(ErrorCode::kNotFound, "no alternate file");
}

Result<std::shared_ptr<DebugFiles::Search>> DebugFiles::Prepare(ObjectId object,
                                                                const ObjectInfo& info, File own) {
  ASSIGN_OR_RETURN(const uint32_t user, OwnerOf(own->get()));
  const auto search = std::make_shared<Search>(Search{.object = object,
                                                      .own = std::move(own),
                                                      .build_id = info.build_id,
                                                      .path = info.path,
                                                      .user = user});
  {
    const absl::MutexLock lock(&mutex_);
    search->was_missed = missed_.Contains(object, parts_.clock.Now());
  }
  if (search->was_missed) return search;
  std::array roots{parts_.processes.OpenRootOf(object), OpenHostRoot(parts_.procfs)};
  search->has_own_root = roots.front().has_value();
  for (Result<UniqueFd>& root : roots) {
    if (root) search->roots.push_back(*std::move(root));
  }
  return search;
}

void DebugFiles::Find(const std::shared_ptr<Search>& search, OnFound on_found) {
  if (search->was_missed) return on_found({});
  search->on_found = std::move(on_found);
  AskLinks(search);
}

// What the object itself says. If that cannot be read its build id is known still, and in the end
// it may have itself what is looked for.
void DebugFiles::AskLinks(const std::shared_ptr<Search>& search) {
  // The worker's own until it has ended.
  const auto links = std::make_shared<std::optional<DebugLinks>>();
  const bool posted = parts_.workers.Post(
      AccountOf(search->own->get()), 2 * Indexer::kMostOfHeaders,
      [search, links, indexer = parts_.indexer] {
        if (Result<DebugLinks> read = indexer->Links(search->own->get())) *links = *std::move(read);
      },
      lifeline_.To([search, links](DebugFiles& self, QuestionEnd end) {
        search->knows_links = end == QuestionEnd::kDone && links->has_value();
        if (search->knows_links) search->links = **links;
        search->AddPlaces();
        self.Next(search);
      }));
  if (posted) return;
  search->AddPlaces();
  Next(search);
}

void DebugFiles::Next(const std::shared_ptr<Search>& search) {
  if (search->places.empty()) return Missed(search);
  const auto place = std::make_shared<Search::Place>(std::move(search->places.front()));
  search->places.pop_front();
  // Without a build id all of a file is read.
  const bool is_large = place->checksum && search->build_id.empty();
  const auto count = static_cast<int64_t>(place->paths.size());
  const auto found = std::make_shared<Found>();  // the worker's own until it has ended
  const bool posted = parts_.workers.Post(
      place->account,
      (count + 2) * kMostTime + (is_large ? count * kMostOfChecksum : std::chrono::seconds(0)),
      {[search, place, found, files = parts_.files, indexer = parts_.indexer] {
         Result<Found> here = search->LookInto(*place, {.files = *files, .indexer = *indexer});
         const QuestionEnd end = EndOf(here);
         if (here) *found = *std::move(here);
         return end;
       },
       is_large ? Effort::kLarge : Effort::kSmall},
      lifeline_.To([search, place, found](DebugFiles& self, QuestionEnd end) {
        if (end != QuestionEnd::kDone) return self.GoOnWithout(search, place->root);
        if (!found->is_own && found->debug == nullptr) return self.Next(search);
        Tell(*search, std::move(*found));
      }));
  if (!posted) GoOnWithout(search, place->root);
}

// It does not answer, or could not be asked.
void DebugFiles::GoOnWithout(const std::shared_ptr<Search>& search, size_t root) {
  search->is_sure = false;
  std::erase_if(search->places, [root](const Search::Place& place) { return place.root == root; });
  Next(search);
}

// Only what is known not to be there is remembered.
void DebugFiles::Missed(const std::shared_ptr<Search>& search) {
  const bool may_be_own = search->links.has_debug_info || !search->knows_links;
  if (!may_be_own && search->is_sure) {
    const absl::MutexLock lock(&mutex_);
    const MonotonicTime now = parts_.clock.Now();
    if (!missed_.Contains(search->object, now)) missed_.Add(search->object, now);
  }
  Tell(*search, {.is_own = may_be_own});
}

// Whoever waits for it may hold the search.
void DebugFiles::Tell(Search& search, Found found) {
  const OnFound told = std::exchange(search.on_found, nullptr);
  told(std::move(found));
}

}  // namespace pyrometer
