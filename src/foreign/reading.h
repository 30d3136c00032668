// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/keyed_digest.h"
#include "binary/byte_source.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What was read of files to make something of them, and a digest of that. What is made depends on
// nothing else, and the next place to be read only on what was read before: so from files that
// have the same bytes in these places, the same is made.
struct Reading {
  struct Piece {
    uint32_t file = 0;  // its number
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  static constexpr size_t kMostFiles = 3;
  std::vector<uint64_t> sizes;  // of the files
  std::vector<Piece> pieces;    // in the order in which they were read
  Digest digest;
  bool is_complete = true;  // false: not all of it is known, so nothing can be said of other files
};

// Watches files being read. One thread; to be kept until no file is read any more.
class ReadingRecorder {
 public:
  // Beyond that a reading is not complete: 0.4 MB. The largest programs need some 2,000.
  static constexpr size_t kMostPieces = 16384;

  explicit ReadingRecorder(const KeyedDigest::Key& key) : digest_(key) {}

  // The next file. `fd` stays the caller's. Errors: those of FileBytes.
  Result<std::unique_ptr<ByteSource>> Open(int fd);

  Reading Finish() &&;

 private:
  class Source;

  void Note(uint32_t file, uint64_t offset, std::span<const std::byte> bytes);
  void NoteFailure() { reading_.is_complete = false; }

  KeyedDigest digest_;
  Reading reading_;
};

// Whether a reading of these files would be the same. Errors: kIo; kMalformed if they changed
// meanwhile.
Result<bool> Repeats(const Reading& reading, std::span<const int> files,
                     const KeyedDigest::Key& key);

}  // namespace pyrometer
