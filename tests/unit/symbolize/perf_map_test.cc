// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/symbolize/text_file.h"

namespace pyrometer {
namespace {

using Writer = PerfMap::Writer;

// Returns how much of the file was read.
uint64_t Read(PerfMap& map, int fd, Writer writer = Writer::kMayWrite,
              PerfMap::Limits limits = {}) {
  const uint64_t to_read = limits.to_read;
  DirectPerfMapReader reader;
  EXPECT_TRUE(map.Update(fd, writer, limits, reader).has_value());
  return to_read - limits.to_read;
}

PerfMap MapOf(std::string_view text) {
  PerfMap map;
  Read(map, TextFile(text).get());
  return map;
}

// "1000 10 name_0", "1010 10 name_1", ...
std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{:x} 10 name_{}\n", 0x1000 + 16 * i, i);
  return text;
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
  EXPECT_EQ(map.losses().bad_lines, 0U);
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
  EXPECT_EQ(map.losses().bad_lines, std::size(bad));
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "good");
  EXPECT_EQ(NameAt(map, 0x3000), "good too");
}

TEST(PerfMap, MakesNamesPrintableAndCutsThem) {
  const PerfMap map = MapOf("1000 10 a\x1b[31m\xff\n2000 10 " + std::string(3000, 'x') + "\n");
  EXPECT_EQ(NameAt(map, 0x1000), "a\uFFFD[31m\uFFFD");
  EXPECT_EQ(NameAt(map, 0x2000).size(), kMostOfPerfMapName);
}

TEST(PerfMap, ReadsOnlyWhatWasAppended) {
  const UniqueFd fd = TextFile("bad\n1000 10 first\n2000 10 sec");
  PerfMap map;
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "first");
  EXPECT_EQ(NameAt(map, 0x2000), "-") << "its line is still being written";
  ASSERT_TRUE(WriteAll(fd.get(), "ond\n1000 8 third\n").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "third");
  EXPECT_EQ(NameAt(map, 0x1008), "first");
  EXPECT_EQ(NameAt(map, 0x2000), "second");
  EXPECT_EQ(map.losses().bad_lines, 1U) << "the bad line was read once";
}

TEST(PerfMap, TakesALastLineWithoutANewlineWhenTheFileHasStoppedGrowing) {
  const UniqueFd fd = TextFile("1000 20 old\n1000 10 last");
  PerfMap map;
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "old") << "it may still be being written";
  for (int i = 0; i < 2; ++i) {
    Read(map, fd.get());
    EXPECT_EQ(NameAt(map, 0x100f), "last");
    EXPECT_EQ(NameAt(map, 0x1010), "old");
  }
}

TEST(PerfMap, TakesALastLineWithoutANewlineWhenItsWriterIsGone) {
  PerfMap map;
  Read(map, TextFile("1000 10 last").get(), Writer::kGone);
  EXPECT_EQ(NameAt(map, 0x1000), "last");
  EXPECT_FALSE(map.empty());
}

TEST(PerfMap, KeepsNoPartOfANameWhenItsLineGrows) {
  const UniqueFd fd = TextFile("1000 20 old\n1000 10 la");
  PerfMap map;
  for (int i = 0; i < 2; ++i) Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "la");
  ASSERT_TRUE(WriteAll(fd.get(), "s").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "old") << "the line has not ended after all";
  ASSERT_TRUE(WriteAll(fd.get(), "t\n2000 10 next\n").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "last");
  EXPECT_EQ(NameAt(map, 0x2000), "next");
}

TEST(PerfMap, CountsNoBadLineUntilItsEnd) {
  const UniqueFd fd = TextFile("1000 1");
  PerfMap map;
  for (int i = 0; i < 3; ++i) Read(map, fd.get());
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.losses().bad_lines, 0U);
  ASSERT_TRUE(WriteAll(fd.get(), "0 good\n").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "good");
}

TEST(PerfMap, BeginsAgainWithAnotherFile) {
  PerfMap map = MapOf("1000 10 old\n");
  Read(map, TextFile("2000 10 a longer line of another file\n").get());
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "a longer line of another file");
}

TEST(PerfMap, BeginsAgainWhenTheFileWasCut) {
  const UniqueFd fd = TextFile("1000 10 old and long\n");
  PerfMap map;
  Read(map, fd.get());
  ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
  ASSERT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  ASSERT_TRUE(WriteAll(fd.get(), "2000 10 new\n").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  EXPECT_EQ(NameAt(map, 0x2000), "new");
}

TEST(PerfMap, RefusesWhatIsNotARegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  DirectPerfMapReader lines;
  PerfMap map;
  PerfMap::Limits limits;
  EXPECT_EQ(map.Update(reader.get(), Writer::kMayWrite, limits, lines).error().code(),
            ErrorCode::kInvalid);
}

TEST(PerfMap, KeepsTheNewestFunctionsThatItsMemoryHolds) {
  constexpr int kCount = 20'000;
  const UniqueFd fd = TextFile(Lines(kCount) + "1000 8 newest\n");
  const PerfMap::Limits limits{.memory = size_t{256} << 10};
  PerfMap map;
  Read(map, fd.get(), Writer::kMayWrite, limits);
  EXPECT_LE(map.bytes(), limits.memory);
  EXPECT_EQ(map.missing_at(), limits.memory);
  EXPECT_EQ(NameAt(map, 0x1000), "newest");
  EXPECT_EQ(NameAt(map, 0x1008), "-") << "the oldest";
  int known = 0;
  for (int i = kCount - 1; NameAt(map, 0x1000 + 16 * i) == fmt::format("name_{}", i); --i) ++known;
  EXPECT_GE(known, 2000);
  for (int i = 1; i < kCount - known; ++i) ASSERT_EQ(NameAt(map, 0x1000 + 16 * i), "-") << i;
  EXPECT_EQ(map.losses().forgotten, kCount - known);
  EXPECT_EQ(map.losses().left_out, 0);
}

TEST(PerfMap, KeepsEveryFunctionThatIsAnnouncedAgainAndAgain) {
  std::string text = "1000 10 first\n";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("2000 10 version_{}\n", i);
  const PerfMap::Limits limits{.memory = size_t{64} << 10, .to_read = text.size()};
  const UniqueFd fd = TextFile("");
  PerfMap map;
  // In parts, since more than twice the memory would be skipped.
  for (size_t at = 0; at < text.size(); at += limits.memory) {
    ASSERT_TRUE(WriteAll(fd.get(), std::string_view(text).substr(at, limits.memory)).has_value());
    Read(map, fd.get(), Writer::kMayWrite, limits);
  }
  EXPECT_EQ(NameAt(map, 0x1000), "first");
  EXPECT_EQ(NameAt(map, 0x2000), "version_19999");
  EXPECT_EQ(map.losses().forgotten, 0);
  EXPECT_EQ(map.missing_at(), 0);
}

// Of 47 MB, which a program of some days may have written.
TEST(PerfMap, ReadsTheEndOfAFileThatHasMoreThanItKeeps) {
  constexpr int kCount = 100'000;
  const UniqueFd fd = TextFile(Lines(kCount) + "1000 10 newest\n");
  const PerfMap::Limits limits{.memory = size_t{512} << 10};
  PerfMap map;
  EXPECT_EQ(Read(map, fd.get(), Writer::kMayWrite, limits), 2 * limits.memory);
  EXPECT_EQ(map.missing_at(), limits.memory);
  EXPECT_LE(map.bytes(), limits.memory);
  EXPECT_EQ(NameAt(map, 0x1000), "newest") << "the first line names it name_0";
  EXPECT_EQ(NameAt(map, 0x1000 + 16 * (kCount - 1)), "name_99999");
  EXPECT_EQ(NameAt(map, 0x1010), "-");
  EXPECT_EQ(map.losses().bad_lines, 0) << "the line that the gap has cut is none";
  EXPECT_EQ(map.losses().left_out,
            static_cast<uint64_t>(::lseek(fd.get(), 0, SEEK_END)) - 2 * limits.memory);
}

TEST(PerfMap, IsReadAgainWhenThereIsRoomForWhatIsMissing) {
  constexpr int kCount = 20'000;
  const UniqueFd fd = TextFile(Lines(kCount));
  PerfMap map;
  PerfMap::Limits limits{.memory = size_t{64} << 10};
  Read(map, fd.get(), Writer::kMayWrite, limits);
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  limits.memory = size_t{8} << 20;
  EXPECT_EQ(Read(map, fd.get(), Writer::kMayWrite, limits), 0);
  EXPECT_EQ(NameAt(map, 0x1000), "-");
  limits.again = true;
  EXPECT_EQ(Read(map, fd.get(), Writer::kMayWrite, limits), ::lseek(fd.get(), 0, SEEK_END));
  EXPECT_EQ(NameAt(map, 0x1000), "name_0");
  EXPECT_EQ(map.missing_at(), 0);
  EXPECT_EQ(Read(map, fd.get(), Writer::kMayWrite, limits), 0) << "nothing is missing any more";
}

TEST(PerfMap, HasTheNameOfAFunctionOnceThatOthersCutInParts) {
  std::string text = "0 7fffffffffff " + std::string(kMostOfPerfMapName, 'n') + "\n";
  for (int i = 0; i < 10'000; ++i) text += fmt::format("{:x} 8 x\n", 16 * i);
  const PerfMap::Limits limits{.memory = size_t{2} << 20};
  PerfMap map;
  Read(map, TextFile(text).get(), Writer::kMayWrite, limits);
  const size_t before = map.bytes();
  EXPECT_EQ(NameAt(map, 8), std::string(kMostOfPerfMapName, 'n'));
  map.ShrinkBelow(limits.memory);
  EXPECT_LE(map.bytes(), before);
  EXPECT_EQ(NameAt(map, 8), std::string(kMostOfPerfMapName, 'n'));
  map.ShrinkBelow(before / 2);
  EXPECT_LE(map.bytes(), before / 2);
  EXPECT_EQ(NameAt(map, 8), "-") << "all its parts go";
  EXPECT_EQ(NameAt(map, 16 * 9'999), "x");
}

TEST(PerfMap, KnowsNothingThatALineWhichItLeftOutMayHaveNamedAnew) {
  const UniqueFd fd = TextFile("1000 10 old\n9000000 10 other\n");
  const PerfMap::Limits limits{.memory = size_t{64} << 10};
  PerfMap map;
  Read(map, fd.get(), Writer::kMayWrite, limits);
  EXPECT_EQ(NameAt(map, 0x1000), "old");
  ASSERT_TRUE(WriteAll(fd.get(), "1000 10 new\n" + Lines(20'000)).has_value());
  Read(map, fd.get(), Writer::kMayWrite, limits);
  EXPECT_EQ(NameAt(map, 0x9000000), "-");
  EXPECT_EQ(NameAt(map, 0x1000 + 16 * 19'999), "name_19999");
}

TEST(PerfMap, ReadsNothingIfItMayNotReadEnough) {
  const UniqueFd fd = TextFile("1000 10 old\n");
  PerfMap map;
  Read(map, fd.get());
  ASSERT_TRUE(WriteAll(fd.get(), "1000 10 new\n").has_value());
  DirectPerfMapReader reader;
  PerfMap::Limits limits{.to_read = 11};
  EXPECT_EQ(map.Update(fd.get(), Writer::kMayWrite, limits, reader).error().code(),
            ErrorCode::kExhausted);
  EXPECT_EQ(limits.to_read, 11);
  EXPECT_EQ(NameAt(map, 0x1000), "old");
  Read(map, fd.get(), Writer::kMayWrite, {.to_read = 12});
  EXPECT_EQ(NameAt(map, 0x1000), "new");
}

// Gives so many blocks of lines, and dies.
class DyingReader : public DirectPerfMapReader {
 public:
  explicit DyingReader(int blocks) : blocks_(blocks) {}

  Result<std::optional<PerfMapFunction>> Read(int fd, const PerfMapPart& part,
                                              PerfMapSink sink) override {
    begins.push_back(part.begin);
    const auto take = [&](const PerfMapLines& lines) {
      if (--blocks_ >= 0) sink(lines);
    };
    if (auto last = DirectPerfMapReader::Read(fd, part, take); blocks_ >= 0) return last;
    return Fail(ErrorCode::kInternal, "dead");
  }

  std::vector<uint64_t> begins;

 private:
  int blocks_;
};

TEST(PerfMap, GoesOnWhereItsReaderHasDied) {
  constexpr int kCount = 5000;  // some blocks
  const UniqueFd fd = TextFile("garbage\n" + Lines(kCount));
  PerfMap map;
  PerfMap::Limits limits;
  DyingReader dying(2);
  EXPECT_EQ(map.Update(fd.get(), Writer::kMayWrite, limits, dying).error().code(),
            ErrorCode::kInternal);
  EXPECT_EQ(NameAt(map, 0x1000), "name_0");
  EXPECT_EQ(NameAt(map, 0x1000 + 16 * (kCount - 1)), "-");
  DyingReader living(1000);
  ASSERT_TRUE(map.Update(fd.get(), Writer::kMayWrite, limits, living).has_value());
  ASSERT_EQ(living.begins.size(), 1);
  EXPECT_GT(living.begins.front(), 0U) << "read from the beginning";
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(NameAt(map, 0x1000 + 16 * i), fmt::format("name_{}", i));
  }
  EXPECT_EQ(map.losses().bad_lines, 1);
}

TEST(PerfMap, HasWhatItHasWhetherOrNotAnybodyCanRead) {
  const UniqueFd fd = TextFile("1000 10 known\n");
  PerfMap map;
  EXPECT_FALSE(map.HasAll(fd.get()));
  Read(map, fd.get());
  EXPECT_TRUE(map.HasAll(fd.get()));
  PerfMap::Limits limits;
  DyingReader dying(0);
  EXPECT_TRUE(map.Update(fd.get(), Writer::kMayWrite, limits, dying).has_value());
  EXPECT_EQ(NameAt(map, 0x1000), "known");
  EXPECT_FALSE(map.HasAll(TextFile("").get())) << "another file";
  ASSERT_TRUE(WriteAll(fd.get(), "2000").has_value());
  EXPECT_FALSE(map.HasAll(fd.get()));
}

TEST(PerfMap, TakesNoRestOfAnEndlessLineForALine) {
  const UniqueFd fd = TextFile("1000 10 " + std::string(10'000, 'x'));
  PerfMap map;
  Read(map, fd.get());
  ASSERT_TRUE(WriteAll(fd.get(), "2000 10 stolen\n3000 10 good\n").has_value());
  Read(map, fd.get());
  EXPECT_EQ(NameAt(map, 0x2000), "-");
  EXPECT_EQ(NameAt(map, 0x3000), "good");
}

TEST(PerfMap, ShrinksWhenItsShareDoes) {
  PerfMap map = MapOf(Lines(50'000));
  const size_t before = map.bytes();
  map.ShrinkBelow(before / 4);
  EXPECT_LE(map.bytes(), before / 4);
  EXPECT_EQ(NameAt(map, 0x1000 + 16 * 49'999), "name_49999");
  EXPECT_EQ(NameAt(map, 0x1000), "-");
}

TEST(PerfMap, EndsSoonInAFileThatIsAllHole) {
  const UniqueFd fd = TextFile("1000 10 first\n");
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 40), 0);
  PerfMap map;
  EXPECT_EQ(Read(map, fd.get()), uint64_t{64} << 20);  // a terabyte would take minutes
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace pyrometer
