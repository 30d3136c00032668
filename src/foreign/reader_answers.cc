// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_answers.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "base/spilled_bytes.h"

namespace pyrometer {
namespace {

using Bytes = std::span<const std::byte>;

// Above the largest: a table with as many rules as there may be, and a reading of as many pieces.
constexpr size_t kMostOfValue = size_t{8} << 20;

Error Lie() {
  return Fail(ErrorCode::kMalformed, "what reads foreign files gives no answer that makes sense");
}

// Passes the bulk on, and returns the value.
Result<std::vector<std::byte>> Receive(AnswerMessages& messages,
                                       absl::FunctionRef<Result<void>(Bytes)> on_bulk) {
  std::vector<std::byte> value;
  while (true) {
    ASSIGN_OR_RETURN(const ReaderChannel::Message message, messages.Next());
    switch (message.kind) {
      case ReaderMessage::kBulk:
        RETURN_IF_ERROR(on_bulk(message.bytes));
        break;
      case ReaderMessage::kValue:
      case ReaderMessage::kDone:
        if (message.bytes.size() > kMostOfValue - value.size()) return Lie();
        value.insert(value.end(), message.bytes.begin(), message.bytes.end());
        if (message.kind == ReaderMessage::kDone) return value;
        if (message.bytes.empty()) return Lie();
        break;
      case ReaderMessage::kFailed:
        return FailureIn(message.bytes);
      default:
        return Lie();
    }
  }
}

Result<std::vector<std::byte>> ReceiveValue(AnswerMessages& messages) {
  return Receive(messages, [](Bytes) -> Result<void> { return Lie(); });
}

Result<bool> YesOrNo(Bytes value) {
  FlatReader in(value);
  const auto answer = in.Get<uint8_t>();
  if (!in.ended() || answer > 1) return Lie();
  return answer == 1;
}

// Passes rows on, or keeps them.
class RowReceiver {
 public:
  explicit RowReceiver(RowSink* sink) : sink_(sink) {}

  Result<void> Take(Bytes bytes) {
    const size_t count = bytes.size() / sizeof(pyro_unwind_row);
    if (count == 0 || bytes.size() % sizeof(pyro_unwind_row) != 0 ||
        count > UnwindTable::kMostRows - sent_.count) {
      return Lie();
    }
    block_.resize(count);
    std::memcpy(block_.data(), bytes.data(), bytes.size());
    for (const pyro_unwind_row& row : block_) {
      sent_.largest_rule = std::max(sent_.largest_rule, uint16_t{row.rule});
    }
    sent_.count += count;
    digest_ = absl::HashOf(digest_, absl::MakeConstSpan(bytes.data(), bytes.size()));
    if (sink_ != nullptr) {
      sink_->Put(block_);
    } else {
      rows_.insert(rows_.end(), block_.begin(), block_.end());
    }
    return {};
  }

  const SentRows& sent() const { return sent_; }
  // Of all of them.
  uint64_t digest() const { return digest_; }
  std::vector<pyro_unwind_row> TakeRows() { return std::move(rows_); }

 private:
  RowSink* const sink_;
  SentRows sent_;
  uint64_t digest_ = 0;
  std::vector<pyro_unwind_row> block_;
  std::vector<pyro_unwind_row> rows_;
};

// As what a reader says of it may be another table's.
uint64_t DigestOf(const UnwindTable& table, uint64_t rows) {
  static_assert(std::has_unique_object_representations_v<UnwindTable::Page> &&
                std::has_unique_object_representations_v<pyro_unwind_rule>);
  const auto bytes = [](auto span) {
    const auto as_bytes = std::as_bytes(std::span(span));
    return absl::MakeConstSpan(as_bytes.data(), as_bytes.size());
  };
  return absl::HashOf(rows, table.first_page, bytes(std::span(table.pages)),
                      bytes(std::span(table.rules)));
}

}  // namespace

Result<ObjectFacts> ReceiveFacts(AnswerMessages& messages) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ReceiveValue(messages));
  FlatReader in(value);
  ObjectFacts facts = ReadFacts(in);
  if (!in.ended()) return Lie();
  return facts;
}

Result<DebugLinks> ReceiveLinks(AnswerMessages& messages) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ReceiveValue(messages));
  FlatReader in(value);
  DebugLinks links = ReadLinks(in);
  if (!in.ended()) return Lie();
  return links;
}

Result<uint32_t> ReceiveChecksum(AnswerMessages& messages) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ReceiveValue(messages));
  FlatReader in(value);
  const auto checksum = in.Get<uint32_t>();
  if (!in.ended()) return Lie();
  return checksum;
}

Result<bool> ReceiveRepeats(AnswerMessages& messages) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ReceiveValue(messages));
  return YesOrNo(value);
}

Result<std::vector<std::byte>> ReceiveCode(AnswerMessages& messages) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ReceiveValue(messages));
  FlatReader in(value);
  std::vector<std::byte> code = in.GetAll<std::byte>(Indexer::kMostOfCode);
  if (!in.ended()) return Lie();
  return code;
}

Result<std::optional<PerfMapFunction>> ReceivePerfMap(AnswerMessages& messages,
                                                      const PerfMapPart& part, PerfMapSink sink) {
  uint64_t at = part.begin;
  std::vector<PerfMapLines::Function> functions;
  const auto take = [&](Bytes bytes) -> Result<void> {
    FlatReader in(bytes);
    const PerfMapLines lines = ReadPerfMapLines(in, functions);
    if (!in.ended() || lines.end <= at || lines.end > part.end) return Lie();
    // As few lines as their bytes can be, so that time is bounded.
    const uint64_t most = lines.end - at;
    if (lines.bad > most || functions.size() > (most - lines.bad) / kLeastPerfMapLine) return Lie();
    at = lines.end;
    sink(lines);
    return {};
  };
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, Receive(messages, take));
  FlatReader in(value);
  std::optional<PerfMapFunction> last = ReadPerfMapFunction(in);
  if (!in.ended()) return Lie();
  return last;
}

Result<bool> ReceiveJitDump(AnswerMessages& messages, const JitDumpPart& part, JitDumpSink sink) {
  // Beyond what was to be read: one record, which may have many long lines, and what lies near by.
  constexpr uint64_t kMostBeyond = uint64_t{64} << 20;
  uint64_t at = part.begin;
  uint64_t to_read = std::min(part.to_read, uint64_t{1} << 62) + kMostBeyond;
  SentJitRecords sent;
  const auto take = [&](Bytes bytes) -> Result<void> {
    FlatReader in(bytes);
    const JitDumpRecords records = ReadJitDumpRecords(in, sent);
    if (!in.ended() || records.end <= at || records.end > part.end) return Lie();
    // As few as their bytes can be, so that time is bounded; code may be bad, and its lines, too.
    const uint64_t most = (records.end - at) / kLeastJitRecord;
    uint64_t lines = 0;
    for (const JitDumpRecords::Record& record : records.records) lines += record.lines.size();
    const uint64_t most_lines = (records.end - at) / kLeastJitLine;
    if (records.records.size() > most || records.bad > 2 * most || lines > most_lines ||
        records.lines_left_out > most_lines - lines) {
      return Lie();
    }
    if (records.read > to_read) return Lie();
    to_read -= records.read;
    at = records.end;
    sink(records);
    return {};
  };
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, Receive(messages, take));
  return YesOrNo(value);
}

Result<Made<UnwindTable>> ReceiveTable(AnswerMessages& messages, RowSink* rows) {
  RowReceiver receiver(rows);
  ASSIGN_OR_RETURN(const std::vector<std::byte> value,
                   Receive(messages, [&](Bytes bytes) { return receiver.Take(bytes); }));
  FlatReader in(value);
  Made<UnwindTable> made;
  made.value = ReadTable(in, receiver.sent());
  made.reading = ReadReading(in);
  if (!in.ended()) return Lie();
  made.value.digest = DigestOf(made.value, receiver.digest());
  made.value.rows = receiver.TakeRows();
  return made;
}

Result<Made<SymbolTable>> ReceiveSymbols(AnswerMessages& messages,
                                         const SymbolTableOptions& options) {
  const std::shared_ptr<SpilledBytes> bytes = options.Storage();
  // In larger pieces than messages are: each costs the spill file a write, and memory.
  std::vector<std::byte> block;
  const auto flush = [&]() -> Result<void> {
    if (bytes->Put(block)) {
      block.clear();
      return {};
    }
    return Fail(ErrorCode::kExhausted, "no room for the names of functions");
  };
  constexpr size_t kBlock = size_t{256} << 10;
  ASSIGN_OR_RETURN(const std::vector<std::byte> value,
                   Receive(messages, [&](Bytes part) -> Result<void> {
                     block.insert(block.end(), part.begin(), part.end());
                     return block.size() < kBlock ? Result<void>() : flush();
                   }));
  RETURN_IF_ERROR(flush());
  FlatReader in(value);
  const SymbolTable::Layout layout = ReadLayout(in);
  Reading reading = ReadReading(in);
  if (!in.ended()) return Lie();
  ASSIGN_OR_RETURN(SymbolTable table, SymbolTable::From(layout, bytes));
  return Made<SymbolTable>{.value = std::move(table), .reading = std::move(reading)};
}

}  // namespace pyrometer
