// SPDX-License-Identifier: Apache-2.0
#include "foreign/reader_messages.h"

#include <gtest/gtest.h>

#include <string>

namespace pyrometer {
namespace {

TEST(FlatReader, EndsWhereTheBytesDo) {
  FlatWriter out;
  out.Put(uint32_t{7});
  FlatReader in(out.bytes());
  EXPECT_FALSE(in.ended());
  EXPECT_EQ(in.Get<uint32_t>(), 7U);
  EXPECT_TRUE(in.ended());
  EXPECT_EQ(in.Get<uint8_t>(), 0U);
  EXPECT_FALSE(in.ok());
  EXPECT_FALSE(in.ended());
}

TEST(FlatReader, BelievesNoNumberOfElements) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 61, ~uint64_t{0}}) {
    FlatWriter out;
    out.Put(count);
    out.Put(uint64_t{1});
    out.Put(uint64_t{2});
    FlatReader in(out.bytes());
    EXPECT_TRUE(in.GetAll<uint64_t>(~size_t{0}).empty());
    EXPECT_FALSE(in.ok());
  }
  FlatWriter out;
  out.PutAll(std::span<const uint64_t>(std::vector<uint64_t>(3)));
  FlatReader in(out.bytes());
  EXPECT_TRUE(in.GetAll<uint64_t>(2).empty()) << "more than are allowed";
  EXPECT_FALSE(in.ok());
}

template <typename T, typename ReadT>
void ExpectRefusedWhenCut(const T& value, ReadT read) {
  FlatWriter out;
  Write(value, out);
  for (size_t size = 0; size < out.bytes().size(); ++size) {
    FlatReader in(out.bytes().first(size));
    read(in);
    EXPECT_FALSE(in.ended()) << size;
  }
}

ObjectFacts SomeFacts() {
  ObjectFacts facts;
  facts.build_id = BuildId(std::vector<std::byte>(20, std::byte{0xab}));
  facts.segments = {{.offset = FileOffset(0x1000),
                     .address = ElfAddress(0x401000),
                     .file_size = 0x234,
                     .memory_size = 0x2345,
                     .executable = true},
                    {.offset = FileOffset(0x3000), .address = ElfAddress(0x403000)}};
  return facts;
}

TEST(ReaderMessages, CarryFacts) {
  const ObjectFacts facts = SomeFacts();
  FlatWriter out;
  Write(facts, out);
  FlatReader in(out.bytes());
  const ObjectFacts read = ReadFacts(in);
  EXPECT_TRUE(in.ended());
  EXPECT_EQ(read.build_id, facts.build_id);
  ASSERT_EQ(read.segments.size(), 2U);
  EXPECT_EQ(read.segments[0].offset, facts.segments[0].offset);
  EXPECT_EQ(read.segments[0].address, facts.segments[0].address);
  EXPECT_EQ(read.segments[0].file_size, 0x234U);
  EXPECT_EQ(read.segments[0].memory_size, 0x2345U);
  EXPECT_TRUE(read.segments[0].executable);
  EXPECT_FALSE(read.segments[1].executable);
  ExpectRefusedWhenCut(facts, ReadFacts);
}

TEST(ReaderMessages, CarryLinksThatLeadNowhereElse) {
  const DebugLinks links{
      .has_debug_info = true,
      .debug_file = DebugLink{.name = "program.debug", .checksum = 0xcafe},
      .alternate = AlternateLink{.name = "../.dwz/common", .build_id = SomeFacts().build_id},
      .as_alternate = SomeFacts().build_id};
  const auto carry = [](const DebugLinks& sent) {
    FlatWriter out;
    Write(sent, out);
    FlatReader in(out.bytes());
    DebugLinks read = ReadLinks(in);
    EXPECT_TRUE(in.ended());
    return read;
  };
  const DebugLinks read = carry(links);
  EXPECT_TRUE(read.has_debug_info);
  ASSERT_TRUE(read.debug_file.has_value());
  EXPECT_EQ(read.debug_file->name, "program.debug");
  EXPECT_EQ(read.debug_file->checksum, 0xcafeU);
  ASSERT_TRUE(read.alternate.has_value());
  EXPECT_EQ(read.alternate->name, "../.dwz/common");
  EXPECT_EQ(read.alternate->build_id, SomeFacts().build_id);
  EXPECT_EQ(read.as_alternate, SomeFacts().build_id);
  for (const std::string& name :
       {std::string(), std::string(".."), std::string("../etc/shadow"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(carry({.debug_file = DebugLink{.name = name}}).debug_file.has_value());
  }
  ExpectRefusedWhenCut(links, ReadLinks);
}

TEST(ReaderMessages, CarryReadings) {
  const Reading reading{.sizes = {100, 200},
                        .pieces = {{.file = 0, .offset = 1, .size = 2}, {.file = 1, .offset = 3}},
                        .digest = {.low = 5, .high = 6},
                        .is_complete = false};
  FlatWriter out;
  Write(reading, out);
  FlatReader in(out.bytes());
  const Reading read = ReadReading(in);
  EXPECT_TRUE(in.ended());
  EXPECT_EQ(read.sizes, reading.sizes);
  ASSERT_EQ(read.pieces.size(), 2U);
  EXPECT_EQ(read.pieces[1].file, 1U);
  EXPECT_EQ(read.pieces[1].offset, 3U);
  EXPECT_TRUE(read.digest == reading.digest);
  EXPECT_FALSE(read.is_complete);
  ExpectRefusedWhenCut(reading, ReadReading);

  Reading lie = reading;
  lie.pieces[1].file = 2;
  FlatWriter of_lie;
  Write(lie, of_lie);
  FlatReader in_lie(of_lie.bytes());
  ReadReading(in_lie);
  EXPECT_FALSE(in_lie.ok()) << "a file that there is not";
}

UnwindTable SomeTable() {
  UnwindTable table;
  table.first_page = 4;
  table.pages = {{.first_row = 0, .row_count = 2}, {.first_row = 2, .row_count = 1}};
  table.rules.resize(2);
  table.rules[1].kind = PYRO_RULE_EXOTIC;
  RegisterRule expression;
  expression.kind = RegisterRule::Kind::kValueExpression;
  expression.expression = {std::byte{1}, std::byte{2}};
  table.exotic.push_back(
      {.cfa = expression, .registers = {{.reg = 3, .rule = {}}}, .return_address = 16});
  table.text = 1000;
  return table;
}

TEST(ReaderMessages, CarryTables) {
  const UnwindTable table = SomeTable();
  FlatWriter out;
  Write(table, out);
  FlatReader in(out.bytes());
  const UnwindTable read = ReadTable(in, {.count = 3, .largest_rule = 1});
  EXPECT_TRUE(in.ended());
  EXPECT_EQ(read.first_page, 4U);
  ASSERT_EQ(read.pages.size(), 2U);
  EXPECT_EQ(read.pages[1].first_row, 2U);
  EXPECT_EQ(read.rules.size(), 2U);
  EXPECT_EQ(read.exotic, table.exotic);
  EXPECT_EQ(read.text, 1000U);
  ExpectRefusedWhenCut(
      table, [](FlatReader& cut) { return ReadTable(cut, {.count = 3, .largest_rule = 1}); });
}

// What a user of a table would follow out of its memory.
TEST(ReaderMessages, AreRefusedIfATableDoesNotHoldTogether) {
  const auto is_read = [](const UnwindTable& table, const SentRows& rows) {
    FlatWriter out;
    Write(table, out);
    FlatReader in(out.bytes());
    ReadTable(in, rows);
    return in.ended();
  };
  const SentRows rows{.count = 3, .largest_rule = 1};
  ASSERT_TRUE(is_read(SomeTable(), rows));
  EXPECT_FALSE(is_read(SomeTable(), {.count = 2, .largest_rule = 1})) << "fewer rows than it has";
  EXPECT_FALSE(is_read(SomeTable(), {.count = 3, .largest_rule = 2})) << "a rule that is not there";
  UnwindTable table = SomeTable();
  table.pages[1].first_row = 1;
  EXPECT_FALSE(is_read(table, rows)) << "pages that overlap";
  table = SomeTable();
  table.rules[1].cfa_offset = 1;
  EXPECT_FALSE(is_read(table, rows)) << "an exotic rule that is not there";
  table.rules[1].cfa_offset = -1;
  EXPECT_FALSE(is_read(table, rows));
  table = SomeTable();
  table.exotic[0].return_address = 32;
  EXPECT_FALSE(is_read(table, rows)) << "a register that there is not";
  table = SomeTable();
  table.exotic[0].registers[0].reg = 200;
  EXPECT_FALSE(is_read(table, rows));
  table = SomeTable();
  table.exotic[0].cfa.expression.resize(129);
  EXPECT_FALSE(is_read(table, rows)) << "a longer expression than tables have";
  table = SomeTable();
  table.rules[0].kind = PYRO_RULE_KINDS;
  EXPECT_FALSE(is_read(table, rows)) << "a kind that there is not";
  table = SomeTable();
  table.rules.resize(UnwindTable::kMostRules + 1);
  EXPECT_FALSE(is_read(table, rows)) << "more rules than a table may have";
}

Error Said(ErrorCode code, std::string_view text) {
  FlatWriter out;
  out.Put(code);
  out.PutAll(std::span(text));
  return FailureIn(out.bytes());
}

TEST(ReaderMessages, CarryFailuresThatFilesAreTheReasonFor) {
  EXPECT_EQ(Said(ErrorCode::kMalformed, "no symbols").code(), ErrorCode::kMalformed);
  EXPECT_EQ(Said(ErrorCode::kMalformed, "no symbols").message(), "no symbols");
  EXPECT_EQ(Said(ErrorCode::kPermission, "no symbols").code(), ErrorCode::kMalformed)
      << "which would be told to users as their lack of privileges";
  EXPECT_EQ(Said(ErrorCode::kIo, "\033[31m\n").message().find('\033'), std::string::npos);
  EXPECT_EQ(FailureIn({}).code(), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace pyrometer
