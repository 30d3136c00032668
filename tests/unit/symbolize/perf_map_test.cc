// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

PerfMap MapOf(std::string_view text) {
  PerfMap map;
  EXPECT_TRUE(map.Update(TextFile(text).get()).has_value());
  return map;
}

// In its place.
void WriteAnew(const UniqueFd& fd, std::string_view text) {
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  ASSERT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  ASSERT_TRUE(WriteAll(fd.get(), text).has_value());
}

std::string NameAt(const PerfMap& map, uint64_t address) {
  return std::string(map.Find(Address(address)).value_or("-"));
}

TEST(PerfMap, NamesRangesWithHexadecimalBounds) {
  const PerfMap map = MapOf("7f00a000 1f LazyCompile:~foo bar.js:10\n0x7F00B000 0X10 second\r\n");
  EXPECT_EQ(NameAt(map, 0x7f009fff), "-");
  EXPECT_EQ(NameAt(map, 0x7f00a000), "LazyCompile:~foo bar.js:10");
  EXPECT_EQ(NameAt(map, 0x7f00a01e), "LazyCompile:~foo bar.js:10");
  EXPECT_EQ(NameAt(map, 0x7f00a01f), "-");
  EXPECT_EQ(NameAt(map, 0x7f00b00f), "second");
  EXPECT_EQ(map.bad_lines(), 0U);
}

TEST(PerfMap, LaterLineWins) {
  const PerfMap map = MapOf(
      "1000 100 old\n"
      "1040 20 middle\n"
      "2000 10 a\n2010 10 b\n2020 10 c\n"
      "2008 20 over\n"
      "3000 10 first\n3000 10 again\n");
  const std::pair<uint64_t, const char*> cases[] = {
      {0x1000, "old"},  {0x103f, "old"}, {0x1040, "middle"}, {0x105f, "middle"}, {0x1060, "old"},
      {0x10ff, "old"},  {0x1100, "-"},   {0x2007, "a"},      {0x2008, "over"},   {0x2018, "over"},
      {0x2027, "over"}, {0x2028, "c"},   {0x2030, "-"},      {0x3000, "again"}};
  for (const auto& [address, name] : cases) EXPECT_EQ(NameAt(map, address), name) << address;
}

TEST(PerfMap, AgreesWithPaintingLineByLine) {
  std::mt19937 random(1);
  std::string text;
  std::map<uint64_t, std::string> painted;
  for (int i = 0; i < 500; ++i) {
    const uint64_t start = random() % 1000;
    const uint64_t size = random() % 60 + 1;
    const std::string name = "f" + std::to_string(i);
    text += fmt::format("{:x} {:x} {}\n", start, size, name);
    for (uint64_t a = start; a < start + size; ++a) painted[a] = name;
  }
  const PerfMap map = MapOf(text);
  for (uint64_t a = 0; a < 1100; ++a) {
    EXPECT_EQ(NameAt(map, a), painted.contains(a) ? painted[a] : "-") << a;
  }
}

TEST(PerfMap, SkipsAndCountsBadLines) {
  const std::string bad[] = {"",
                             "garbage",
                             "1000",
                             "1000 10",
                             "1000 10 ",
                             "1000 0 empty",
                             "-1000 10 negative",
                             "1000 -10 negative",
                             "10000000000000000 10 too many digits",
                             "ffffffffffffffff 2 beyond the end",
                             "1000  10 two blanks",
                             "1000,10,name",
                             std::string(10'000, 'x')};
  std::string text = "2000 10 good\n";
  for (const std::string& line : bad) text += line + "\n";
  const PerfMap map = MapOf(text + "3000 10 good too\n");
  EXPECT_EQ(map.bad_lines(), std::size(bad));
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "good");
  EXPECT_EQ(NameAt(map, 0x3000), "good too");
}

TEST(PerfMap, MakesNamesPrintableAndCutsThem) {
  const PerfMap map = MapOf("1000 10 a\x1b[31m\xff\n2000 10 " + std::string(3000, 'x') + "\n");
  EXPECT_EQ(NameAt(map, 0x1000), "a\uFFFD[31m\uFFFD");
  EXPECT_EQ(NameAt(map, 0x2000).size(), PerfMap::kMaxName);
}

TEST(PerfMap, ReadsOnlyWhatWasAppended) {
  const UniqueFd fd = TextFile("bad\n1000 10 first\n2000 10 sec");
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "first");
  EXPECT_EQ(NameAt(map, 0x2000), "-") << "its line is still being written";
  ASSERT_TRUE(WriteAll(fd.get(), "ond\n1000 8 third\n").has_value());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "third");
  EXPECT_EQ(NameAt(map, 0x1008), "first");
  EXPECT_EQ(NameAt(map, 0x2000), "second");
  EXPECT_EQ(map.bad_lines(), 1U) << "the bad line was read once";
}

TEST(PerfMap, TakesALastLineWithoutANewlineWhenTheFileHasStoppedGrowing) {
  const UniqueFd fd = TextFile("1000 20 old\n1000 10 last");
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "old") << "it may still be being written";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(map.Update(fd.get()).has_value());
    EXPECT_EQ(NameAt(map, 0x100f), "last");
    EXPECT_EQ(NameAt(map, 0x1010), "old");
  }
}

TEST(PerfMap, TakesALastLineWithoutANewlineWhenItsWriterIsGone) {
  PerfMap map;
  ASSERT_TRUE(map.Update(TextFile("1000 10 last").get(), PerfMap::Writer::kGone).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "last");
  EXPECT_FALSE(map.empty());
}

TEST(PerfMap, KeepsNoPartOfANameWhenItsLineGrows) {
  const UniqueFd fd = TextFile("1000 20 old\n1000 10 la");
  PerfMap map;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "la");
  ASSERT_TRUE(WriteAll(fd.get(), "s").has_value());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "old") << "the line has not ended after all";
  ASSERT_TRUE(WriteAll(fd.get(), "t\n2000 10 next\n").has_value());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "last");
  EXPECT_EQ(NameAt(map, 0x2000), "next");
}

TEST(PerfMap, CountsNoBadLineUntilItsEnd) {
  const UniqueFd fd = TextFile("1000 1");
  PerfMap map;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.bad_lines(), 0U);
  ASSERT_TRUE(WriteAll(fd.get(), "0 good\n").has_value());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "good");
}

TEST(PerfMap, BeginsAgainWithAnotherFile) {
  PerfMap map = MapOf("1000 10 old\n");
  ASSERT_TRUE(map.Update(TextFile("2000 10 a longer line of another file\n").get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "a longer line of another file");
}

TEST(PerfMap, BeginsAgainWhenTheFileWasCut) {
  const UniqueFd fd = TextFile("1000 10 old and long\n");
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  WriteAnew(fd, "2000 10 new\n");
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "new");
}

// As the JVM does each time it is asked for its map.
TEST(PerfMap, BeginsAgainWhenTheFileWasWrittenAnew) {
  const UniqueFd fd = TextFile("1000 10 old\n2000 10 gone\n");
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  WriteAnew(fd, "1000 10 new\n3000 10 another\n4000 10 more\n");
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "new");
  EXPECT_EQ(NameAt(map, 0x2000), "-");
  EXPECT_EQ(NameAt(map, 0x3000), "another");
  ASSERT_TRUE(WriteAll(fd.get(), "5000 10 last\n").has_value());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "new");
  EXPECT_EQ(NameAt(map, 0x5000), "last");
}

TEST(PerfMap, GivesNamesOfReplacedCodeUpForOthers) {
  constexpr size_t kMost = 4096;
  PerfMap map(kMost);
  const UniqueFd fd = TextFile("");
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "optimized_for_the_time_" + std::to_string(i);
    ASSERT_TRUE(WriteAll(fd.get(), "1000 10 " + name + "\n").has_value());
    ASSERT_TRUE(map.Update(fd.get()).has_value());
    ASSERT_EQ(NameAt(map, 0x1000), name);
    ASSERT_LE(map.bytes(), kMost);
  }
  EXPECT_EQ(map.passed_over(), 0U);
}

TEST(PerfMap, KnowsNothingRatherThanWhatLayThereBeforeIfThereIsNoRoom) {
  constexpr size_t kMost = 4096;
  PerfMap map(kMost);
  std::string text = "1000 10 first\n";
  for (int i = 0; i < 200; ++i) {
    text += std::to_string(2000 + i * 10) + " 8 a_name_that_takes_some_room\n";
  }
  text += "1008 8 a_name_that_takes_some_room\n";
  ASSERT_TRUE(map.Update(TextFile(text).get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "first");
  EXPECT_EQ(NameAt(map, 0x1008), "-");
  EXPECT_GT(map.passed_over(), 100U);
  EXPECT_LE(map.bytes(), kMost);
  const ClearedCode cleared = map.TakeCleared();
  EXPECT_TRUE(cleared.Contains(Address(0x1008)));
  EXPECT_FALSE(cleared.Contains(Address(0x1000)));
  EXPECT_TRUE(map.TakeCleared().empty());
}

TEST(PerfMap, RefusesWhatIsNotARegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  PerfMap map;
  EXPECT_EQ(map.Update(reader.get()).error().code(), ErrorCode::kInvalid);
}

TEST(PerfMap, ReadsSoManyLinesAtATime) {
  const UniqueFd fd = TextFile(std::string(PerfMap::kMaxLines, '\n') + "1000 10 beyond\n");
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(map.bad_lines(), PerfMap::kMaxLines);
  EXPECT_TRUE(map.has_more());
  ASSERT_TRUE(map.Update(fd.get()).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "beyond");
  EXPECT_FALSE(map.has_more());
}

TEST(PerfMap, EndsSoonInAFileThatIsAllHole) {
  const UniqueFd fd = TextFile("1000 10 first\n");
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 40), 0);
  PerfMap map;
  ASSERT_TRUE(map.Update(fd.get()).has_value());  // a terabyte would take minutes
  EXPECT_EQ(NameAt(map, 0x1000), "first");
  EXPECT_EQ(map.bad_lines(), 1U);
}

}  // namespace
}  // namespace pyrometer
