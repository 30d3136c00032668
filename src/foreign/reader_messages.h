// SPDX-License-Identifier: Apache-2.0
// What a reader is asked, and how it answers.
//
// A conversation: kTask (with the file), then if wanted kOtherFile (with its debug file, its
// alternate one) and kValue.
// The answer is any number of kBulk, then any number of kValue, then kDone with the rest of the
// value; or at any point kFailed. Before the first one a reader gets kSetup, and answers kReady or
// kFailed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/message_socket.h"
#include "base/unique_fd.h"
#include "binary/debug_file.h"
#include "foreign/flat_bytes.h"
#include "foreign/reading.h"
#include "foreign/sandbox.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"
#include "pyrometer/unwind_table.h"
#include "symbolize/jit_dump_reader.h"
#include "symbolize/perf_map_reader.h"
#include "symbolize/symbol_table.h"

namespace pyrometer {

enum class ReaderMessage : uint32_t {
  kSetup,      // ReaderSetup
  kReady,      // SandboxLevel
  kTask,       // ReaderTask; attached: the file
  kOtherFile,  // nothing; attached: the file
  kValue,      // a part of a value's bytes
  kBulk,       // rows of an unwind table, names and entries of a symbol table, PerfMapLines,
               // JitDumpRecords
  kDone,       // the last part of a value's bytes
  kFailed,     // a code, then the text of a message
};

struct ReaderSetup {
  uint64_t memory = 0;  // bytes that it may take
};

struct ReaderTask {
  enum class What : uint32_t {
    kInspect,
    kLinks,
    kChecksum,
    kSymbols,
    kSources,
    kUnwind,
    kCode,
    kRepeats,
    kPerfMap,
    kJitDump,
  };
  What what = What::kInspect;
  // Which other files come, in this order.
  static constexpr uint32_t kDebugFile = 1;
  static constexpr uint32_t kAlternate = 2;
  uint32_t others = 0;
  uint64_t cpu_ms = 0;       // that it may take
  uint64_t value_bytes = 0;  // that follow
};

// One end of a conversation. One thread.
class ReaderChannel {
 public:
  static constexpr size_t kMostOfOne = size_t{60} << 10;  // bytes after the kind

  struct Message {
    ReaderMessage kind = ReaderMessage::kFailed;
    std::span<const std::byte> bytes;  // until the next call
    UniqueFd attached;
  };

  explicit ReaderChannel(MessageSocket socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.fd(); }

  // REQUIRES: at most kMostOfOne bytes.
  Result<void> Send(ReaderMessage kind, std::span<const std::byte> bytes = {},
                    int attached = -1) const;
  // The same in as many messages as it takes; none for no bytes.
  Result<void> SendAll(ReaderMessage kind, std::span<const std::byte> bytes) const;
  // A value, with kDone: of a small one the other end wakes up once.
  Result<void> SendAndEnd(std::span<const std::byte> value) const;
  template <Flat T>
  Result<void> SendOne(ReaderMessage kind, const T& value, int attached = -1) const {
    return Send(kind, std::as_bytes(std::span(&value, 1)), attached);
  }
  // kFailed, for this reason.
  Result<void> SendFailure(const Error& error) const;

  // Waits for the next one. Errors: kIo if the other end is closed; kMalformed.
  Result<Message> Receive();
  bool WaitUntilReadable(std::chrono::nanoseconds at_most) const {
    return socket_.WaitUntilReadable(at_most);
  }
  bool IsClosed() const { return socket_.IsClosed(); }

 private:
  MessageSocket socket_;
  std::vector<std::byte> buffer_;
};

// What kFailed says: printable, and one of the codes that a file may be the reason for.
Error FailureIn(std::span<const std::byte> bytes);

void Write(const ObjectFacts& facts, FlatWriter& out);
void Write(const DebugLinks& links, FlatWriter& out);
void Write(const Reading& reading, FlatWriter& out);
void Write(const SymbolTable::Layout& layout, FlatWriter& out);
void Write(const UnwindTable& table, FlatWriter& out);  // but its rows and its digest
void Write(const PerfMapPart& part, FlatWriter& out);
void Write(const PerfMapLines& lines, FlatWriter& out);
void Write(const std::optional<PerfMapFunction>& function, FlatWriter& out);
void Write(const JitDumpPart& part, FlatWriter& out);
void Write(const JitDumpRecords& records, FlatWriter& out);

// What is read is checked as far as its users rely on it. Else the reader has failed.
ObjectFacts ReadFacts(FlatReader& in);
DebugLinks ReadLinks(FlatReader& in);
Reading ReadReading(FlatReader& in);
SymbolTable::Layout ReadLayout(FlatReader& in);
// `rows`: what was sent of rows; `largest_rule` is the largest that one of them has.
struct SentRows {
  uint64_t count = 0;
  uint16_t largest_rule = 0;
};
UnwindTable ReadTable(FlatReader& in, const SentRows& rows);
PerfMapPart ReadPerfMapPart(FlatReader& in);
// Names stay where they lie, functions in `functions`.
PerfMapLines ReadPerfMapLines(FlatReader& in, std::vector<PerfMapLines::Function>& functions);
std::optional<PerfMapFunction> ReadPerfMapFunction(FlatReader& in);
JitDumpPart ReadJitDumpPart(FlatReader& in);
// What records refer to. Their texts stay where they lie.
struct SentJitRecords {
  std::vector<JitDumpRecords::Record> records;
  std::deque<std::vector<JitLine>> lines;  // of one each
  std::deque<std::vector<std::string_view>> files;
};
JitDumpRecords ReadJitDumpRecords(FlatReader& in, SentJitRecords& sent);

}  // namespace pyrometer
