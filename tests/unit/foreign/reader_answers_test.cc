// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_answers.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using Bytes = std::vector<std::byte>;

// Messages as a reader would send them that a file has taken over.
class Lies : public AnswerMessages {
 public:
  void Add(ReaderMessage kind, Bytes bytes = {}) { lies_.emplace_back(kind, std::move(bytes)); }

  Result<ReaderChannel::Message> Next() override {
    if (lies_.empty()) return Fail(ErrorCode::kIo, "no more");
    last_ = std::move(lies_.front());
    lies_.pop_front();
    ReaderChannel::Message message;
    message.kind = last_.first;
    message.bytes = last_.second;
    return message;
  }

 private:
  std::deque<std::pair<ReaderMessage, Bytes>> lies_;
  std::pair<ReaderMessage, Bytes> last_;
};

template <typename T>
Bytes BytesOf(const T& value) {
  FlatWriter out;
  Write(value, out);
  return {out.bytes().begin(), out.bytes().end()};
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(ReaderAnswers, AreNoneOfAnotherKind) {
  for (const auto kind : {ReaderMessage::kSetup, ReaderMessage::kReady, ReaderMessage::kTask,
                          ReaderMessage::kOtherFile, static_cast<ReaderMessage>(99)}) {
    Lies lies;
    lies.Add(kind);
    EXPECT_EQ(ReceiveFacts(lies).error().code(), ErrorCode::kMalformed);
  }
  Lies bulk;
  bulk.Add(ReaderMessage::kBulk, Bytes(8));
  EXPECT_EQ(ReceiveRepeats(bulk).error().code(), ErrorCode::kMalformed) << "of a yes or no";
}

TEST(ReaderAnswers, SayYesOrNo) {
  for (const int said : {0, 1, 2}) {
    Lies lies;
    lies.Add(ReaderMessage::kValue, Bytes(1, static_cast<std::byte>(said)));
    lies.Add(ReaderMessage::kDone);
    const Result<bool> repeats = ReceiveRepeats(lies);
    ASSERT_EQ(repeats.has_value(), said < 2);
    EXPECT_EQ(repeats.value_or(false), said == 1);
  }
}

TEST(ReaderAnswers, EndWhenTheyAreLargerThanAnyValue) {
  Lies lies;
  for (int i = 0; i < 200; ++i) lies.Add(ReaderMessage::kValue, Bytes(size_t{60} << 10));
  EXPECT_EQ(ReceiveFacts(lies).error().code(), ErrorCode::kMalformed);
}

TEST(ReaderAnswers, HaveRowsThatTheirTableKnows) {
  const auto receive = [](uint32_t rows_said, size_t rows_sent, uint8_t rule) {
    pyro_unwind_row row{};
    row.rule = rule;
    Bytes rows;
    for (size_t i = 0; i < rows_sent; ++i) {
      const auto bytes = std::as_bytes(std::span(&row, 1));
      rows.insert(rows.end(), bytes.begin(), bytes.end());
    }
    UnwindTable table;
    table.pages = {{.first_row = 0, .row_count = rows_said}};
    table.rules.resize(1);
    Lies lies;
    lies.Add(ReaderMessage::kBulk, rows);
    lies.Add(ReaderMessage::kValue, BytesOf(table) + BytesOf(Reading()));
    lies.Add(ReaderMessage::kDone);
    return ReceiveTable(lies, nullptr);
  };
  ASSERT_TRUE(receive(2, 2, 0).has_value());
  EXPECT_EQ(receive(2, 2, 0)->value.rows.size(), 2U);
  EXPECT_FALSE(receive(3, 2, 0).has_value());
  EXPECT_FALSE(receive(1, 2, 0).has_value());
  EXPECT_FALSE(receive(2, 2, 1).has_value()) << "a rule that is not there";
}

TEST(ReaderAnswers, HaveSymbolsThatFitTheirBytes) {
  const auto receive = [](const SymbolTable::Layout& layout, size_t bytes) {
    Lies lies;
    if (bytes > 0) lies.Add(ReaderMessage::kBulk, Bytes(bytes, std::byte{'a'}));
    lies.Add(ReaderMessage::kValue, BytesOf(layout) + BytesOf(Reading()));
    lies.Add(ReaderMessage::kDone);
    return ReceiveSymbols(lies, {});
  };
  EXPECT_TRUE(receive({}, 0).has_value());
  EXPECT_FALSE(receive({.size = 1}, 0).has_value());
  EXPECT_FALSE(receive({.size = ~uint64_t{0}, .entries_at = 16}, 32).has_value());
  EXPECT_FALSE(receive({.size = 1, .entries_at = ~uint64_t{0}}, 32).has_value());
  EXPECT_FALSE(receive({.size = 1, .entries_at = 8}, 32).has_value());
  // Whose entries point wherever they like.
  const auto lying = receive({.base = 0, .size = 2, .entries_at = 8, .has_names = true}, 40);
  ASSERT_TRUE(lying.has_value()) << lying.error().message();
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x61616161}, uint64_t{0xc2c2c2c1}}) {
    lying->value.Find(ElfAddress(address));
  }
}

// What of a perf map's bytes 100 to 200 is believed, if a reader says `lines` and then `last`.
Result<std::optional<PerfMapFunction>> ReceivePerfMapOf(
    const std::vector<PerfMapLines>& said, const std::optional<PerfMapFunction>& last = {},
    PerfMapSink sink = [](const PerfMapLines&) {}) {
  Lies lies;
  for (const PerfMapLines& lines : said) lies.Add(ReaderMessage::kBulk, BytesOf(lines));
  lies.Add(ReaderMessage::kDone, BytesOf(last));
  return ReceivePerfMap(lies, {.begin = 100, .end = 200}, sink);
}

TEST(ReaderAnswers, HaveLinesThatTheirBytesCanHold) {
  const PerfMapLines::Function f{0x1000, 0x1010, "f"};
  const std::vector<PerfMapLines::Function> many(16, f);
  std::vector<uint64_t> ends;
  const auto note = [&](const PerfMapLines& lines) { ends.push_back(lines.end); };
  EXPECT_TRUE(ReceivePerfMapOf({}).has_value());
  EXPECT_TRUE(ReceivePerfMapOf({{.functions = many, .bad = 3, .end = 199}, {.bad = 1, .end = 200}},
                               {}, note)
                  .has_value());
  EXPECT_EQ(ends, (std::vector<uint64_t>{199, 200}));
  const std::vector<PerfMapLines::Function> too_many(17, f);
  EXPECT_FALSE(ReceivePerfMapOf({{.functions = too_many, .end = 200}}).has_value());
  EXPECT_FALSE(ReceivePerfMapOf({{.functions = many, .bad = 5, .end = 200}}).has_value());
  EXPECT_FALSE(ReceivePerfMapOf({{.bad = ~uint64_t{0}, .end = 200}}).has_value());
  EXPECT_FALSE(ReceivePerfMapOf({{.end = 100}}).has_value()) << "no bytes";
  EXPECT_FALSE(ReceivePerfMapOf({{.end = 201}}).has_value());
  EXPECT_FALSE(ReceivePerfMapOf({{.end = 150}, {.end = 150}}).has_value());
  EXPECT_FALSE(ReceivePerfMapOf({{.end = 150}, {.end = 110}}).has_value());
}

TEST(ReaderAnswers, HaveFunctionsOfPerfMapsWithPrintableNames) {
  const auto is_believed = [](const PerfMapFunction& f) {
    const PerfMapLines::Function function{f.start, f.end, f.name};
    const bool in_lines =
        ReceivePerfMapOf({{.functions = std::span(&function, 1), .end = 200}}).has_value();
    EXPECT_EQ(ReceivePerfMapOf({}, f).has_value(), in_lines) << "as the last line";
    return in_lines;
  };
  EXPECT_TRUE(is_believed({0, ~uint64_t{0}, std::string(kMostOfPerfMapName, 'x')}));
  EXPECT_FALSE(is_believed({0, 1, std::string(kMostOfPerfMapName + 1, 'x')}));
  EXPECT_FALSE(is_believed({0, 1, ""}));
  EXPECT_FALSE(is_believed({0, 1, "\x1b[31m"}));
  EXPECT_FALSE(is_believed({1, 1, "empty"}));
  EXPECT_FALSE(is_believed({2, 1, "backwards"}));
}

// What of a jitdump's bytes 100 to 260 is believed, if a reader says that.
Result<bool> ReceiveJitDumpOf(
    const std::vector<JitDumpRecords>& said, const Bytes& last = Bytes(1),
    JitDumpSink sink = [](const JitDumpRecords&) {}) {
  Lies lies;
  for (const JitDumpRecords& records : said) lies.Add(ReaderMessage::kBulk, BytesOf(records));
  lies.Add(ReaderMessage::kDone, last);
  return ReceiveJitDump(lies, {.begin = 100, .end = 260}, sink);
}

TEST(ReaderAnswers, HaveRecordsThatTheirBytesCanHold) {
  const JitDumpRecords::Record f{.start = 0x1000, .size = 0x10, .name = "f"};
  const std::vector<JitDumpRecords::Record> many(9, f);
  std::vector<uint64_t> ends;
  const auto note = [&](const JitDumpRecords& records) { ends.push_back(records.end); };
  EXPECT_EQ(ReceiveJitDumpOf({}).value(), false);
  EXPECT_EQ(ReceiveJitDumpOf({}, Bytes(1, std::byte{1})).value(), true);
  EXPECT_FALSE(ReceiveJitDumpOf({}, Bytes(1, std::byte{2})).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({}, Bytes(2)).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({}, {}).has_value());
  EXPECT_TRUE(ReceiveJitDumpOf({{.records = many, .bad = 18, .lines_left_out = 8, .end = 244},
                                {.read = uint64_t{1} << 20, .end = 260}},
                               Bytes(1), note)
                  .has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.read = ~uint64_t{0}, .end = 260}}).has_value());
  EXPECT_EQ(ends, (std::vector<uint64_t>{244, 260}));
  EXPECT_FALSE(ReceiveJitDumpOf({{.records = many, .end = 243}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.bad = 19, .end = 244}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.lines_left_out = 9, .end = 244}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.lines_left_out = ~uint64_t{0}, .end = 244}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.end = 100}}).has_value()) << "no bytes";
  EXPECT_FALSE(ReceiveJitDumpOf({{.end = 261}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.end = 150}, {.end = 150}}).has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.end = 150}, {.end = 110}}).has_value());
  const std::string_view file = "a.js";
  const std::vector<JitLine> lines(6);
  const JitDumpRecords::Record with_lines{
      .start = 0x1000, .size = 0x10, .name = "f", .lines = lines, .files = {&file, 1}};
  EXPECT_TRUE(ReceiveJitDumpOf({{.records = {&with_lines, 1}, .lines_left_out = 3, .end = 260}})
                  .has_value());
  EXPECT_FALSE(ReceiveJitDumpOf({{.records = {&with_lines, 1}, .lines_left_out = 4, .end = 260}})
                   .has_value());
}

TEST(ReaderAnswers, HaveRecordsOfJitDumpsWithTheForm) {
  const auto is_believed = [](const JitDumpRecords::Record& record) {
    return ReceiveJitDumpOf({{.records = {&record, 1}, .end = 260}}).has_value();
  };
  const auto name = [](std::string_view text) {
    return JitDumpRecords::Record{.start = 1, .size = 1, .name = text};
  };
  EXPECT_TRUE(is_believed(name("")));
  EXPECT_TRUE(is_believed(name(std::string(kMostOfJitName, 'x'))));
  EXPECT_FALSE(is_believed(name(std::string(kMostOfJitName + 1, 'x'))));
  EXPECT_FALSE(is_believed(name("\x1b[31m")));
  const uint64_t last = ~uint64_t{0};
  EXPECT_TRUE(is_believed({.start = last - 5, .size = 5}));
  EXPECT_FALSE(is_believed({.start = last - 5, .size = 6}));
  EXPECT_FALSE(is_believed({.start = 5, .size = 0}));
  EXPECT_FALSE(is_believed({.start = 5, .size = uint64_t{1} << 32}));
  using Kind = JitDumpRecords::Record::Kind;
  EXPECT_TRUE(is_believed({.kind = Kind::kMove, .start = 5, .old_start = last, .size = 5}));
  EXPECT_FALSE(is_believed({.kind = Kind::kMove, .start = 5, .size = 5, .name = "f"}));
  EXPECT_FALSE(is_believed({.kind = static_cast<Kind>(2), .start = 5, .size = 5}));

  const auto lines = [&](const std::vector<JitLine>& of,
                         const std::vector<std::string_view>& files) {
    return is_believed({.start = 1, .size = 16, .name = "f", .lines = of, .files = files});
  };
  EXPECT_TRUE(lines({{0, 1, 0}, {16, 2, 1}, {16, 0, 99}}, {"a", "b"}));
  EXPECT_FALSE(lines({{0, 1, 2}}, {"a", "b"})) << "no such file";
  EXPECT_FALSE(lines({{0, 1, 0}}, {}));
  EXPECT_FALSE(lines({{17, 1, 0}}, {"a"})) << "behind the code";
  EXPECT_FALSE(lines({{2, 1, 0}, {1, 1, 0}}, {"a"})) << "not in order";
  EXPECT_FALSE(lines({}, {""}));
  EXPECT_FALSE(lines({}, {"\n"}));
  EXPECT_FALSE(lines({}, {std::string(kMostOfJitName + 1, 'x')}));
  EXPECT_TRUE(lines({}, std::vector<std::string_view>(kMostJitFiles, "a")));
  EXPECT_FALSE(lines({}, std::vector<std::string_view>(kMostJitFiles + 1, "a")));
}

}  // namespace
}  // namespace pyrometer
