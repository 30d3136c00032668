// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/printable.h"
#include "tests/unit/symbolize/jit_dump_file.h"
#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

constexpr uint64_t kLate = 1'000'000;

// Returns how much of the file was read.
uint64_t Read(JitDump& dump, int fd, JitDump::Limits limits = {}) {
  const uint64_t to_read = limits.to_read;
  DirectJitDumpReader reader;
  const Result<void> result = dump.Update(fd, limits, reader);
  EXPECT_TRUE(result.has_value()) << result.error().message();
  return to_read - limits.to_read;
}

JitDump DumpOf(const JitDumpFile& file) {
  JitDump dump;
  Read(dump, TextFile(file.bytes()).get());
  return dump;
}

ErrorCode FailureOf(std::string_view bytes) {
  JitDump dump;
  JitDump::Limits limits;
  DirectJitDumpReader reader;
  const Result<void> result = dump.Update(TextFile(bytes).get(), limits, reader);
  EXPECT_FALSE(result.has_value());
  return result ? ErrorCode::kInternal : result.error().code();
}

// "name", "name file:line", or "-".
std::string At(const JitDump& dump, uint64_t address, uint64_t time = kLate) {
  const std::optional<JitDump::Found> found = dump.Find(Address(address), MonotonicTime(time));
  if (!found) return "-";
  if (found->file.empty()) return std::string(found->name);
  return fmt::format("{} {}:{}", found->name, found->file, found->line);
}

TEST(JitDump, NamesCodeWhereItWasLoaded) {
  const JitDump dump = DumpOf(JitDumpFile().Load(0x1000, 0x20, "first").Load(0x2000, 1, "second"));
  const std::pair<uint64_t, const char*> cases[] = {{0xfff, "-"},       {0x1000, "first"},
                                                    {0x101f, "first"},  {0x1020, "-"},
                                                    {0x2000, "second"}, {0x2001, "-"}};
  for (const auto& [address, name] : cases) EXPECT_EQ(At(dump, address), name) << address;
  EXPECT_EQ(dump.losses().bad_records, 0);
}

TEST(JitDump, AnswersForTheMomentAsked) {
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Load(0x1000, 0x100, "old", 10)
                                  .Load(0x1000, 0x100, "new", 20)
                                  .Load(0x1080, 0x100, "over", 30));
  EXPECT_EQ(At(dump, 0x1000, 9), "-");
  EXPECT_EQ(At(dump, 0x1000, 10), "old");
  EXPECT_EQ(At(dump, 0x1000, 19), "old");
  EXPECT_EQ(At(dump, 0x1000, 20), "new");
  EXPECT_EQ(At(dump, 0x1000, 30), "new");
  EXPECT_EQ(At(dump, 0x1080, 15), "old");
  EXPECT_EQ(At(dump, 0x1080, 29), "new");
  EXPECT_EQ(At(dump, 0x1080, 30), "over");
  EXPECT_EQ(At(dump, 0x1100, 29), "-");
}

TEST(JitDump, AgreesWithPaintingRecordByRecord) {
  std::mt19937 random(1);
  JitDumpFile file;
  std::map<uint64_t, std::map<uint64_t, std::string>> painted;  // by address, by time
  for (uint64_t time = 1; time <= 300; ++time) {
    const uint64_t start = random() % 1000;
    const uint64_t size = random() % 60 + 1;
    const std::string name = "f" + std::to_string(time);
    file.Load(start, size, name, time);
    for (uint64_t a = start; a < start + size; ++a) painted[a][time] = name;
  }
  const JitDump dump = DumpOf(file);
  for (uint64_t a = 0; a < 1100; ++a) {
    for (uint64_t time = 0; time <= 301; time += 7) {
      const auto next = painted[a].upper_bound(time);
      const std::string name = next == painted[a].begin() ? "-" : std::prev(next)->second;
      ASSERT_EQ(At(dump, a, time), name) << a << " at " << time;
    }
  }
}

TEST(JitDump, FollowsCodeThatIsMoved) {
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Lines(0x1000, {{0x1000, 1, "a.js"}, {0x1010, 2, "a.js"}})
                                  .Load(0x1000, 0x20, "moved", 10)
                                  .Load(0x5000, 0x20, "overwritten", 10)
                                  .Move(0x1000, 0x5000, 0x20, 20)
                                  .Load(0x1000, 0x20, "next", 30)
                                  .Move(0x5000, 0x5008, 0x20, 40));
  EXPECT_EQ(At(dump, 0x1010, 19), "moved a.js:2");
  EXPECT_EQ(At(dump, 0x1010, 20), "-") << "it has gone, and nothing is there yet";
  EXPECT_EQ(At(dump, 0x1010, 30), "next");
  EXPECT_EQ(At(dump, 0x5010, 19), "overwritten");
  EXPECT_EQ(At(dump, 0x500f, 20), "moved a.js:1");
  EXPECT_EQ(At(dump, 0x5010, 20), "moved a.js:2");
  EXPECT_EQ(At(dump, 0x5007, 40), "-");
  EXPECT_EQ(At(dump, 0x5017, 40), "moved a.js:1");
  EXPECT_EQ(At(dump, 0x5018, 40), "moved a.js:2");
  EXPECT_EQ(At(dump, 0x5027, 40), "moved a.js:2");
}

TEST(JitDump, KnowsNothingOfCodeThatIsMovedFromNowhere) {
  const JitDump dump =
      DumpOf(JitDumpFile().Load(0x1000, 0x20, "old", 10).Move(0x9000, 0x1000, 0x20, 20));
  EXPECT_EQ(At(dump, 0x1000, 19), "old");
  EXPECT_EQ(At(dump, 0x1000, 20), "-");
}

TEST(JitDump, TakesTheLastOneWhereTimesAreOfAnotherClock) {
  const JitDump dump = DumpOf(JitDumpFile({.flags = 1})
                                  .Load(0x1000, 0x20, "old", 1)
                                  .Load(0x1000, 0x20, "new", uint64_t{1} << 63));
  EXPECT_EQ(At(dump, 0x1000, 0), "new");
  EXPECT_EQ(At(dump, 0x1000, 5), "new");
}

TEST(JitDump, GivesTheLineThatBeginsAtOrBeforeTheAddress) {
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Lines(0x1000, {{0x1004, 10, "a.js"},
                                                  {0x1008, 11, "\xff"},
                                                  {0x1010, 5, "b.js"},
                                                  {0x1018, 12, "a.js"},
                                                  {0x1018, 13, "\xff"}})
                                  .Load(0x1000, 0x20, "f"));
  const std::pair<uint64_t, const char*> cases[] = {
      {0x1003, "f"},        {0x1004, "f a.js:10"}, {0x1008, "f a.js:11"}, {0x100f, "f a.js:11"},
      {0x1010, "f b.js:5"}, {0x1018, "f a.js:13"}, {0x101f, "f a.js:13"}, {0x1020, "-"}};
  for (const auto& [address, line] : cases) EXPECT_EQ(At(dump, address), line) << address;
  EXPECT_EQ(dump.losses().lines_left_out, 0);
}

TEST(JitDump, PutsLinesInOrder) {
  const JitDump dump = DumpOf(
      JitDumpFile().Lines(0x1000, {{0x1010, 2, "a"}, {0x1000, 1, "a"}}).Load(0x1000, 0x20, "f"));
  EXPECT_EQ(At(dump, 0x1008), "f a:1");
  EXPECT_EQ(At(dump, 0x1018), "f a:2");
}

TEST(JitDump, TakesLinesOnlyForTheCodeThatFollows) {
  const std::vector<JitDumpFile::Line> lines = {{0x1000, 1, "a"}};
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Lines(0x1000, lines)
                                  .Load(0x2000, 0x10, "other")
                                  .Load(0x1000, 0x10, "late")
                                  .Lines(0x3000, {{0x3000, 3, "a"}})
                                  .Record(4, std::string(100, '\0'))
                                  .Load(0x3000, 0x10, "with unwinding")
                                  .Lines(0x4000, {{0x4000, 4, "a"}})
                                  .Record(3, "")
                                  .Load(0x4000, 0x10, "after the end"));
  EXPECT_EQ(At(dump, 0x4000), "after the end");
  EXPECT_EQ(At(dump, 0x1000), "late");
  EXPECT_EQ(At(dump, 0x2000), "other");
  EXPECT_EQ(At(dump, 0x3000), "with unwinding a:3");
}

// Addresses in a file in which the function lies behind an ELF header.
TEST(JitDump, TakesTheElfHeaderOffTheLinesOfV8) {
  const std::vector<JitDumpFile::Line> lines = {{0x1040, 1, "a"}, {0x1050, 2, "a"}};
  const std::vector<JitDumpFile::Line> exact = {{0x2000, 1, "a"}, {0x2050, 2, "a"}};
  const JitDump of_v8 = DumpOf(JitDumpFile({.pad = 0xDEADBEEF})
                                   .Lines(0x1000, lines)
                                   .Load(0x1000, 0x60, "f")
                                   .Lines(0x2000, exact)
                                   .Load(0x2000, 0x60, "g"));
  EXPECT_EQ(At(of_v8, 0x100f), "f a:1");
  EXPECT_EQ(At(of_v8, 0x1010), "f a:2");
  EXPECT_EQ(At(of_v8, 0x204f), "g a:1") << "a version that does not add it";
  EXPECT_EQ(At(of_v8, 0x2050), "g a:2");
  const JitDump of_others = DumpOf(JitDumpFile().Lines(0x1000, lines).Load(0x1000, 0x60, "f"));
  EXPECT_EQ(At(of_others, 0x103f), "f");
  EXPECT_EQ(At(of_others, 0x1050), "f a:2");
}

// As malloc leaves them that were given back: a pointer and a key lie over the first 16 bytes.
std::string Overwritten(std::string name) {
  const std::string_view by("PI\xf4\x07\0\0\0\0mF\xcco\x9e\x95\xba\xbf", 16);
  name.replace(0, 16, by.substr(0, name.size()));
  return name;
}

// V8 writes names of files from memory that it has given back.
TEST(JitDump, TakesTheNameOfTheFileFromThatOfTheFunctionWhereItIsOverwritten) {
  struct Case {
    const char* function;
    std::string file;
    const char* line;
  };
  const Case cases[] = {
      {"JS:^f /srv/application/main.js:7:9", Overwritten("/srv/application/main.js"),
       "/srv/application/main.js:3"},
      {"JS:^f /srv/application/main.js:7:9", Overwritten("/srv/application/mine.js"), "-"},
      {"JS:^f /srv/application/main.js:7:9", Overwritten("/srv/application/main.mjs"), "-"},
      {"JS:^f /srv/application/main.js:7", Overwritten("/srv/application/main.js"), "-"},
      {"JS:^f /srv/application/main.js", Overwritten("/srv/application/main.js"), "-"},
      {"JS:^get f /srv/some application/main.js:7:9", Overwritten("/srv/some application/main.js"),
       "/srv/some application/main.js:3"},
      {"JS:^ /app/main.js:7:9", Overwritten("/app/main.js"), "/app/main.js:3"},
      {"JS:^ /app/main.js:7:9", Overwritten("/app/maine.js"), "-"},
      {"JS:^ /app/mains.js:7:9", std::string("\xd5\xab\0\0\0\0\0\0mF\xcco\x9e", 13),
       "/app/mains.js:3"},
      {"JS:^ /app/main.js:7:9", "a.js", "a.js:3"},
      {"JS:^ /srv/application/main.js:7:9", "/srv/application/mine.js",
       "/srv/application/mine.js:3"},
  };
  for (const auto& [function, file, line] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", function, line));
    const JitDumpFile dumped =
        JitDumpFile({.pad = 0xDEADBEEF})
            .Lines(0x1000, {{0x1040, 3, file}, {0x1044, 4, "\xff"}, {0x1048, 5, file}})
            .Load(0x1000, 0x20, function);
    const JitDump dump = DumpOf(dumped);
    const bool is_known = std::string_view(line) != "-";
    EXPECT_EQ(At(dump, 0x1000), is_known ? fmt::format("{} {}", function, line) : function);
    EXPECT_EQ(At(dump, 0x1008).ends_with(":5"), is_known);
    EXPECT_EQ(dump.losses().lines_left_out == 0, is_known);
  }
}

// Whatever else a name may be that contains a NUL.
TEST(JitDump, BelievesNoLineBehindWhichNoneFollows) {
  const std::string_view garbage("\xca\xfb\0\0\0\0\x0f", 7);
  const std::string_view text("b.js\0\x07", 6);
  for (const std::string_view name : {garbage, text}) {
    const JitDump dump =
        DumpOf(JitDumpFile()
                   .Lines(0x1000, {{0x1000, 1, "a.js"}, {0x1004, 2, name}, {0x1008, 3, "a.js"}})
                   .Load(0x1000, 0x20, "f")
                   .Load(0x2000, 0x20, "g"));
    EXPECT_EQ(At(dump, 0x1003), "f a.js:1");
    EXPECT_EQ(At(dump, 0x1004), "f");
    EXPECT_EQ(At(dump, 0x1008), "f");
    EXPECT_EQ(At(dump, 0x2000), "g");
    EXPECT_EQ(dump.losses().lines_left_out, 1);
  }
}

TEST(JitDump, ReadsAsManyLinesOfAFunctionAsItKeeps) {
  std::vector<JitDumpFile::Line> lines;
  for (uint32_t i = 0; i < 5000; ++i) lines.push_back({0x1000 + i, i + 1, i == 0 ? "a" : "\xff"});
  const JitDump dump =
      DumpOf(JitDumpFile().Lines(0x1000, lines).Load(0x1000, 5000, "f").Load(0x9000, 1, "g"));
  EXPECT_EQ(At(dump, 0x1000 + kMostJitLines - 2), fmt::format("f a:{}", kMostJitLines - 1));
  EXPECT_EQ(At(dump, 0x1000 + kMostJitLines - 1), "f") << "where it ends is not known";
  EXPECT_EQ(At(dump, 0x1000 + 4999), "f");
  EXPECT_EQ(dump.losses().lines_left_out, 5000 - kMostJitLines);
  EXPECT_EQ(dump.losses().bad_records, 0);
  EXPECT_EQ(At(dump, 0x9000), "g");
}

TEST(JitDump, KeepsAsManyFileNamesOfAFunctionAsThereIsRoomFor) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 400; ++i) names.push_back(fmt::format("{}.js", i));
  for (uint32_t i = 0; i < 4; ++i) names.push_back(std::string(3000, static_cast<char>('a' + i)));
  std::vector<JitDumpFile::Line> lines;
  for (uint32_t i = 0; i < names.size(); ++i) lines.push_back({0x1000 + i, 1, names[i]});
  const JitDump dump = DumpOf(JitDumpFile().Lines(0x1000, lines).Load(0x1000, 500, "f"));
  EXPECT_EQ(At(dump, 0x10ff), "f 255.js:1");
  EXPECT_EQ(At(dump, 0x1100), "f");
  EXPECT_EQ(At(dump, 0x1000 + 400), "f");
  EXPECT_EQ(dump.losses().lines_left_out, 0);
}

TEST(JitDump, TakesTheLinesThatThereAreOfThoseThatARecordSaysToHave) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}}) {
    const JitDump dump = DumpOf(JitDumpFile()
                                    .Lines(0x1000, {{0x1000, 1, "a"}, {0x1004, 2, "a"}}, count)
                                    .Load(0x1000, 0x20, "f"));
    EXPECT_EQ(At(dump, 0x1000), "f a:1");
    EXPECT_EQ(At(dump, 0x1004), "f a:2");
    EXPECT_EQ(dump.losses().bad_records, 1) << count;
  }
}

TEST(JitDump, MakesNamesPrintableAndCutsThem) {
  const std::string endless(5000, 'x');
  const JitDump dump =
      DumpOf(JitDumpFile()
                 .Lines(0x1000, {{0x1000, 1, "jos\xe9.js"}})
                 .Load(0x1000, 0x10, "a\x1b[31m\xff")
                 .Lines(0x2000, {{0x2000, 1, std::string_view(endless).substr(1000)}})
                 .Load(0x2000, 0x10, endless));
  EXPECT_EQ(At(dump, 0x1000), "a\uFFFD[31m\uFFFD jos\uFFFD.js:1");
  const std::optional<JitDump::Found> found = dump.Find(Address(0x2000), MonotonicTime(kLate));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name.size(), kMostOfJitName);
  EXPECT_EQ(found->file.size(), kMostOfJitName);
}

TEST(JitDump, SkipsAndCountsRecordsWithoutTheForm) {
  const auto load = [](uint64_t start, uint64_t size, std::string_view rest) {
    using F = JitDumpFile;
    return F::BytesOf(uint64_t{1}) + F::BytesOf(start) + F::BytesOf(start) + F::BytesOf(size) +
           F::BytesOf(uint64_t{1}) + std::string(rest);
  };
  JitDumpFile file;
  file.Load(0x1000, 0x100, "before")
      .Record(0, "short")
      .Record(0, load(0x1000, 0, std::string_view("empty\0", 6)))
      .Record(0, load(0x1000, 20, std::string_view("too much code\0", 14)))
      .Record(0, load(~uint64_t{0} - 2, 4, std::string_view("beyond the end\0cccc", 19)))
      .Record(1, "short")
      .Move(0x1000, 0x1000, 0)
      .Move(0x1000, ~uint64_t{0}, 2)
      .Record(2, "short")
      .Load(0x5000, 0x10, "after");
  const JitDump dump = DumpOf(file);
  EXPECT_EQ(At(dump, 0x1000), "before");
  EXPECT_EQ(At(dump, 0x5000), "after");
  EXPECT_EQ(dump.losses().bad_records, 8);
  EXPECT_EQ(dump.functions(), 2);
}

TEST(JitDump, ForgetsWhatLiesUnderCodeWithoutAName) {
  const std::string body = JitDumpFile::BytesOf(uint64_t{1}) +
                           JitDumpFile::BytesOf(uint64_t{0x1000}) +
                           JitDumpFile::BytesOf(uint64_t{0x1000}) +
                           JitDumpFile::BytesOf(uint64_t{4}) + JitDumpFile::BytesOf(uint64_t{1});
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Load(0x1000, 0x10, "old", 1)
                                  .Record(0, body + "no NULcode", 2)
                                  .Load(0x1008, 4, "", 3));
  EXPECT_EQ(At(dump, 0x1000, 1), "old");
  EXPECT_EQ(At(dump, 0x1000, 2), "-");
  EXPECT_EQ(At(dump, 0x1004, 2), "old");
  EXPECT_EQ(At(dump, 0x1008, 3), "-");
  EXPECT_EQ(dump.losses().bad_records, 2);
}

TEST(JitDump, SkipsRecordsOfKindsThatItDoesNotKnow) {
  const JitDump dump = DumpOf(JitDumpFile()
                                  .Record(3, "")
                                  .Record(4, std::string(100'000, 'u'))
                                  .Record(77, "what is to come")
                                  .Load(0x1000, 0x10, "f"));
  EXPECT_EQ(At(dump, 0x1000), "f");
  EXPECT_EQ(dump.losses().bad_records, 0);
}

// Or they would be read again and again while no code comes.
TEST(JitDump, WaitsForTheCodeOfLinesForAFewRecords) {
  JitDumpFile file;
  file.Lines(0x1000, {{0x1000, 1, "a"}});
  for (int i = 0; i < 1000; ++i) file.Record(77, "what is to come");
  const UniqueFd fd = TextFile(file.bytes());
  uint64_t end = 0;
  const auto take = [&](const JitDumpRecords& records) { end = records.end; };
  const JitDumpPart part{.begin = 0, .end = file.bytes().size(), .to_read = 1 << 30};
  EXPECT_TRUE(DirectJitDumpReader().Read(fd.get(), part, take).value());
  EXPECT_EQ(end, file.bytes().size());
}

TEST(JitDump, PassesOverWhatALongerHeaderHas) {
  JitDumpFile::Header header{.total_size = 48};
  std::string bytes = JitDumpFile(header).bytes() + "eight ..";
  bytes += JitDumpFile().Load(0x1000, 0x10, "f").bytes().substr(40);
  JitDump dump;
  Read(dump, TextFile(bytes).get());
  EXPECT_EQ(At(dump, 0x1000), "f");
}

TEST(JitDump, RefusesFilesOfOthers) {
  EXPECT_EQ(FailureOf(JitDumpFile({.magic = 0x4454694A}).bytes()), ErrorCode::kUnsupported);
  EXPECT_EQ(FailureOf(JitDumpFile({.version = 2}).bytes()), ErrorCode::kUnsupported);
  EXPECT_EQ(FailureOf(JitDumpFile({.machine = EM_SPARC}).bytes()), ErrorCode::kUnsupported);
  EXPECT_EQ(FailureOf(JitDumpFile({.flags = 2}).bytes()), ErrorCode::kUnsupported);
  EXPECT_EQ(FailureOf(JitDumpFile({.magic = 0}).bytes()), ErrorCode::kMalformed);
  EXPECT_EQ(FailureOf(JitDumpFile({.total_size = 39}).bytes()), ErrorCode::kMalformed);
  EXPECT_EQ(FailureOf(JitDumpFile({.total_size = 1 << 20}).bytes()), ErrorCode::kMalformed);
}

TEST(JitDump, RefusesWhatIsNotARegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  DirectJitDumpReader records;
  JitDump dump;
  JitDump::Limits limits;
  EXPECT_EQ(dump.Update(reader.get(), limits, records).error().code(), ErrorCode::kInvalid);
}

TEST(JitDump, BelievesNothingBehindARecordWhoseSizeMakesNoSense) {
  for (const uint32_t size : {0U, 15U, 0x40000001U, 0xffffffffU}) {
    JitDumpFile file;
    file.Load(0x1000, 0x10, "before").RecordOfSize(size, 0).Load(0x2000, 0x10, "behind");
    const UniqueFd fd = TextFile(file.bytes());
    JitDump dump;
    JitDump::Limits limits;
    DirectJitDumpReader reader;
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(dump.HasAll(fd.get()) && i == 0);
      EXPECT_EQ(dump.Update(fd.get(), limits, reader).error().code(), ErrorCode::kMalformed);
      EXPECT_EQ(At(dump, 0x1000), "before");
      EXPECT_EQ(At(dump, 0x2000), "-");
      const std::string_view more = "0123456789";
      ASSERT_TRUE(WriteAll(fd.get(), more).has_value());
    }
    EXPECT_TRUE(dump.HasAll(fd.get())) << "there is no need to look at it";
    ASSERT_EQ(::pwrite(fd.get(), "\x10\0\0\0", 4, 40 + 56 + 7 + 0x10 + 4), 4);
    EXPECT_FALSE(dump.Update(fd.get(), limits, reader).has_value()) << "nor to read it again";
    EXPECT_EQ(dump.Unread(fd.get()).value(), 0);
  }
}

TEST(JitDump, ReadsOnWhereItEndedOnceTheLastRecordIsWhole) {
  JitDumpFile file;
  file.Load(0x1000, 0x20, "first", 1)
      .Lines(0x2000, {{0x2000, 1, "a"}})
      .Record(4, std::string(50, 'u'))
      .Load(0x2000, 0x20, "second", 2)
      .Move(0x2000, 0x3000, 0x20, 3);
  const std::string_view bytes = file.bytes();
  // Stops after every byte, as a writer may.
  const UniqueFd fd = TextFile("");
  JitDump dump;
  for (const char& byte : bytes) {
    ASSERT_TRUE(WriteAll(fd.get(), {&byte, 1}).has_value());
    Read(dump, fd.get());
    if (At(dump, 0x2000, 2) == "-") continue;
    EXPECT_EQ(At(dump, 0x2000, 2), "second a:1");
  }
  EXPECT_EQ(At(dump, 0x1000), "first");
  EXPECT_EQ(At(dump, 0x2000), "-");
  EXPECT_EQ(At(dump, 0x3000), "second a:1");
  EXPECT_EQ(dump.functions(), 2);
  EXPECT_EQ(dump.losses().bad_records, 0);
}

TEST(JitDump, AsksNobodyAboutAFileThatHasNotGrown) {
  const UniqueFd fd = TextFile(JitDumpFile().Load(0x1000, 0x20, "f").bytes() + "half");
  JitDump dump;
  EXPECT_FALSE(dump.HasAll(fd.get()));
  EXPECT_EQ(dump.Unread(fd.get()).value(), 40 + 56 + 2 + 0x20 + 4);
  EXPECT_GT(Read(dump, fd.get()), 0);
  EXPECT_TRUE(dump.HasAll(fd.get()));
  EXPECT_EQ(dump.Unread(fd.get()).value(), 0);
  EXPECT_EQ(Read(dump, fd.get()), 0);
  EXPECT_FALSE(dump.HasAll(TextFile("").get())) << "another file";
}

TEST(JitDump, BeginsAgainWithAnotherFile) {
  JitDump dump = DumpOf(JitDumpFile().Load(0x1000, 0x10, "old"));
  Read(dump, TextFile(JitDumpFile().Load(0x2000, 0x100, "longer").bytes()).get());
  EXPECT_EQ(At(dump, 0x1000), "-");
  EXPECT_EQ(At(dump, 0x2000), "longer");
}

TEST(JitDump, BeginsAgainWhenTheFileWasCut) {
  const UniqueFd fd = TextFile(JitDumpFile().Load(0x1000, 0x100, "old and long").bytes());
  JitDump dump;
  Read(dump, fd.get());
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  ASSERT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  ASSERT_TRUE(WriteAll(fd.get(), JitDumpFile().Load(0x2000, 8, "new").bytes()).has_value());
  Read(dump, fd.get());
  EXPECT_EQ(At(dump, 0x1000), "-");
  EXPECT_EQ(At(dump, 0x2000), "new");
}

// As by a program that is started anew with its pid of before, and has written more than that had.
TEST(JitDump, BeginsAgainWhenTheFileWasRewrittenInPlace) {
  const JitDumpFile before = JitDumpFile().Load(0x1000, 0x100, "old").Load(0x3000, 0x100, "old");
  const auto anew = [](const std::string& first) {
    JitDumpFile file(JitDumpFile::Header{.timestamp = 6});
    file.Load(0x2000, 0x100, first);
    for (uint64_t i = 0; i < 10; ++i) file.Load(0x8000 + 0x100 * i, 0x100, "new");
    return file.bytes();
  };
  // Its records begin where those of the old one did, or elsewhere.
  for (const std::string first : {"new", "new, and longer"}) {
    const UniqueFd fd = TextFile(before.bytes());
    JitDump dump;
    Read(dump, fd.get());
    const std::string bytes = anew(first);
    ASSERT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
    JitDump::Limits limits;
    DirectJitDumpReader reader;
    const Result<void> result = dump.Update(fd.get(), limits, reader);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), ErrorCode::kInternal);
    Read(dump, fd.get());
    EXPECT_EQ(At(dump, 0x1000), "-");
    EXPECT_EQ(At(dump, 0x2000), first);
    EXPECT_EQ(At(dump, 0x8000), "new");
  }
}

TEST(JitDump, ForgetsReplacedCodeThatNobodyAsksFor) {
  JitDump dump = DumpOf(JitDumpFile()
                            .Load(0x1000, 0x10, "first", 10)
                            .Load(0x1000, 0x10, "second", 20)
                            .Load(0x1000, 0x10, "third", 30));
  EXPECT_EQ(dump.functions(), 3);
  dump.ForgetBefore(MonotonicTime(20));
  EXPECT_EQ(dump.functions(), 2);
  EXPECT_EQ(At(dump, 0x1000, 15), "-");
  EXPECT_EQ(At(dump, 0x1000, 20), "second");
  dump.ForgetBefore(MonotonicTime(30));
  EXPECT_EQ(dump.functions(), 1);
  EXPECT_EQ(At(dump, 0x1000, 30), "third");
  EXPECT_EQ(dump.losses().forgotten, 0);
}

TEST(JitDump, KeepsNothingThatWasReplacedBeforeTheHorizon) {
  JitDumpFile file;
  for (uint64_t i = 1; i <= 1000; ++i) file.Load(0x1000, 0x10, fmt::format("v{}", i), i);
  JitDump dump;
  dump.ForgetBefore(MonotonicTime(998));
  Read(dump, TextFile(file.bytes()).get());
  EXPECT_EQ(dump.functions(), 3);
  EXPECT_EQ(At(dump, 0x1000, 998), "v998");
  EXPECT_EQ(At(dump, 0x1000, 999), "v999");
  EXPECT_EQ(At(dump, 0x1000, 1000), "v1000");
}

std::string Many(int count, bool with_lines) {
  JitDumpFile file;
  for (int i = 0; i < count; ++i) {
    const uint64_t start = 0x1000 + 64 * static_cast<uint64_t>(i);
    if (with_lines) file.Lines(start, {{start, 1, "some/file.js"}, {start + 8, 2, "\xff"}});
    file.Load(start, 64, fmt::format("name_{}", i));
  }
  return file.bytes();
}

TEST(JitDump, ForgetsTheOldestFunctionsThatItsMemoryDoesNotHold) {
  constexpr int kCount = 20'000;
  const JitDump::Limits limits{.memory = size_t{512} << 10};
  JitDump dump;
  Read(dump, TextFile(Many(kCount, true)).get(), limits);
  EXPECT_LE(dump.bytes(), limits.memory);
  int known = 0;
  for (int i = kCount - 1; At(dump, 0x1000 + 64 * i).starts_with(fmt::format("name_{}", i)); --i) {
    ++known;
  }
  EXPECT_GE(known, 1000);
  EXPECT_EQ(dump.functions(), known);
  for (int i = 0; i < kCount - known; ++i) ASSERT_EQ(At(dump, 0x1000 + 64 * i), "-") << i;
  EXPECT_EQ(dump.losses().forgotten, kCount - known);
  EXPECT_EQ(At(dump, 0x1008 + 64 * (kCount - 1)), "name_19999 some/file.js:2");
}

TEST(JitDump, ForgetsLinesBeforeNames) {
  constexpr int kCount = 2000;
  JitDump dump;
  Read(dump, TextFile(Many(kCount, true)).get());
  JitDump names;
  Read(names, TextFile(Many(kCount, false)).get());
  dump.ShrinkBelow((names.bytes() + dump.bytes()) / 2 / 3 * 4);
  EXPECT_EQ(dump.losses().forgotten, 0);
  EXPECT_GT(dump.losses().lines_forgotten, kCount / 4);
  EXPECT_LT(dump.losses().lines_forgotten, kCount);
  EXPECT_EQ(At(dump, 0x1000), "name_0");
  EXPECT_EQ(At(dump, 0x1000 + 64 * (kCount - 1)), "name_1999 some/file.js:1");
  dump.ShrinkBelow(0);
  EXPECT_TRUE(dump.empty());
  EXPECT_EQ(dump.bytes(), 0);
  EXPECT_EQ(dump.losses().forgotten, kCount);
}

TEST(JitDump, BoundsWhatIsKeptOfReplacedCode) {
  JitDumpFile file;
  file.Load(0x1000, 0x10, "first", 1);
  for (uint64_t i = 2; i <= 20'000; ++i) file.Load(0x2000, 0x10, fmt::format("v{}", i), i);
  const JitDump::Limits limits{.memory = size_t{256} << 10};
  JitDump dump;
  Read(dump, TextFile(file.bytes()).get(), limits);
  EXPECT_LE(dump.bytes(), limits.memory);
  EXPECT_EQ(At(dump, 0x1000), "first") << "there is room for what is there now";
  EXPECT_EQ(At(dump, 0x2000), "v20000");
  EXPECT_EQ(At(dump, 0x2000, 19'999), "v19999");
  EXPECT_EQ(At(dump, 0x2000, 2), "-");
  EXPECT_EQ(dump.losses().forgotten, 0);
  EXPECT_GT(dump.losses().past_forgotten, 10'000);
  dump.ShrinkBelow(0);
  EXPECT_EQ(dump.bytes(), 0);
}

TEST(JitDump, StopsWhereItMayReadNoMoreAndGoesOn) {
  constexpr int kCount = 3000;
  const UniqueFd fd = TextFile(Many(kCount, true));
  JitDump dump;
  DirectJitDumpReader reader;
  int updates = 0;
  Result<void> result;
  do {
    JitDump::Limits limits{.to_read = 100'000};
    result = dump.Update(fd.get(), limits, reader);
    ++updates;
    ASSERT_LT(updates, 100);
    if (result) break;
    ASSERT_EQ(result.error().code(), ErrorCode::kExhausted);
    EXPECT_EQ(limits.to_read, 0);
    EXPECT_FALSE(dump.HasAll(fd.get()));
  } while (true);
  EXPECT_GT(updates, 5);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(At(dump, 0x1008 + 64 * i), fmt::format("name_{} some/file.js:2", i));
  }
  JitDump::Limits none{.to_read = 0};
  JitDump other;
  EXPECT_EQ(other.Update(fd.get(), none, reader).error().code(), ErrorCode::kExhausted);
}

TEST(JitDump, ReadsNoCode) {
  JitDumpFile file;
  for (int i = 0; i < 20; ++i) file.Load(0x100000 * i, 0x80000, fmt::format("f{}", i));
  const UniqueFd fd = TextFile(file.bytes());
  JitDump dump;
  EXPECT_LT(Read(dump, fd.get()), 21 * 8192);
  EXPECT_EQ(At(dump, 0x100000 * 19), "f19");
}

TEST(JitDump, EndsSoonInAFileThatIsAllHole) {
  const UniqueFd fd = TextFile(JitDumpFile().Load(0x1000, 0x10, "first").bytes());
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 40), 0);
  JitDump dump;
  JitDump::Limits limits;
  DirectJitDumpReader reader;
  EXPECT_EQ(dump.Update(fd.get(), limits, reader).error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(At(dump, 0x1000), "first");
}

// Gives so many blocks of records, and dies.
class DyingJitReader : public DirectJitDumpReader {
 public:
  explicit DyingJitReader(int blocks) : blocks_(blocks) {}

  Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) override {
    begins.push_back(part.begin);
    const auto take = [&](const JitDumpRecords& records) {
      if (--blocks_ >= 0) sink(records);
    };
    if (auto all = DirectJitDumpReader::Read(fd, part, take); blocks_ >= 0) return all;
    return Fail(ErrorCode::kInternal, "dead");
  }

  std::vector<uint64_t> begins;

 private:
  int blocks_;
};

TEST(JitDump, GoesOnWhereItsReaderHasDied) {
  constexpr int kCount = 3000;  // some blocks
  const UniqueFd fd = TextFile(Many(kCount, true));
  JitDump dump;
  JitDump::Limits limits;
  DyingJitReader dying(2);
  EXPECT_EQ(dump.Update(fd.get(), limits, dying).error().code(), ErrorCode::kInternal);
  EXPECT_EQ(At(dump, 0x1000), "name_0 some/file.js:1");
  EXPECT_EQ(At(dump, 0x1000 + 64 * (kCount - 1)), "-");
  DyingJitReader living(1000);
  ASSERT_TRUE(dump.Update(fd.get(), limits, living).has_value());
  EXPECT_GT(living.begins.front(), 40U) << "read from the beginning";
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(At(dump, 0x1000 + 64 * i), fmt::format("name_{} some/file.js:1", i));
  }
  EXPECT_EQ(dump.losses().bad_records, 0);
}

TEST(JitDumpReader, GivesBlocksThatFitAMessage) {
  std::vector<std::string> names;
  std::vector<JitDumpFile::Line> lines;
  for (uint32_t i = 0; i < 8; ++i) names.push_back(std::string(1024, static_cast<char>('a' + i)));
  for (uint32_t i = 0; i < kMostJitLines; ++i) lines.push_back({0x1000 + i, i + 1, names[i % 8]});
  JitDumpFile file;
  for (int i = 0; i < 3; ++i) {
    file.Load(0x100, 1, std::string(1000, 'n')).Lines(0x1000, lines);
    file.Load(0x1000, 5000, std::string(1024, 'n'));
  }
  const UniqueFd fd = TextFile(file.bytes());
  uint64_t end = 0;
  size_t most = 0;
  const auto take = [&](const JitDumpRecords& records) {
    EXPECT_GT(records.end, end);
    end = records.end;
    size_t bytes = 64;
    for (const JitDumpRecords::Record& record : records.records) {
      bytes += 64 + record.name.size() + record.lines.size_bytes();
      for (const std::string_view name : record.files) bytes += 8 + name.size();
    }
    most = std::max(most, bytes);
  };
  const JitDumpPart part{.begin = 0, .end = file.bytes().size(), .to_read = 1 << 30};
  EXPECT_TRUE(DirectJitDumpReader().Read(fd.get(), part, take).value());
  EXPECT_EQ(end, file.bytes().size());
  EXPECT_GT(most, size_t{50} << 10);
  EXPECT_LE(most, size_t{60} << 10);
}

// Whatever byte is another one: it ends, and what it says has the form.
TEST(JitDump, SaysOnlyWhatHasTheFormOfDamagedFiles) {
  const std::string bytes = JitDumpFile({.pad = 0xDEADBEEF})
                                .Load(0x10, 0x20, "first", 1)
                                .Lines(0x40, {{0x80, 1, "a.js"}, {0x88, 2, "\xff"}, {0x90, 3, "b"}})
                                .Record(4, "unwinding")
                                .Load(0x40, 0x20, "second", 2)
                                .Move(0x40, 0x50, 0x20, 3)
                                .Load(0x18, 0x20, "third", 4)
                                .Record(3, "")
                                .bytes();
  const UniqueFd fd = TextFile(bytes);
  DirectJitDumpReader reader;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x40, 0x80, 0xff}) {
      const char damaged = static_cast<char>(bytes[i] ^ flip);
      ASSERT_EQ(::pwrite(fd.get(), &damaged, 1, static_cast<off_t>(i)), 1);
      JitDump dump;
      JitDump::Limits limits;
      if (Result<void> result = dump.Update(fd.get(), limits, reader); !result) {
        EXPECT_TRUE(result.error().code() == ErrorCode::kMalformed ||
                    result.error().code() == ErrorCode::kUnsupported)
            << i;
      }
      for (uint64_t address = 0; address < 0x100; ++address) {
        for (uint64_t time = 0; time < 6; ++time) {
          const auto found = dump.Find(Address(address), MonotonicTime(time));
          if (!found) continue;
          ASSERT_TRUE(!found->name.empty() && IsPrintable(found->name)) << i;
          ASSERT_TRUE(IsPrintable(found->file)) << i;
          ASSERT_EQ(found->file.empty(), found->line == 0) << i;
        }
      }
      dump.ForgetBefore(MonotonicTime(3));
      dump.ShrinkBelow(200);
    }
    ASSERT_EQ(::pwrite(fd.get(), &bytes[i], 1, static_cast<off_t>(i)), 1);
  }
}

}  // namespace
}  // namespace pyrometer
