// SPDX-License-Identifier: Apache-2.0
// The process that reads files of profiled programs for SandboxedIndexer, and what it is asked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/keyed_digest.h"
#include "base/message_socket.h"
#include "indexer/sandbox.h"

namespace pyrometer {

// To the child. The file comes with it; each of the others comes with its size (uint64_t), in the
// order of FilesToRead; then `value_size` bytes follow in messages of at most kMostOfMessage: a
// Reading, a PerfMapPart or a JitDumpPart, if the question is about one.
struct IndexRequest {
  enum class What : uint32_t {
    kInspect,
    kLinks,
    kChecksum,
    kSymbols,
    kSources,
    kUnwind,
    kRepeats,
    kBytes,
    kPerfMap,
    kJitDump
  };
  What what = What::kInspect;
  uint32_t has_debug_file = 0;
  uint32_t has_supplement = 0;
  uint32_t splits = 0;  // their number
  uint32_t may_use_two_threads = 0;
  uint64_t size = 0;    // of the file
  uint64_t offset = 0;  // kBytes: where
  uint64_t count = 0;   // kBytes: how many
  uint64_t value_size = 0;
  KeyedDigest::Key key{};
};

// From the child: messages that begin with one of these. First, whether it is in its sandbox: kDone
// or kFailed. Then for each request any number of others, and one of these two.
enum class IndexReply : uint32_t {
  kRest,    // the next bytes of what has no limit: rows, names, source lines
  kValue,   // the next bytes of what has: see artifact_codec.h
  kDone,    // that was all
  kFailed,  // what came before is of no use; an Error follows
};

inline constexpr size_t kMostOfMessage = size_t{64} << 10;  // with the kind of reply
// Of a value. The largest table of a Debian machine has 60 KB besides its rows.
inline constexpr uint64_t kMostOfValue = uint64_t{32} << 20;

// Enters the sandbox and answers requests until the other end is closed. REQUIRES: a process of its
// own, with one thread.
void ServeIndexing(MessageSocket socket, const SandboxLimits& limits);

}  // namespace pyrometer
