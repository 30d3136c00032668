// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/file_identity.h"
#include "base/keyed_digest.h"
#include "base/message_socket.h"
#include "base/nursery.h"
#include "indexer/index_child.h"
#include "indexer/indexer.h"
#include "indexer/reading_time.h"

namespace pyrometer {

// Has files read by other processes, which can do nothing but that (see sandbox.h): this one reads
// no byte of them, and believes nothing that it is told about them. Each process answers one
// question at a time. One that ends, does not answer in time or talks nonsense is killed, and the
// answer is kCrashed; the next question gets a new one. A file to which that happened is not read
// for the same purpose for a while. (Not what has the same build id: anyone may claim that.)
// Thread-safe; each caller waits for its own answer only.
class SandboxedIndexer : public Indexer {
 public:
  struct Options {
    SandboxLimits limits = {};
    size_t max_idle = 2;  // processes that are kept for the next question
    size_t max_processes = 16;
    // How long a file is left alone that has ended a process: that may have been the machine, which
    // was short of memory.
    std::chrono::nanoseconds quarantine = std::chrono::minutes(10);
    // A process that has answered so many ends: there is a limit on the CPU time of each.
    uint32_t most_questions = 4096;
    // How long reading a file of so many bytes may take.
    std::function<std::chrono::nanoseconds(uint64_t size)> time = &ReadingTime;
    // What a process does instead of ServeIndexing(): for tests.
    Nursery::Work work = {};
  };

  // Starts the first. REQUIRES: this process has one thread. Errors: kUnsupported if there is no
  // sandbox to be had; those of Nursery.
  static Result<std::unique_ptr<SandboxedIndexer>> Start(Options options);

  Result<ObjectFacts> Inspect(int fd) override;
  Result<DebugLinks> Links(int fd) override;
  Result<uint32_t> Checksum(int fd) override;
  Result<Made<SymbolTable>> Symbols(const FilesToRead& files,
                                    const SymbolTableOptions& options) override;
  Result<Made<SourceMap>> Sources(const FilesToRead& files,
                                  const SymbolTableOptions& options) override;
  Result<Made<UnwindTable>> Unwind(const FilesToRead& files,
                                   const UnwindTableOptions& options) override;
  Result<bool> Repeats(const FilesToRead& files, const Reading& reading) override;
  Result<std::vector<std::byte>> Bytes(int fd, FileOffset offset, size_t size) override;
  Result<PerfMapEnd> PerfMapLines(int fd, const PerfMapPart& part,
                                  OnPerfMapFunction on_function) override;
  Result<JitDumpEnd> JitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code) override;

  ReaderCounters reader_counters() const override;

 private:
  struct Question;
  struct Reader {
    MessageSocket socket;  // to it
    pid_t pid = 0;
    uint32_t questions = 0;  // answered
  };
  class Conversation;

  SandboxedIndexer(Options options, std::unique_ptr<Nursery> nursery)
      : options_(std::move(options)), nursery_(std::move(nursery)) {}

  // What ended a process that read it, and for what it was read.
  struct Culprit {
    FileIdentity file;
    uint32_t user = 0;  // who owns a file that grows
    IndexRequest::What what = IndexRequest::What::kInspect;
    bool operator==(const Culprit&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Culprit& c) {
      return H::combine(std::move(h), c.file, c.user, c.what);
    }
  };

  Result<void> Ask(const Question& question);
  Result<void> Converse(const Question& question);
  Result<Reader> Take();
  std::optional<Reader> TakeIdle();
  Result<Reader> ForkAnother();
  Result<Reader> Fork();
  void Return(Reader child);
  enum class Fate { kEnded, kLate };
  void GiveUp(const Reader& child, Fate fate);

  const Options options_;
  const KeyedDigest::Key key_ = KeyedDigest::RandomKey();
  const std::unique_ptr<Nursery> nursery_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<Reader> idle_;
  ReaderCounters counters_;
  absl::flat_hash_map<Culprit, MonotonicTime> culprits_;  // and until when they are left alone
};

}  // namespace pyrometer
