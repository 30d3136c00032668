// SPDX-License-Identifier: Apache-2.0
// The part of ObjectTable that finds out which file a mapping shows, and what is in it.
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <functional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "process/object_table.h"

namespace pyrometer {
namespace {

constexpr std::chrono::nanoseconds kFirstPause = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds kLongestPause = std::chrono::minutes(1);

// True if the open file is still called that, at least in the root of a process that is shut up in
// one. A place may have got another file since its mapping was reported.
bool IsCalled(int fd, std::string_view path) {
  std::array<char, PATH_MAX> link{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), link.data(), link.size());
  if (size < 0) return false;
  const std::string_view name(link.data(), static_cast<size_t>(size));
  return WithoutDeleted(name).ends_with(WithoutDeleted(path));
}

bool IsMemfd(std::string_view path) {
  return path.starts_with("/memfd:");
}

// True of files that runtimes write code to through one mapping and run it through another, so as
// to have no page that is both writable and executable.
bool MayHoldWrittenCode(std::string_view path) {
  return IsMemfd(path) || path.starts_with("/dev/shm/") || path.starts_with("/SYSV") ||
         WithoutDeleted(path) != path;
}

bool IsWrittenCode(const MappedFile& file, const ObjectFacts& facts) {
  return MayHoldWrittenCode(file.path) && facts.segments.empty();
}

// Stands for the file system that has to be asked about a path, which may be any that is mounted in
// the root.
uint64_t FileSystemOf(const RootIdentity& root, std::string_view path) {
  const std::string_view directory = path.substr(0, path.find_last_of('/'));
  return NumberOf(Asked::kPath, std::array{root.device, root.inode}, directory);
}

}  // namespace

ObjectId ObjectTable::Identify(const RootIdentity& root, const MappedFile& file,
                               FileFinder& finder) {
  const Name name{root, file};
  if (const std::optional<ObjectId> known = Remembered(name)) return *known;
  std::optional<WallTime> mapped;
  // Code is written to a memfd after it was mapped.
  if (file.build_id.empty() && !IsMemfd(file.path)) mapped = finder.MappedAt();
  if (const std::optional<ObjectId> known = RememberedInode(file, mapped)) return *known;
  Candidate mapping = CandidateOf(finder.OpenMapping(), Through::kMapping, mapped, file.path);
  const bool has_mapping = mapping.file != nullptr;
  if (has_mapping && !IsCalled(mapping.file->get(), file.path)) {
    mapping.through = Through::kRenamed;
  }
  FileFinder::Way way = finder.FindPath();
  const Candidate named = CandidateOf(std::move(way.file), Through::kPath, mapped, file.path);
  const bool is_same = has_mapping && named.file != nullptr && mapping.identity == named.identity;
  std::optional<ObjectId> by_path;
  if (!is_same) {
    by_path = Accept(named, name, !has_mapping || mapping.through == Through::kRenamed);
    if (by_path && mapping.through == Through::kRenamed) mapping = {};
  }
  const std::optional<ObjectId> by_mapping = Accept(mapping, name, is_same);
  if (is_same) by_path = by_mapping;
  if (by_mapping || by_path) {
    const ObjectId id = by_mapping ? *by_mapping : *by_path;
    if (by_path == id) RememberName(name, id);
    // In a root without files, as of a process in a sandbox, no path leads anywhere.
    const bool is_known = RememberInode(file, id);
    if (way.root && !is_known) {
      CheckName(name, std::make_shared<const UniqueFd>(std::move(way.root)));
    }
    return id;
  }
  if (!way.root) return Unopened(name, mapped);
  const auto waits = unopened_by_name_.find(name);
  if (waits != unopened_by_name_.end() && pending_.contains(waits->second.id)) {
    return waits->second.id;
  }
  Wanted wanted{.question = {.file_system = FileSystemOf(root, file.path), .path = file.path},
                .name = name,
                .is_name_true = true,
                .mapped = mapped};
  wanted.question.root = std::make_shared<const UniqueFd>(std::move(way.root));
  const std::optional<ObjectId> found = Ask(std::move(wanted));
  if (found && (*found == ObjectId(0) || Find(*found)->was_opened)) RememberName(name, *found);
  return found ? *found : Unopened(name, mapped);
}

ObjectTable::Candidate ObjectTable::CandidateOf(UniqueFd path_fd, Through through,
                                                const std::optional<WallTime>& mapped,
                                                std::string_view path) const {
  if (!path_fd) return {};
  const Result<FileIdentity> identity = IdentityOf(path_fd.get());
  if (!identity) return {};
  const bool is_newer = IsNewer(*identity, mapped);
  if (is_newer && !MayHoldWrittenCode(path)) return {};
  return {std::make_shared<const UniqueFd>(std::move(path_fd)), *identity, through, mapped,
          is_newer};
}

bool ObjectTable::IsNewer(const FileIdentity& identity,
                          const std::optional<WallTime>& mapped) const {
  return mapped && MayBeWrittenBetween(identity, *mapped, options_.clock.WallNow());
}

bool ObjectTable::IsInodeOf(const MappedFile& file, const FileIdentity& identity) {
  return identity.inode == file.inode && major(identity.device) == file.major &&
         minor(identity.device) == file.minor;
}

bool ObjectTable::MatchesInode(const Candidate& candidate, const MappedFile& file) {
  // Overlay file systems show one inode to stat() and another in mappings, so the inode proves
  // nothing against a file that was found through its mapping.
  if (!file.build_id.empty() || candidate.through == Through::kMapping) return true;
  return IsInodeOf(file, candidate.identity);
}

std::optional<ObjectId> ObjectTable::Accept(const Candidate& candidate, const Name& name,
                                            bool is_name_true) {
  if (candidate.file == nullptr || !MatchesInode(candidate, name.file)) return std::nullopt;
  if (const auto known = by_identity_.find(candidate.identity); known != by_identity_.end()) {
    if (candidate.is_newer) return std::nullopt;  // others have mapped it as it is now
    return AcceptKnown(known->second, candidate, name);
  }
  if (unreadable_.contains(candidate.identity)) return std::nullopt;
  if (const auto waits = placeholders_.find(candidate.identity); waits != placeholders_.end()) {
    BuildId& claimed = waits->second.claimed;
    if (claimed.empty()) claimed = name.file.build_id;
    if (candidate.is_newer) waits->second.newer_than = candidate.mapped;
    const bool agrees = name.file.build_id.empty() || name.file.build_id == claimed;
    return agrees ? std::optional(waits->second.id) : std::nullopt;
  }
  Wanted wanted{.question = {.file_system = candidate.identity.device, .file = candidate.file},
                .identity = candidate.identity,
                .name = name,
                .through = candidate.through,
                .is_name_true = is_name_true,
                .mapped = candidate.mapped};
  return Ask(std::move(wanted));
}

std::optional<ObjectId> ObjectTable::AcceptKnown(ObjectId id, const Candidate& candidate,
                                                 const Name& name) {
  if (id == ObjectId(0)) return id;
  const BuildId& wanted = name.file.build_id;
  if (!wanted.empty() && wanted != Find(id)->build_id) return std::nullopt;
  if (held_.Find(id) == nullptr) HoldAgain(id, candidate.file, candidate.identity);
  return id;
}

std::optional<ObjectId> ObjectTable::Ask(Wanted wanted) {
  std::optional<FileInspections::Ticket> ticket = inspections_.Ask(wanted.question);
  if (ticket) {
    auto answer = inspections_.Await(*ticket, wanted.question.file_system);
    if (answer && answer->work == QuestionEnd::kDone) return Settle(wanted, *answer);
    if (answer) ticket.reset();
  }
  if (waiting() >= options_.max_waiting) return std::nullopt;
  const ObjectId placeholder = PlaceholderOf(wanted);
  if (placeholder == ObjectId(0)) return placeholder;
  wanted.object = placeholder;
  pending_.insert(placeholder);
  if (ticket) {
    by_ticket_.emplace(*ticket, std::move(wanted));
  } else {
    AskLater(std::move(wanted), options_.clock.Now());
  }
  return placeholder;
}

ObjectId ObjectTable::PlaceholderOf(const Wanted& wanted) {
  const MappedFile& file = wanted.name.file;
  const bool is_known = wanted.question.file == nullptr && unopened_by_name_.contains(wanted.name);
  if (is_known) return unopened_by_name_[wanted.name].id;
  ObjectInfo info;
  info.path = file.path;
  info.build_id = file.build_id;
  const ObjectId id = Enter(std::move(info));
  if (id == ObjectId(0)) return id;
  if (wanted.question.file == nullptr) {
    const WallTime mapped = wanted.mapped.value_or(options_.clock.WallNow());
    unopened_by_name_.emplace(wanted.name, NotFound{id, mapped});
  } else {
    placeholders_.insert_or_assign(wanted.identity, Placeholder{id, file.build_id});
  }
  return id;
}

void ObjectTable::ForgetPlaceholder(const Wanted& wanted) {
  pending_.erase(wanted.object);
  if (wanted.question.file != nullptr) placeholders_.erase(wanted.identity);
}

void ObjectTable::CheckName(const Name& name, PathFd root) {
  if (waiting() >= options_.max_waiting) return;
  Wanted wanted{.what = Wanted::What::kName,
                .question = {.file_system = FileSystemOf(name.root, name.file.path),
                             .depth = FileQuestion::Depth::kIdentity,
                             .root = std::move(root),
                             .path = name.file.path},
                .name = name};
  if (const auto ticket = inspections_.Ask(wanted.question)) {
    by_ticket_.emplace(*ticket, std::move(wanted));
  }
}

void ObjectTable::HoldAgain(ObjectId id, PathFd file, const FileIdentity& identity) {
  if (waiting() >= options_.max_waiting || !opening_.insert(id).second) return;
  Wanted wanted{.what = Wanted::What::kFile,
                .question = {.file_system = identity.device,
                             .depth = FileQuestion::Depth::kOpen,
                             .file = std::move(file)},
                .identity = identity,
                .object = id};
  const auto ticket = inspections_.Ask(wanted.question);
  if (!ticket) {
    opening_.erase(id);
  } else if (auto answer = inspections_.Await(*ticket, identity.device)) {
    OnFile(wanted, *answer);
  } else {
    by_ticket_.emplace(*ticket, std::move(wanted));
  }
}

std::vector<ObjectTable::Identified> ObjectTable::TakeIdentified(MonotonicTime now) {
  std::vector<Identified> all = std::exchange(found_late_, {});
  for (FileInspections::Answer& answer : inspections_.TakeAnswers()) {
    auto asked = by_ticket_.extract(answer.ticket);
    if (asked.empty()) continue;
    Wanted& wanted = asked.mapped();
    if (wanted.what == Wanted::What::kFile) {
      OnFile(wanted, answer);
    } else if (wanted.what == Wanted::What::kName) {
      OnName(wanted, answer);
    } else if (const auto identified = OnObject(std::move(wanted), answer, now)) {
      all.push_back(*identified);
    }
  }
  AskAgain(now);
  return all;
}

void ObjectTable::OnFile(const Wanted& wanted, FileInspections::Answer& answer) {
  opening_.erase(wanted.object);
  if (answer.work != QuestionEnd::kDone || !answer.findings) return;
  if (answer.findings->identity != wanted.identity) return;
  held_.Hold(wanted.object, std::move(answer.findings->opened), answer.findings->file);
}

void ObjectTable::OnName(const Wanted& wanted, const FileInspections::Answer& answer) {
  if (answer.work != QuestionEnd::kDone || !answer.findings) return;
  const auto known = by_identity_.find(answer.findings->identity);
  if (known == by_identity_.end() || known->second == ObjectId(0)) return;
  const MappedFile& file = wanted.name.file;
  const Candidate named{answer.findings->file, answer.findings->identity, Through::kPath};
  const bool matches = file.build_id.empty() ? MatchesInode(named, file)
                                             : file.build_id == Find(known->second)->build_id;
  if (matches) RememberName(wanted.name, known->second);
}

std::optional<ObjectTable::Identified> ObjectTable::OnObject(Wanted wanted,
                                                             FileInspections::Answer& answer,
                                                             MonotonicTime now) {
  if (answer.work != QuestionEnd::kDone) {
    AskLater(std::move(wanted), now);
    return std::nullopt;
  }
  const Name name = wanted.name;
  if (const auto waits = placeholders_.find(wanted.identity); waits != placeholders_.end()) {
    wanted.name.file.build_id = waits->second.claimed;
    if (waits->second.newer_than) wanted.mapped = waits->second.newer_than;
  }
  const std::optional<ObjectId> id = Settle(wanted, answer);
  ForgetPlaceholder(wanted);
  if (!id) {
    ++unopened_;
    return std::nullopt;
  }
  if (wanted.is_name_true) RememberName(name, *id);
  return Identified{wanted.object, *id};
}

std::optional<ObjectId> ObjectTable::Settle(const Wanted& wanted, FileInspections::Answer& answer) {
  if (!answer.findings) {
    if (wanted.question.file != nullptr) unreadable_.insert(wanted.identity);
    return std::nullopt;
  }
  FileFindings& found = *answer.findings;
  const Candidate candidate{found.file, found.identity, wanted.through};
  const MappedFile& file = wanted.name.file;
  if (!MatchesInode(candidate, file)) return std::nullopt;
  const bool is_written_code = IsWrittenCode(file, found.facts);
  if (!is_written_code && IsNewer(found.identity, wanted.mapped)) return std::nullopt;
  if (const auto known = by_identity_.find(found.identity); known != by_identity_.end()) {
    return AcceptKnown(known->second, candidate, wanted.name);
  }
  if (!file.build_id.empty() && file.build_id != found.facts.build_id) return std::nullopt;
  return EnterFound(file, found);
}

ObjectId ObjectTable::EnterFound(const MappedFile& file, FileFindings& found) {
  if (IsWrittenCode(file, found.facts)) return ObjectId(0);  // a JIT's
  ObjectInfo info;
  info.path = file.path;
  info.build_id = found.facts.build_id;
  info.segments = std::move(found.facts.segments);
  info.was_opened = true;
  info.identity = found.identity;
  const ObjectId id = Enter(std::move(info));
  if (id == ObjectId(0)) return id;
  by_identity_.emplace(found.identity, id);
  held_.Hold(id, std::move(found.opened), std::move(found.file));
  return id;
}

void ObjectTable::AskLater(Wanted wanted, MonotonicTime now) {
  wanted.pause = std::clamp(2 * wanted.pause, kFirstPause, kLongestPause);
  const MonotonicTime when = After(now, wanted.pause);
  next_later_ = std::min(next_later_, when);
  later_.push_back({when, std::move(wanted)});
}

void ObjectTable::AskAgain(MonotonicTime now) {
  if (now < next_later_) return;
  next_later_ = MonotonicTime(UINT64_MAX);
  std::vector<Later> all = std::exchange(later_, {});
  for (Later& later : all) {
    if (now < later.when) {
      next_later_ = std::min(next_later_, later.when);
      later_.push_back(std::move(later));
    } else if (const auto ticket = inspections_.Ask(later.wanted.question)) {
      by_ticket_.emplace(*ticket, std::move(later.wanted));
    } else {
      AskLater(std::move(later.wanted), now);
    }
  }
}

}  // namespace pyrometer
