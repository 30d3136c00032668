// SPDX-License-Identifier: Apache-2.0
#include "indexer/artifact_cache.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "base/stored_bytes.h"
#include "indexer/cached_artifact.h"

namespace pyrometer {
namespace {

constexpr std::string_view kSuffix = ".sources";

// "<build id>-<0 to 7>.sources"
std::string NameOf(const BuildId& build_id, size_t place) {
  return fmt::format("{}-{}{}", build_id.ToHex(), place, kSuffix);
}

// Counts itself as open.
std::shared_ptr<const StoredBytes> Counted(std::shared_ptr<const StoredBytes> bytes,
                                           const std::shared_ptr<std::atomic<size_t>>& open) {
  ++*open;
  const StoredBytes* const all = bytes.get();
  return {all, [bytes = std::move(bytes), open](const StoredBytes*) mutable {
            bytes.reset();
            --*open;
          }};
}

}  // namespace

Result<std::shared_ptr<ArtifactCache>> ArtifactCache::Open(Options options) {
  if (options.maker.empty()) {
    return Fail(ErrorCode::kUnsupported,
                "this program has no build id, by which others would know what it has made");
  }
  ASSIGN_OR_RETURN(CacheDirectory directory, CacheDirectory::Open(options.directory));
  std::shared_ptr<ArtifactCache> cache(new ArtifactCache(std::move(options), std::move(directory)));
  cache->MakeRoom(0);
  return cache;
}

std::optional<Made<SourceMap>> ArtifactCache::FindSources(const BuildId& build_id,
                                                          const Fits& fits) {
  std::optional<Made<SourceMap>> found;
  if (*open_ < options_.max_open) found = Find(build_id, fits);
  Count(found ? &Counters::hits : &Counters::misses);
  return found;
}

std::optional<Made<SourceMap>> ArtifactCache::Find(const BuildId& build_id, const Fits& fits) {
  for (size_t place = 0; place < kMostOfOneBuildId; ++place) {
    const std::string name = NameOf(build_id, place);
    Result<std::optional<Made<SourceMap>>> found = Look(name, build_id, fits);
    if (found && *found) return *std::move(found);
    // Of other errors it may recover.
    if (found || found.error().code() != ErrorCode::kMalformed) continue;
    directory_.Remove(name);
    Count(&Counters::refused);
  }
  return std::nullopt;
}

// Nothing, if it is there but of another content.
Result<std::optional<Made<SourceMap>>> ArtifactCache::Look(const std::string& name,
                                                           const BuildId& build_id,
                                                           const Fits& fits) {
  ASSIGN_OR_RETURN(UniqueFd fd, directory_.OpenFile(name));
  ASSIGN_OR_RETURN(CachedSources cached,
                   CachedSources::Open(std::move(fd), {.file = build_id, .maker = options_.maker}));
  const Result<bool> is_the_same = fits(cached.reading());
  if (!is_the_same || !*is_the_same) return std::nullopt;
  directory_.MarkUsed(cached.fd());
  Made<SourceMap> made{.value = {}, .reading = cached.reading()};
  ASSIGN_OR_RETURN(std::shared_ptr<const StoredBytes> bytes, std::move(cached).Bytes());
  ASSIGN_OR_RETURN(made.value, SourceMap::From(Counted(std::move(bytes), open_)));
  return made;
}

void ArtifactCache::StoreSources(const BuildId& build_id, const Reading& reading,
                                 const SourceMap& sources) {
  const std::shared_ptr<const StoredBytes>& bytes = sources.stored();
  if (bytes == nullptr || bytes->size() < options_.min_artifact) return;
  const bool is_stored = Store(build_id, reading, *bytes).has_value();
  Count(is_stored ? &Counters::stored : &Counters::not_stored);
}

Result<void> ArtifactCache::Store(const BuildId& build_id, const Reading& reading,
                                  const StoredBytes& bytes) {
  const uint64_t size = CachedSizeFor(reading, bytes.size());
  if (size > options_.max_size / 4 || !directory_.Leaves(options_.left_on_disk + size)) {
    return Fail(ErrorCode::kExhausted, "no room for {} bytes", size);
  }
  MakeRoom(size);
  RETURN_IF_ERROR(directory_.Replace(PlaceFor(build_id), [&](int fd) {
    return WriteCachedSources(fd, {.file = build_id, .maker = options_.maker}, reading, bytes);
  }));
  const std::scoped_lock lock(mutex_);
  counters_.bytes += size;
  return {};
}

// Where it is written: where there is none yet, or the one used least recently. If two processes
// choose the same place, the later one's stays.
std::string ArtifactCache::PlaceFor(const BuildId& build_id) const {
  const std::vector<CacheDirectory::File> files = directory_.List();
  std::string place;
  int64_t used_ns = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < kMostOfOneBuildId; ++i) {
    std::string name = NameOf(build_id, i);
    const auto file = std::ranges::find(files, name, &CacheDirectory::File::name);
    if (file == files.end()) return name;
    if (i > 0 && file->used_ns >= used_ns) continue;
    place = std::move(name);
    used_ns = file->used_ns;
  }
  return place;
}

// For so many, besides all others. What is in use stays readable for those who use it.
void ArtifactCache::MakeRoom(uint64_t bytes) {
  std::vector<CacheDirectory::File> files = directory_.List();
  std::erase_if(files, [](const auto& file) { return !file.name.ends_with(kSuffix); });
  std::ranges::sort(files, {}, &CacheDirectory::File::used_ns);
  uint64_t all = 0;
  for (const CacheDirectory::File& file : files) all += file.bytes;
  uint64_t evicted = 0;
  for (const CacheDirectory::File& file : files) {
    if (all + bytes <= options_.max_size) break;
    evicted += directory_.Remove(file.name) ? 1 : 0;
    all -= file.bytes;
  }
  const std::scoped_lock lock(mutex_);
  counters_.bytes = all;
  counters_.evicted += evicted;
}

void ArtifactCache::Count(uint64_t Counters::*counter) {
  const std::scoped_lock lock(mutex_);
  ++(counters_.*counter);
}

ArtifactCache::Counters ArtifactCache::counters() const {
  const std::scoped_lock lock(mutex_);
  Counters now = counters_;
  now.open = *open_;
  return now;
}

}  // namespace pyrometer
