// SPDX-License-Identifier: Apache-2.0
#include "process/proc_maps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

ProcMaps Read(std::string_view text, const ProcMapsLimits& limits = {}) {
  ProcMapsParser parser(limits);
  parser.Add(text);
  return std::move(parser).Finish();
}

std::vector<ProcMapping> Parsed(std::string_view text) {
  return Read(text).mappings;
}

// So many executable mappings with gaps in between.
std::string Lines(size_t count, std::string_view path) {
  std::string lines;
  for (size_t i = 0; i < count; ++i) {
    const size_t start = 0x10000 + i * 0x2000;
    lines += fmt::format("{:x}-{:x} r-xp 0 08:01 {} {}\n", start, start + 0x1000,
                         path.empty() ? 0 : 7, path);
  }
  return lines;
}

TEST(ProcMaps, ReadsExecutableLinesOnly) {
  const auto mappings = Parsed(
      "55e8e0000000-55e8e0001000 r--p 00000000 08:01 1234                       /usr/bin/cat\n"
      "55e8e0001000-55e8e0005000 r-xp 00001000 08:01 1234                       /usr/bin/cat\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "7ffc001f0000-7ffc001f2000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_THAT(mappings, SizeIs(2));
  EXPECT_EQ(mappings[0].range.start, Address(0x55e8e0001000));
  EXPECT_EQ(mappings[0].range.end, Address(0x55e8e0005000));
  EXPECT_EQ(mappings[0].range.offset, FileOffset(0x1000));
  const MappedFile cat{"/usr/bin/cat", BuildId(), 8, 1, 1234, 0};
  EXPECT_EQ(mappings[0].file, cat);
  EXPECT_EQ(mappings[1].file.path, kVdsoPath);
}

TEST(ProcMaps, KeepsOddPathsWhole) {
  struct Case {
    const char* line;
    const char* path;
  };
  const Case cases[] = {
      {"1000-2000 r-xp 00000000 00:00 0 ", ""},
      {"1000-2000 rwxp 00000000 00:00 0", ""},
      {"1000-2000 r-xp 0 fe:1f 9   /a b  c", "/a b  c"},
      {"1000-2000 r-xp 0 fe:1f 9 /a\\012b\\012", "/a\nb\n"},
      {"1000-2000 r-xp 0 fe:1f 9 /a\\011\\", "/a\\011\\"},
      {"1000-2000 r-xp 0 00:01 7 /memfd:jit (deleted)", "/memfd:jit (deleted)"},
      {"1000-2000 r-xs 0 00:01 7 /dev/zero (deleted)", "/dev/zero (deleted)"},
      {"1000-2000 rwxp 0 00:00 0 [anon:v8 code]", "[anon:v8 code]"},
  };
  for (const Case& c : cases) {
    const auto mappings = Parsed(std::string(c.line) + "\n");
    ASSERT_THAT(mappings, SizeIs(1)) << c.line;
    EXPECT_EQ(mappings[0].file.path, c.path);
  }
}

TEST(ProcMaps, SaysWhatIsWritableToo) {
  const auto mappings = Parsed(
      "1000-2000 r-xp 0 00:00 0\n2000-3000 rwxp 0 00:00 0\n3000-4000 --xp 0 00:00 0\n"
      "4000-5000 -wxs 0 00:00 0\n");
  ASSERT_THAT(mappings, SizeIs(4));
  EXPECT_FALSE(mappings[0].range.writable);
  EXPECT_TRUE(mappings[1].range.writable);
  EXPECT_FALSE(mappings[2].range.writable);
  EXPECT_TRUE(mappings[3].range.writable);
}

TEST(ProcMaps, LeavesOutLinesThatMakeNoSense) {
  EXPECT_THAT(Parsed("\n\nx\n2000-1000 r-xp 0 00:00 0\n1000-2000 r-\n1000 r-xp 0 0:0 0\n"
                     "1000-2000 r-xp 0 zz:00 0 /x\n-r-xp\n99999999999999999999-2 r-xp 0"),
              IsEmpty());
}

TEST(ProcMaps, ReadsALastLineWithoutNewline) {
  EXPECT_THAT(Parsed("1000-2000 r-xp 0 00:00 0 /x"), SizeIs(1));
}

TEST(ProcMaps, MakesOneMappingOfLinesThatContinueIt) {
  const auto mappings = Parsed(
      "1000-2000 r-xp 00001000 08:01 7 /a\n2000-4000 r-xp 00002000 08:01 7 /a\n"
      "4000-5000 r-xp 00004000 08:01 7 /a\n"
      "5000-6000 rwxp 00005000 08:01 7 /a\n"  // writable
      "6000-7000 rwxp 00007000 08:01 7 /a\n"  // elsewhere in the file
      "7000-8000 rwxp 00008000 08:01 8 /a\n"  // another file
      "9000-a000 rwxp 00009000 08:01 8 /a\n"  // not beside it
      "a000-b000 r-xp 00000000 00:00 0\nb000-c000 r-xp 00000000 00:00 0\n");
  ASSERT_THAT(mappings, SizeIs(6));
  EXPECT_EQ(mappings[0].range.start, Address(0x1000));
  EXPECT_EQ(mappings[0].range.end, Address(0x5000));
  EXPECT_EQ(mappings[0].first_line().end, Address(0x2000)) << "what map_files calls it";
  EXPECT_EQ(mappings[5].range.end, Address(0xc000));
}

TEST(ProcMaps, ReadsPiecesOfAnyLength) {
  const std::string text = Lines(5, "/lib/a b") + "90000-91000 r-xp 0 08:01 7 /last";
  for (size_t length = 1; length <= text.size(); ++length) {
    ProcMapsParser parser;
    for (size_t at = 0; at < text.size(); at += length) {
      EXPECT_TRUE(parser.Add(std::string_view(text).substr(at, length)));
    }
    const ProcMaps maps = std::move(parser).Finish();
    ASSERT_THAT(maps.mappings, SizeIs(6)) << "in pieces of " << length;
    EXPECT_EQ(maps.mappings[4].file.path, "/lib/a b");
    EXPECT_EQ(maps.mappings[5].file.path, "/last");
    EXPECT_EQ(maps.bytes, text.size());
    EXPECT_TRUE(maps.complete);
  }
}

TEST(ProcMaps, KeepsNoPathThatIsTooLongToOpen) {
  const std::string line = "1000-2000 r-xp 0 08:01 7 /";
  const std::string longest = std::string(4094, 'x');
  EXPECT_EQ(Parsed(line + longest).at(0).file.path, "/" + longest);
  EXPECT_EQ(Parsed(line + longest + "x").at(0).file.path, "//toolong");
  ProcMapsParser parser;
  parser.Add(line);
  for (int i = 0; i < 1000; ++i) parser.Add(longest);
  parser.Add("\n2000-3000 r-xp 0 08:01 7 /b\n");
  const ProcMaps maps = std::move(parser).Finish();
  ASSERT_THAT(maps.mappings, SizeIs(2));
  EXPECT_EQ(maps.mappings[0].file.path, "//toolong");
  EXPECT_EQ(maps.mappings[1].file.path, "/b");
}

TEST(ProcMaps, StopsAtTheLimitOfFiles) {
  const ProcMapsLimits limits{.files = 10};
  EXPECT_TRUE(Read(Lines(10, "/a"), limits).complete);
  ProcMapsParser parser(limits);
  EXPECT_FALSE(parser.Add(Lines(11, "/a")));
  EXPECT_FALSE(parser.Add("90000000-90001000 r-xp 0 08:01 7 /b\n"));
  const ProcMaps maps = std::move(parser).Finish();
  EXPECT_THAT(maps.mappings, SizeIs(10));
  EXPECT_FALSE(maps.complete);
}

TEST(ProcMaps, LooksForFilesBeyondTheLimitOfAnonymousMappings) {
  const ProcMapsLimits limits{.anonymous = 10};
  EXPECT_TRUE(Read(Lines(10, ""), limits).complete);
  const ProcMaps maps = Read(Lines(11, "") + "90000000-90001000 r-xp 0 08:01 7 /b\n", limits);
  ASSERT_THAT(maps.mappings, SizeIs(11));
  EXPECT_EQ(maps.mappings[10].file.path, "/b");
  EXPECT_FALSE(maps.complete);
}

TEST(ProcMaps, StopsAtTheLimitOfBytes) {
  const std::string lines = Lines(100, "/a");
  EXPECT_TRUE(Read(lines, {.bytes = lines.size() + 1}).complete);
  ProcMapsParser parser({.bytes = lines.size()});
  EXPECT_FALSE(parser.Add(lines));
  EXPECT_FALSE(std::move(parser).Finish().complete);
}

// Pages, and what a mapping says of them.
using Pages = std::map<uint64_t, std::pair<std::string, uint64_t>>;

void Paint(Pages& pages, const FileMapping& range, const std::string& path) {
  for (uint64_t at = range.start.value(); at < range.end.value(); at += 0x1000) {
    pages[at] = {path, range.offset.value() + at - range.start.value()};
  }
}

TEST(ProcMaps, KnowAnonymousMemoryBetterThanTheReportOfItsMapping) {
  ProcMaps maps = Read("10000-12000 r-xp 0 00:00 0 \n20000-22000 r-xp 0 08:01 7 /lib/a\n");
  maps.Map({Address(0x10000), Address(0x18000), FileOffset(0x10000)},
           {.path = "//anon", .build_id = {}});
  maps.Map({Address(0x20000), Address(0x28000), FileOffset(0)}, {.path = "//anon", .build_id = {}});
  ASSERT_THAT(maps.mappings, SizeIs(2));
  EXPECT_EQ(maps.mappings[0].range.end, Address(0x12000));
  EXPECT_EQ(maps.mappings[1].range.end, Address(0x28000));
}

TEST(ProcMaps, HaveWhatWasMappedSince) {
  std::mt19937 random(7);  // NOLINT(*-msc51-cpp): the same each time
  const auto number = [&](uint64_t below) { return uint64_t{random()} % below; };
  for (int round = 0; round < 200; ++round) {
    ProcMaps maps = Read(Lines(4, "/lib/a"));
    Pages pages;
    for (const ProcMapping& m : maps.mappings) Paint(pages, m.range, m.file.path);
    for (int i = 0; i < 6; ++i) {
      const Address start(0xe000 + number(14) * 0x1000);
      const FileMapping range{start, Address(start.value() + number(5) * 0x1000),
                              FileOffset(number(4) * 0x10000)};
      const std::string path = fmt::format("/lib/{}", i);
      maps.Map(range, {.path = path, .build_id = {}});
      Paint(pages, range, path);
    }
    Pages found;
    Address last;
    for (const ProcMapping& m : maps.mappings) {
      EXPECT_GE(m.range.start, last) << "ascending";
      EXPECT_LT(m.range.start, m.range.end);
      EXPECT_GT(m.line_end, m.range.start);
      EXPECT_LE(m.line_end, m.range.end);
      last = m.range.end;
      Paint(found, m.range, m.file.path);
    }
    ASSERT_EQ(found, pages) << "round " << round;
  }
}

}  // namespace
}  // namespace pyrometer
