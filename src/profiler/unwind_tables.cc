// SPDX-License-Identifier: Apache-2.0
#include "profiler/unwind_tables.h"

#include <utility>

#include "base/file_identity.h"
#include "binary/vdso.h"
#include "foreign/reading_budget.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

// True if looking for a debug file may be worth it: one in eight of the 3,080 ELF files in /usr of
// a Debian machine. What the others leave out is mostly padding.
bool LeavesOutMuch(const UnwindTable& table) {
  return table.covered_text < table.text / 4 * 3;
}

// What the file itself says stays so. That it cannot be opened or read now may be over soon.
bool MayComeLater(const Error& error) {
  return error.code() != ErrorCode::kMalformed && error.code() != ErrorCode::kUnsupported &&
         error.code() != ErrorCode::kInvalid;
}

std::shared_ptr<const UnwindTable> EmptyTable() {
  return std::make_shared<const UnwindTable>();
}

std::shared_ptr<const UnwindTable> UnreadTable() {
  UnwindTable table;
  table.unread = true;
  return std::make_shared<const UnwindTable>(std::move(table));
}

// Of the kernel's bytes, which may be believed and never hang.
Result<UnwindTable> VdsoTable() {
  ASSIGN_OR_RETURN(const ElfFile vdso, OpenVdso());
  return CompileUnwindTable(vdso, {});
}

}  // namespace

UnwindTables::UnwindTables(const Parts& parts, std::function<void()> on_answer)
    : parts_(parts),
      on_answer_(std::move(on_answer)),
      code_(parts.processes, parts.indexer, parts.workers) {}

std::shared_ptr<const UnwindTable> UnwindTables::Of(ObjectId object) {
  {
    const absl::MutexLock lock(&mutex_);
    if (const auto known = known_.find(object); known != known_.end()) {
      if (known->second.own != nullptr || known->second.is_pending()) return known->second.own;
      if (auto table = parts_.store.UnwindTableOf(known->second.content)) return table;
    }
    if (failed_.Contains(object, parts_.clock.Now())) return UnreadTable();
    known_[object] = {};
    ++counters_.pending;
  }
  Begin(object);
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(object);
  if (known == known_.end()) return UnreadTable();  // it has failed
  if (known->second.content == nullptr) return known->second.own;
  return parts_.store.UnwindTableOf(known->second.content);
}

bool UnwindTables::Has(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(object);
  return known != known_.end() && !known->second.is_pending();
}

bool UnwindTables::IsPending(ObjectId object) const {
  const absl::MutexLock lock(&mutex_);
  const auto known = known_.find(object);
  return known != known_.end() && known->second.is_pending();
}

void UnwindTables::Begin(ObjectId object) {
  const std::optional<ObjectInfo> info = parts_.processes.Object(object);
  if (info && info->is_vdso) {
    Result<UnwindTable> table = VdsoTable();
    IsMade(object, table ? std::make_shared<const UnwindTable>(*std::move(table)) : EmptyTable());
    return;
  }
  const Result<std::shared_ptr<Files>> files = Open(object);
  if (!files) return Failed(object, files.error());
  parts_.store.AskUnwindTable(
      (*files)->source,
      lifeline_.To(
          [object, files = *files](UnwindTables& self, Result<ArtifactStore::ContentRef> own) {
            self.OwnIsMade(object, files, std::move(own));
          }));
}

Result<std::shared_ptr<UnwindTables::Files>> UnwindTables::Open(ObjectId object) {
  const std::optional<ObjectInfo> info = parts_.processes.Object(object);
  ASSIGN_OR_RETURN(UniqueFd file, parts_.processes.OpenObject(object));
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file.get()));
  const uint64_t account = AccountOf(file.get());
  const auto files = std::make_shared<Files>();
  files->source = {.own = std::make_shared<const UniqueFd>(std::move(file)),
                   .build_id = info ? info->build_id : BuildId(),
                   .account = account,
                   .size = identity.size};
  if (info) files->source.mapped = info->identity;
  ASSIGN_OR_RETURN(files->search, parts_.debug_files.Prepare(object, info.value_or(ObjectInfo()),
                                                             files->source.own));
  return files;
}

void UnwindTables::OwnIsMade(ObjectId object, const std::shared_ptr<Files>& files,
                             Result<ArtifactStore::ContentRef> own) {
  const auto table = own ? parts_.store.UnwindTableOf(*own) : nullptr;
  const bool may_gain =
      own ? table != nullptr && LeavesOutMuch(*table) : own.error().code() == ErrorCode::kMalformed;
  if (!may_gain) return IsMade(object, own);
  const auto search = std::exchange(files->search, nullptr);
  parts_.debug_files.Find(search, lifeline_.To([object, files, own = std::move(own)](
                                                   UnwindTables& self, DebugFiles::Found found) {
    if (found.debug == nullptr) return self.IsMade(object, own);
    self.AskForBoth(object, files->source, own, std::move(found.debug));
  }));
}

void UnwindTables::AskForBoth(ObjectId object, ArtifactStore::Source source,
                              const Result<ArtifactStore::ContentRef>& own,
                              ArtifactStore::File debug_file) {
  source.debug = std::move(debug_file);
  parts_.store.AskUnwindTable(
      std::move(source), lifeline_.To([object, own](UnwindTables& self,
                                                    const Result<ArtifactStore::ContentRef>& both) {
        self.IsMade(object, both ? both : own);
      }));
}

void UnwindTables::IsMade(ObjectId object, const Result<ArtifactStore::ContentRef>& content) {
  if (!content) return Failed(object, content.error());
  Answer(object, {.content = *content, .own = nullptr});
}

void UnwindTables::IsMade(ObjectId object, std::shared_ptr<const UnwindTable> own) {
  Answer(object, {.content = nullptr, .own = std::move(own)});
}

void UnwindTables::Failed(ObjectId object, const Error& error) {
  Known known;
  if (!MayComeLater(error)) known.own = EmptyTable();
  {
    const absl::MutexLock lock(&mutex_);
    ++counters_.failed;
    if (known.is_pending()) failed_.Add(object, parts_.clock.Now());
  }
  Answer(object, std::move(known));
}

// Nothing, if it is known not to be there for now.
void UnwindTables::Answer(ObjectId object, Known known) {
  {
    const absl::MutexLock lock(&mutex_);
    --counters_.pending;
    if (known.is_pending()) {
      known_.erase(object);
    } else {
      known_[object] = std::move(known);
    }
  }
  on_answer_();
}

void UnwindTables::Forget(std::span<const ObjectId> objects) {
  const absl::MutexLock lock(&mutex_);
  for (const ObjectId object : objects) {
    const auto known = known_.find(object);
    if (known != known_.end() && !known->second.is_pending()) known_.erase(known);
  }
}

UnwindTables::Counters UnwindTables::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

}  // namespace pyrometer
