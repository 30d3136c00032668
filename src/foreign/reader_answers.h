// SPDX-License-Identifier: Apache-2.0
// Answers of readers, whom nobody believes: whatever they say does no harm beyond what they were
// asked for.
#pragma once

#include <optional>
#include <vector>

#include "foreign/indexer.h"
#include "foreign/reader_messages.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The messages of one answer.
class AnswerMessages {
 public:
  virtual ~AnswerMessages() = default;
  // The next one, which lasts until the call after. Errors: there is none.
  virtual Result<ReaderChannel::Message> Next() = 0;
};

// Each takes all messages of an answer. Errors: those of `messages`; what a kFailed says;
// kMalformed if it is no answer to that question.
Result<ObjectFacts> ReceiveFacts(AnswerMessages& messages);
Result<DebugLinks> ReceiveLinks(AnswerMessages& messages);
Result<uint32_t> ReceiveChecksum(AnswerMessages& messages);
Result<bool> ReceiveRepeats(AnswerMessages& messages);
Result<std::vector<std::byte>> ReceiveCode(AnswerMessages& messages);
Result<Made<UnwindTable>> ReceiveTable(AnswerMessages& messages, RowSink* rows);
// Of `part`. Gives `sink` lines as they come.
Result<std::optional<PerfMapFunction>> ReceivePerfMap(AnswerMessages& messages,
                                                      const PerfMapPart& part, PerfMapSink sink);
// The same of a jitdump.
Result<bool> ReceiveJitDump(AnswerMessages& messages, const JitDumpPart& part, JitDumpSink sink);
// kExhausted, too, if there is no room for the table.
Result<Made<SymbolTable>> ReceiveSymbols(AnswerMessages& messages,
                                         const SymbolTableOptions& options);

}  // namespace pyrometer
