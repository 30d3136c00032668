// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "indexer/cache_directory.h"
#include "indexer/indexer.h"
#include "indexer/own_build_id.h"
#include "indexer/reading.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "symbolize/source_map.h"

namespace pyrometer {

// Keeps on disk what took long to make of files, for later runs of this program. What is found
// there is used for a file only if that has the same bytes in all places that were read when it was
// made (see Reading), and if it is what was written: files that were cut or changed, and those that
// another build of this program made, are removed.
//
// Thread-safe; any number of processes may use one directory.
class ArtifactCache {
 public:
  struct Options {
    std::string directory{};                     // see CacheDirectory
    uint64_t max_size = uint64_t{512} << 20;     // bytes of all files; one may have a quarter
    uint64_t left_on_disk = uint64_t{1} << 30;   // bytes that stay free for others
    uint64_t min_artifact = uint64_t{64} << 10;  // bytes; what has less is made again as fast
    size_t max_open = 1024;  // files in use at a time, each of which takes a descriptor
    BuildId maker = OwnBuildId();
  };
  struct Counters {
    uint64_t hits = 0;     // artifacts that did not have to be made
    uint64_t misses = 0;   // asked for, and not there
    uint64_t refused = 0;  // files removed: cut, changed, by another program, open to others
    uint64_t stored = 0;
    uint64_t not_stored = 0;  // of those worth it: too large, the disk full, ...
    uint64_t evicted = 0;     // files removed to make room
    uint64_t bytes = 0;       // of all files, of other processes', too, when last looked at
    uint64_t open = 0;        // files in use now
  };

  // Removes what is beyond the size. Errors: kUnsupported if this program has no build id; those of
  // CacheDirectory.
  static Result<std::shared_ptr<ArtifactCache>> Open(Options options);

  // Whether a reading of the file in question would be this one.
  using Fits = std::function<Result<bool>(const Reading& reading)>;

  // The source lines of a file, if they are there. REQUIRES: `build_id` is not empty.
  std::optional<Made<SourceMap>> FindSources(const BuildId& build_id, const Fits& fits);

  // Keeps them, unless that is not worth it. REQUIRES: the same; that the reading is complete.
  void StoreSources(const BuildId& build_id, const Reading& reading, const SourceMap& sources);

  // st_dev of the directory.
  uint64_t file_system() const { return directory_.file_system(); }

  Counters counters() const;

  // Contents of one build id: beyond them, the one used least recently makes room.
  static constexpr size_t kMostOfOneBuildId = 8;

 private:
  ArtifactCache(Options options, CacheDirectory directory)
      : options_(std::move(options)), directory_(std::move(directory)) {}

  std::optional<Made<SourceMap>> Find(const BuildId& build_id, const Fits& fits);
  Result<std::optional<Made<SourceMap>>> Look(const std::string& name, const BuildId& build_id,
                                              const Fits& fits);
  Result<void> Store(const BuildId& build_id, const Reading& reading, const StoredBytes& bytes);
  std::string PlaceFor(const BuildId& build_id) const;
  void MakeRoom(uint64_t bytes);
  void Count(uint64_t Counters::*counter);

  const Options options_;
  const CacheDirectory directory_;
  // Files that are still being read may outlive this.
  const std::shared_ptr<std::atomic<size_t>> open_ = std::make_shared<std::atomic<size_t>>(0);
  mutable std::mutex mutex_;
  Counters counters_;  // guarded by mutex_
};

}  // namespace pyrometer
