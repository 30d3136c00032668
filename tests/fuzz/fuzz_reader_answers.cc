// SPDX-License-Identifier: Apache-2.0
// What a reader of foreign files answers that a file has taken over: the first byte is the
// question, and then come messages of a kind, a size of two bytes and so many bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/printable.h"
#include "foreign/reader_answers.h"
#include "unwind/exotic.h"

namespace pyrometer {
namespace {

class Messages : public AnswerMessages {
 public:
  explicit Messages(std::span<const std::byte> bytes) : rest_(bytes) {}

  Result<ReaderChannel::Message> Next() override {
    constexpr size_t kHeader = 3;
    if (rest_.size() < kHeader) return Fail(ErrorCode::kIo, "the reader has died");
    ReaderChannel::Message message;
    message.kind = static_cast<ReaderMessage>(rest_[0]);
    uint16_t size = 0;
    std::memcpy(&size, &rest_[1], sizeof(size));
    rest_ = rest_.subspan(kHeader);
    message.bytes = rest_.first(std::min<size_t>(size, rest_.size()));
    rest_ = rest_.subspan(message.bytes.size());
    return message;
  }

 private:
  std::span<const std::byte> rest_;
};

void UseTable(Messages& messages) {
  const Result<Made<UnwindTable>> made = ReceiveTable(messages, nullptr);
  if (!made) return;
  const UnwindTable& table = made->value;
  std::vector<pyro_unwind_row> buffer;
  for (size_t page = 0; page < table.pages.size(); ++page) {
    table.RowsOf(page, buffer);
    table.RuleAt(ElfAddress((table.first_page + page) << 16 | 0x1234));
  }
  // In the process that believes nothing, as the thread of a profiled program stood.
  KnownRegisters registers;
  for (size_t i = 0; i < kCfiRegisters; ++i) registers.Set(static_cast<uint8_t>(i), 0x1000 * i);
  const MemoryReader memory = [](Address at, std::span<std::byte> out) {
    std::ranges::fill(out, static_cast<std::byte>(at.value()));
    return at.value() % 7 != 0;
  };
  for (const pyro_unwind_rule& rule : table.rules) {
    if (rule.kind != PYRO_RULE_EXOTIC) continue;
    const ExoticRule& exotic = table.exotic.at(rule.cfa_offset);
    if (exotic.registers.size() > 256) __builtin_trap();
    for (const Machine machine : {kAmd64, kArm64}) {
      UnwindExotic(exotic, machine, registers, Address(0x4000), memory).has_value();
    }
  }
}

void UseSymbols(Messages& messages) {
  const Result<Made<SymbolTable>> made = ReceiveSymbols(messages, {});
  if (!made) return;
  const uint64_t base = made->value.layout().base;
  for (uint64_t offset = 0; offset < uint64_t{1} << 33; offset = offset * 3 + 1) {
    made->value.Find(ElfAddress(base + offset));
    if (made->value.LinesAt(ElfAddress(base + offset)).size() > 17) __builtin_trap();
  }
}

void UsePerfMap(Messages& messages) {
  uint64_t at = 0;
  const auto check = [&](const PerfMapLines& lines) {
    if (lines.end <= at || lines.end > 100'000) __builtin_trap();
    at = lines.end;
    for (const auto& [start, end, name] : lines.functions) {
      if (start >= end || !IsPrintable(name)) __builtin_trap();
    }
  };
  ReceivePerfMap(messages, {.end = 100'000}, check).has_value();
}

void UseJitDump(Messages& messages) {
  uint64_t at = 0;
  const auto check = [&](const JitDumpRecords& records) {
    if (records.end <= at || records.end > 100'000) __builtin_trap();
    at = records.end;
    for (const JitDumpRecords::Record& record : records.records) {
      if (record.start + record.size <= record.start || !IsPrintable(record.name)) {
        __builtin_trap();
      }
      for (const JitLine& line : record.lines) {
        if (line.line != 0 && !IsPrintable(record.files[line.file])) __builtin_trap();
      }
    }
  };
  ReceiveJitDump(messages, {.end = 100'000}, check).has_value();
}

}  // namespace
}  // namespace pyrometer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pyrometer;
  if (size == 0) return 0;
  Messages messages(std::as_bytes(std::span(data, size)).subspan(1));
  switch (data[0] % 7) {
    case 0:
      ReceiveFacts(messages).has_value();
      break;
    case 1:
      UseSymbols(messages);
      break;
    case 2:
      UseTable(messages);
      break;
    case 3:
      ReceiveCode(messages).has_value();
      break;
    case 4:
      UsePerfMap(messages);
      break;
    case 5:
      UseJitDump(messages);
      break;
    default:
      ReceiveRepeats(messages).has_value();
  }
  return 0;
}
