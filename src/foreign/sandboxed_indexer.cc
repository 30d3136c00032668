// SPDX-License-Identifier: Apache-2.0
#include "foreign/sandboxed_indexer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file_identity.h"
#include "foreign/reader_answers.h"
#include "foreign/source_trust.h"

namespace pyrometer {
namespace {

using Room = ReaderPool::Room;

std::chrono::nanoseconds TimeFor(ReaderTask::What what, uint64_t size) {
  const bool is_quick = what == ReaderTask::What::kInspect || what == ReaderTask::What::kLinks ||
                        what == ReaderTask::What::kCode;
  return is_quick ? Indexer::kMostOfHeaders : ReadingTime(size) + std::chrono::milliseconds(500);
}

// Who says what makes no sense is not asked again.
template <typename T>
Result<T> Conclude(ReaderPool::Task& task, Result<T> answer) {
  if (!answer) task.Distrust();
  return answer;
}

template <typename T>
bool TakesMoreMemory(const Result<T>& answer) {
  return !answer && answer.error().code() == ErrorCode::kExhausted;
}

// Headers and code are bounded. The callers take kExhausted for a file system that may answer yet.
template <typename T>
Result<T> WithoutMore(Result<T> answer) {
  if (!TakesMoreMemory(answer)) return answer;
  return Fail(ErrorCode::kMalformed, "{}", answer.error().message());
}

Room RoomFor(ReaderTask::What what, const FilesToRead& files) {
  switch (what) {
    case ReaderTask::What::kInspect:
    case ReaderTask::What::kLinks:
      return files.is_large ? Room::kSmall : Room::kHeaders;
    case ReaderTask::What::kCode:
    case ReaderTask::What::kPerfMap:
    case ReaderTask::What::kJitDump:
      return Room::kHeaders;
    case ReaderTask::What::kChecksum:
    case ReaderTask::What::kRepeats:
      return Room::kSmall;
    case ReaderTask::What::kSymbols:
    case ReaderTask::What::kSources:
    case ReaderTask::What::kUnwind:
      break;
  }
  return files.is_large ? Room::kLarge : Room::kSmall;
}

}  // namespace

Result<std::unique_ptr<ReaderPool::Task>> SandboxedIndexer::Begin(
    ReaderTask::What what, const FilesToRead& files, std::stop_token stop,
    std::span<const std::byte> value, std::chrono::nanoseconds at_most) {
  uint64_t size = 0;
  for (const int file : {files.own, files.debug, files.alternate}) {
    if (file < 0) continue;
    ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file));
    size += identity.size;
  }
  const Room room = RoomFor(what, files);
  const std::chrono::nanoseconds time = std::min(TimeFor(what, size), at_most);
  ASSIGN_OR_RETURN(
      std::unique_ptr<ReaderPool::Task> task,
      readers_->Take(
          TrustOf(files.own, {files.debug, files.alternate}),
          {.payer = PayerOf(files.own), .room = room, .time = time, .stop = std::move(stop)}));
  const auto cpu = std::chrono::ceil<std::chrono::milliseconds>(time);
  RETURN_IF_ERROR(
      task->Begin({.what = what, .cpu_ms = static_cast<uint64_t>(cpu.count())}, files, value));
  return task;
}

// A question of headers.
template <typename T>
Result<T> SandboxedIndexer::AskHeaders(ReaderTask::What what, int fd, Receiver<T> receive) {
  const MonotonicTime until = After(readers_->clock().Now(), kMostOfHeaders);
  const auto ask = [&](bool is_large) -> Result<T> {
    const FilesToRead files{.own = fd, .is_large = is_large};
    const std::chrono::nanoseconds left = Between(readers_->clock().Now(), until);
    ASSIGN_OR_RETURN(const auto task, Begin(what, files, {}, {}, left));
    return Conclude(*task, receive(*task));
  };
  Result<T> answer = ask(false);
  // Somebody may have killed its reader, and nobody asks again what is in a file.
  if (!answer && answer.error().code() == ErrorCode::kInternal) answer = ask(false);
  // The most sections that a file may have take 12 MB.
  if (TakesMoreMemory(answer)) answer = ask(true);
  return WithoutMore(std::move(answer));
}

Result<ObjectFacts> SandboxedIndexer::Inspect(int fd) {
  return AskHeaders<ObjectFacts>(ReaderTask::What::kInspect, fd, ReceiveFacts);
}

Result<DebugLinks> SandboxedIndexer::Links(int fd) {
  return AskHeaders<DebugLinks>(ReaderTask::What::kLinks, fd, ReceiveLinks);
}

Result<uint32_t> SandboxedIndexer::Checksum(int fd) {
  ASSIGN_OR_RETURN(const auto task, Begin(ReaderTask::What::kChecksum, {.own = fd}, {}));
  return WithoutMore(Conclude(*task, ReceiveChecksum(*task)));
}

Result<Made<SymbolTable>> SandboxedIndexer::Symbols(const FilesToRead& files,
                                                    const SymbolTableOptions& options) {
  const auto what =
      options.with_debug_info ? ReaderTask::What::kSources : ReaderTask::What::kSymbols;
  ASSIGN_OR_RETURN(const auto task, Begin(what, files, {}));
  return Conclude(*task, ReceiveSymbols(*task, options));
}

Result<Made<UnwindTable>> SandboxedIndexer::Unwind(const FilesToRead& files,
                                                   const UnwindTableOptions& options) {
  ASSIGN_OR_RETURN(const auto task, Begin(ReaderTask::What::kUnwind, files, options.stop));
  return Conclude(*task, ReceiveTable(*task, options.rows));
}

Result<std::vector<std::byte>> SandboxedIndexer::ReadCode(int fd, uint64_t offset) {
  FlatWriter value;
  value.Put(offset);
  ASSIGN_OR_RETURN(const auto task, Begin(ReaderTask::What::kCode, {.own = fd}, {}, value.bytes()));
  return WithoutMore(Conclude(*task, ReceiveCode(*task)));
}

Result<std::optional<PerfMapFunction>> SandboxedIndexer::PerfMapLines(
    int fd, const PerfMapPart& part, std::chrono::nanoseconds at_most, PerfMapSink sink) {
  FlatWriter value;
  Write(part, value);
  ASSIGN_OR_RETURN(const auto task,
                   Begin(ReaderTask::What::kPerfMap, {.own = fd}, {}, value.bytes(), at_most));
  return Conclude(*task, ReceivePerfMap(*task, part, sink));
}

Result<bool> SandboxedIndexer::JitDumpRecords(int fd, const JitDumpPart& part,
                                              std::chrono::nanoseconds at_most, JitDumpSink sink) {
  FlatWriter value;
  Write(part, value);
  ASSIGN_OR_RETURN(const auto task,
                   Begin(ReaderTask::What::kJitDump, {.own = fd}, {}, value.bytes(), at_most));
  return Conclude(*task, ReceiveJitDump(*task, part, sink));
}

Result<bool> SandboxedIndexer::Repeats(const FilesToRead& files, const Reading& reading) {
  if (!reading.is_complete) return false;
  FlatWriter value;
  Write(reading, value);
  ASSIGN_OR_RETURN(const auto task, Begin(ReaderTask::What::kRepeats, files, {}, value.bytes()));
  return Conclude(*task, ReceiveRepeats(*task));
}

}  // namespace pyrometer
