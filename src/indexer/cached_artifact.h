// SPDX-License-Identifier: Apache-2.0
// One file of the cache; the format is in cached_artifact_format.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/stored_bytes.h"
#include "base/unique_fd.h"
#include "indexer/reading.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What an artifact was made of, and by which build of this program.
struct ArtifactOrigin {
  BuildId file;
  BuildId maker;
};

// How large the file is that has an artifact of `size` bytes.
uint64_t CachedSizeFor(const Reading& reading, uint64_t size);

// Writes a SourceMap's bytes to an empty file. Errors: kIo if they cannot be read; those of
// write(2).
Result<void> WriteCachedSources(int fd, const ArtifactOrigin& origin, const Reading& reading,
                                const StoredBytes& bytes);

// A file of the cache, open and being checked. What was cut or changed, and what has another
// origin, is an error; it takes who knows the format, and may write the file, to make one that is
// none.
class CachedSources {
 public:
  // Checks all but the artifact. Errors: kMalformed; kIo.
  static Result<CachedSources> Open(UniqueFd file, const ArtifactOrigin& origin);

  // Of the file that the artifact was made of.
  const Reading& reading() const { return reading_; }
  int fd() const { return file_.get(); }

  // The artifact, all of which is read for that, once, at several GB a second. It is read from the
  // file again when somebody wants some of it: by pread and not mapped, so that a file that is cut,
  // or a disk that fails, costs names and not the process. Errors: kMalformed; kIo.
  Result<std::shared_ptr<const StoredBytes>> Bytes() &&;

 private:
  struct Artifact {
    uint64_t at = 0;
    uint64_t size = 0;
    Digest digest;
  };
  CachedSources(UniqueFd file, Reading reading, const Artifact& artifact)
      : file_(std::move(file)), reading_(std::move(reading)), artifact_(artifact) {}

  UniqueFd file_;
  Reading reading_;
  Artifact artifact_;
};

}  // namespace pyrometer
