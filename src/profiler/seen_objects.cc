// SPDX-License-Identifier: Apache-2.0
#include "profiler/seen_objects.h"

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/file_identity.h"

namespace pyrometer {

void SeenObjects::Add(const ResolvedWindow& window) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [id, reference] : window.objects) {
    const ObjectInfo& info = *reference.info;
    if (reference.file == nullptr || (info.build_id.empty() && info.hash.empty())) continue;
    if (seen_.size() >= kMost) {
      absl::erase_if(seen_, [](const auto& seen) { return seen.second.file.expired(); });
    }
    if (seen_.size() >= kMost) return;
    Seen& seen = seen_[{info.build_id, info.hash}];
    if (!seen.file.expired()) continue;
    seen = {.object = id, .file = reference.file, .tells_names = info.tells_names};
  }
}

std::optional<SeenObjects::Seen> SeenObjects::Find(const Content& content) const {
  const absl::MutexLock lock(&mutex_);
  const auto seen = seen_.find(content);
  return seen == seen_.end() ? std::nullopt : std::optional(seen->second);
}

ObjectFile SeenObjects::FindNames(const BuildId& build_id, const FileHash& hash,
                                  const std::stop_token& stop) {
  const std::optional<Seen> seen = Find({build_id, hash});
  if (!seen) return nullptr;
  ObjectFile own = seen->file.lock();
  if (own == nullptr) return nullptr;
  if (ObjectFile debug_file = FindDebugFile(*seen, own, build_id, stop)) return debug_file;
  return seen->tells_names ? own : nullptr;
}

ObjectFile SeenObjects::FindDebugFile(const Seen& seen, const ObjectFile& own,
                                      const BuildId& build_id, const std::stop_token& stop) {
  const Result<uint32_t> user = OwnerOf(own->get());
  if (build_id.empty() || !user) return nullptr;
  const std::optional<ObjectInfo> info = parts_.processes.Object(seen.object);
  struct Answer {
    std::mutex mutex;
    std::condition_variable_any came;
    bool is_there = false;
    ObjectFile file;
  };
  const auto answer = std::make_shared<Answer>();  // it may come when nobody waits any more
  parts_.debug_files.Find(
      seen.object, RootsOf(seen.object, parts_.processes, parts_.procfs),
      {.build_id = build_id, .user = *user, .path = info ? info->path : std::string(), .own = own},
      [answer](FoundDebugFiles found) {
        const std::lock_guard lock(answer->mutex);
        answer->file = std::move(found.debug);
        answer->is_there = true;
        answer->came.notify_all();
      });
  std::unique_lock lock(answer->mutex);
  answer->came.wait_for(lock, stop, kMostTime, [&] { return answer->is_there; });
  return answer->file;
}

}  // namespace pyrometer
