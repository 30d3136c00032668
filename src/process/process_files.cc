// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that opens files of processes.
#include <sys/sysmacros.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "foreign/foreign_file.h"
#include "process/object_mapping.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

// Processes through which a file that they map and that is no longer held, or a root, is tried to
// be reached, each once.
constexpr int kReopenAttempts = 8;
// Windows do not ask again before for a file that could not be reached. (All mappings of the
// machine are looked through for it.)
constexpr std::chrono::nanoseconds kTryAgain = std::chrono::minutes(1);

// Each is held open.
constexpr size_t kMostJitDumps = 512;

bool IsInodeOf(const MappedFile& file, const Inode& inode) {
  return inode.number == file.inode && major(inode.device) == file.major &&
         minor(inode.device) == file.minor;
}

UniqueFd ValueOrNone(Result<UniqueFd> fd) {
  return fd ? *std::move(fd) : UniqueFd();
}

bool Maps(const Process& process, ObjectId id) {
  const std::vector<ObjectMapping> mappings = process.program().space.Current().mappings;
  return std::ranges::find(mappings, id, &ObjectMapping::object) != mappings.end();
}

}  // namespace

// Finds a file of a process that may be gone: then its path still means the same to any other
// process with the same root, and probably to one with the same root directory in another mount
// namespace. (`unshare -m` and what runs in it are often over at once, all of them.)
class ProcessHistory::Finder : public FileFinder {
 public:
  Finder(ProcessHistory& history, const FileMapping& range, const std::string& path,
         const RootIdentity& root, const ProcReader::Subject* subject,
         std::optional<MonotonicTime> when = std::nullopt)
      : history_(history),
        range_(range),
        path_(path),
        root_(root),
        subject_(subject),
        when_(when) {}

  UniqueFd OpenMapping() override {
    if (subject_ == nullptr) return {};
    return ValueOrNone(history_.reader_.OpenMapped(*subject_, range_));
  }

  Way FindPath() override {
    if (subject_ != nullptr) {
      if (Way way = FindPathIn(subject_->directory, root_); way.file || way.root) return way;
    }
    if (Way way = FindPathAsSeenBy(root_); way.file || way.root) return way;
    const std::optional<RootIdentity> other = OtherNamespace();
    return other ? FindPathAsSeenBy(*other) : Way();
  }

  std::optional<std::chrono::system_clock::time_point> MappedAt() const override {
    if (!when_) return std::nullopt;
    return WallTimeOf(*when_, history_.options_.clock);
  }

 private:
  // The same root directory as the process with the lowest pid sees it, as a rule the machine's or
  // the container's init: what a user has mounted in a namespace of his own is not to be taken for
  // a file of others. What is found must have the build id, or else the inode, of the mapping.
  std::optional<RootIdentity> OtherNamespace() const {
    std::optional<RootIdentity> other;
    Pid lowest(UINT32_MAX);
    for (const auto& [root, witness] : history_.witnesses_) {
      const bool is_same = root.device == root_.device && root.inode == root_.inode;
      if (!is_same || root == root_ || witness > lowest) continue;
      other = root;
      lowest = witness;
    }
    return other;
  }

  Way FindPathAsSeenBy(const RootIdentity& root) {
    const auto witness = history_.witnesses_.find(root);
    if (witness == history_.witnesses_.end()) return {};
    const auto directory = ProcessDirectory::Open(history_.options_.procfs, witness->second);
    if (directory) return FindPathIn(*directory, root);
    if (IsGone(directory.error())) history_.witnesses_.erase(witness);
    return {};
  }

  // The process may have changed its root since; then its paths mean something else.
  Way FindPathIn(const ProcessDirectory& directory, const RootIdentity& expected) const {
    Result<UniqueFd> root = directory.OpenRoot();
    if (!root) return {};
    const Result<RootIdentity> now = directory.IdentityOfRoot(root->get());
    if (!now || *now != expected) return {};
    std::optional<Result<UniqueFd>> found = FindCachedInRoot(root->get(), path_, 0);
    if (!found) return {.file = {}, .root = *std::move(root)};
    return {.file = ValueOrNone(*std::move(found)), .root = {}};
  }

  ProcessHistory& history_;
  const FileMapping& range_;
  const std::string& path_;
  const RootIdentity& root_;
  const ProcReader::Subject* const subject_;
  const std::optional<MonotonicTime> when_;
};

ObjectId ProcessHistory::Identify(const FileMapping& range, const MappedFile& file,
                                  const RootIdentity& root, const ProcReader::Subject* subject,
                                  std::optional<MonotonicTime> when) {
  if (file.path == kVdsoPath) {
    const bool compat = range.end.value() <= (uint64_t{1} << 32);
    return compat ? ObjectTable::kCompatVdso : ObjectTable::kVdso;
  }
  if (IsAnonymous(file.path)) return ObjectId(0);
  Finder finder(*this, range, file.path, root, subject, when);
  return objects_.Identify(root, file, finder);
}

ObjectId ProcessHistory::Identify(Process& process, const MappingEvent& event) {
  const bool has_file = event.file.path != kVdsoPath && !IsAnonymous(event.file.path);
  if (!has_file || objects_.Knows(process.program().root, event.file)) {
    // The usual case, and /proc is not touched (it was half of the cost of a short process). The
    // root may be an inherited one that the process has left since; then it has mapped a file of
    // the same path and build id as one there, and whoever forges that misleads us about himself.
    return Identify(event.range, event.file, process.program().root, nullptr, event.when);
  }
  LearnRoot(process);
  const std::optional<ProcReader::Subject> subject = SubjectOf(process);
  return Identify(event.range, event.file, process.program().root, subject ? &*subject : nullptr,
                  event.when);
}

void ProcessHistory::NoteJitDump(Process& process, const FileMapping& range, const MappedFile& file,
                                 const ProcReader::Subject* subject) {
  // Also those of who has forked it, which it still maps.
  const auto has = [&](const auto& is_it) {
    return std::ranges::any_of(process.jit_dumps,
                               [&](const JitDumpUse& use) { return is_it(use.file->inode()); });
  };
  if (has([&](const Inode& inode) { return IsInodeOf(file, inode); })) return;
  if (!MayHoldJitDump(*process.share)) {
    ++counters_.jit_dumps_refused;
    return;
  }
  Finder finder(*this, range, file.path, process.program().root, subject);
  UniqueFd found = finder.OpenMapping();
  Result<Inode> inode = InodeOf(found.get());
  if (!found) {  // the process is gone, or does not answer
    found = finder.FindPath().file;
    inode = InodeOf(found.get());
    if (!inode || !IsInodeOf(file, *inode)) return;
  }
  if (!inode || has([&](const Inode& other) { return other == *inode; })) return;
  std::shared_ptr<const JitDumpFile> dump;
  for (const auto& known : jit_dumps_) {
    // A child that was found with its parent's.
    if (auto other = known.lock(); other != nullptr && other->inode() == *inode) dump = other;
  }
  if (dump == nullptr) {
    dump = std::make_shared<const JitDumpFile>(std::move(found), *inode, ++last_jit_dump_,
                                               process.share->user(), inspections_.files());
    jit_dumps_.push_back(dump);
  }
  process.jit_dumps.insert(process.jit_dumps.begin(), {.file = std::move(dump)});
  if (process.jit_dumps.size() > kMostJitDumpsOfOne) process.jit_dumps.pop_back();
}

// A user may have as many as all together leave free.
bool ProcessHistory::MayHoldJitDump(const UserShare& share) {
  std::erase_if(jit_dumps_, [](const auto& d) { return d.expired(); });
  const auto own = std::ranges::count_if(jit_dumps_, [&](const auto& d) {
    const auto dump = d.lock();
    return dump != nullptr && dump->user() == share.user();
  });
  return static_cast<size_t>(own) + jit_dumps_.size() < kMostJitDumps;
}

std::optional<ObjectInfo> ProcessHistory::Object(ObjectId id) const {
  const ObjectInfo* const info = objects_.Find(id);
  return info == nullptr ? std::nullopt : std::optional(*info);
}

std::vector<SampledObject> ProcessHistory::TakeSampled() {
  std::vector<SampledObject> sampled;
  for (const ObjectId id : sink_.TakeUsed()) {
    ObjectRef object{.info = objects_.Share(id), .file = objects_.Held(id)};
    if (object.info == nullptr || object.file == nullptr) continue;
    sampled.push_back({.id = id, .object = std::move(object)});
  }
  return sampled;
}

void ProcessHistory::TakeIdentified() {
  const MonotonicTime now = options_.clock.Now();
  absl::flat_hash_map<ObjectId, ObjectId> found;
  for (const auto& [placeholder, object] : objects_.TakeIdentified(now)) {
    found[placeholder] = object;
    identified_[placeholder] = {object, now};
  }
  if (found.empty()) return;
  const bool is_any_written_code =
      std::ranges::any_of(found, [](const auto& f) { return f.second == ObjectId(0); });
  const auto meaning = [&](const ObjectMapping& m) -> std::optional<std::vector<ObjectMapping>> {
    const auto object = found.find(m.object);
    if (object == found.end()) return std::nullopt;
    const FileMapping range{m.start, m.end, FileOffset(m.start.value() - m.bias)};
    return ToObjects(WithoutReservation(range, SegmentsOf(object->second), page_size_),
                     object->second);
  };
  AddressSpace::Replaced replaced;
  processes_.ForEach([&](Process& process) {
    bool changed = false;
    for (Program& program : process.programs) {
      changed |= program.space.Reinterpret(meaning, replaced);
    }
    if (!changed || !process.alive()) return;
    changed_.insert(process.key.pid);
    if (is_any_written_code && !process.has_anonymous_code) NoteAnonymousCode(process, nullptr);
  });
}

Frame ProcessHistory::AsIdentified(Frame frame) const {
  if (frame.kind() != Frame::Kind::kObject) return frame;
  const auto known = identified_.find(frame.object());
  if (known == identified_.end() || known->second.object == ObjectId(0)) return frame;
  // In a mapping of that page, at the address that is its offset.
  const Address place(frame.offset().value());
  const Address start(place.value() & ~(page_size_ - 1));
  const FileMapping page{start, Address(start.value() + page_size_), FileOffset(start.value())};
  for (const ObjectMapping& part : ToObjects(page, known->second.object)) {
    if (!part.Contains(place)) continue;
    const ElfAddress address = part.ToElfAddress(place);
    if (Frame::Fits(address)) return Frame::Object(part.object, address);
  }
  return frame;
}

Result<UniqueFd> ProcessHistory::OpenObject(ObjectId id) {
  const ObjectInfo* const info = objects_.Find(id);
  if (info == nullptr || !info->was_opened) {
    return Fail(ErrorCode::kNotFound, "object {} has no file that could be opened", id.value());
  }
  if (objects_.Held(id) == nullptr) {
    inspections_.BeginBurst();
    absl::flat_hash_set<ObjectId> missing = {id};
    Reopen(missing, [](ObjectId) {});
    open_.reset();
  }
  return objects_.OpenHeld(id);
}

void ProcessHistory::Reopen(absl::flat_hash_set<ObjectId>& missing,
                            const std::function<void(ObjectId)>& done) {
  if (missing.empty()) return;
  absl::flat_hash_map<ObjectId, int> attempts;
  processes_.ForEachLiving([&](Process& process) {
    if (missing.empty()) return;
    absl::flat_hash_set<ObjectId> tried;
    for (const ObjectMapping& mapping : process.program().space.Current().mappings) {
      const ObjectId id = mapping.object;
      if (!missing.contains(id) || !tried.insert(id).second) continue;
      if (++attempts[id] > kReopenAttempts) continue;
      const FileMapping range{mapping.start, mapping.end, FileOffset(0)};
      const std::string& path = objects_.Find(id)->path;
      const std::optional<ProcReader::Subject> subject = SubjectOf(process);
      Finder finder(*this, range, path, process.program().root, subject ? &*subject : nullptr);
      // By its path first, for which nobody has to be asked.
      if (!objects_.Reopen(id, finder.FindPath().file) &&
          !objects_.Reopen(id, finder.OpenMapping())) {
        continue;
      }
      missing.erase(id);
      done(id);
      if (objects_.IsFull()) missing.clear();
    }
  });
  const MonotonicTime again = After(options_.clock.Now(), kTryAgain);
  for (const ObjectId id : missing) unreachable_[id] = again;
}

Result<UniqueFd> ProcessHistory::OpenRootOf(ObjectId id) {
  Result<UniqueFd> root = Fail(ErrorCode::kNotFound, "nobody maps object {}", id.value());
  int attempts = 0;
  processes_.ForEachLiving([&](Process& process) {
    if (root || attempts >= kReopenAttempts || !Maps(process, id)) return;
    ++attempts;
    if (const ProcessDirectory* const directory = DirectoryOf(process)) {
      root = directory->OpenRoot();
    }
  });
  open_.reset();
  return root;
}

}  // namespace pyrometer
