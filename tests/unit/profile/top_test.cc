// SPDX-License-Identifier: Apache-2.0
#include "profile/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/printable.h"
#include "profile/text.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first line that has `text` in it.
std::string LineWith(const std::string& page, std::string_view text) {
  for (const std::string& line : LinesOf(page)) {
    if (line.find(text) != std::string::npos) return line;
  }
  return "no line with " + std::string(text);
}

TEST(EncodeTop, CountsSelfAndTotal) {
  const LocationRef main = MakeLocation("main");
  MadeProfile made;
  made.Add({main, MakeLocation("work")}, 600).Add({main}, 400);
  const std::string text = EncodeTop(made.profile());
  EXPECT_EQ(LineWith(text, "work"), "  60.0 %      600  60.0 %      600      work");
  EXPECT_EQ(LineWith(text, "main"), "  40.0 %      400 100.0 %    1,000      main");
}

TEST(EncodeTop, CountsARecursiveFunctionOnceInAStack) {
  const LocationRef recursive = MakeLocation("recursive");
  MadeProfile made;
  made.Add({recursive, recursive, MakeLocation("leaf"), recursive}, 10);
  EXPECT_EQ(LineWith(EncodeTop(made.profile()), "recursive"),
            " 100.0 %       10 100.0 %       10      recursive");
}

TEST(EncodeTop, JoinsInlinedAndOtherCallsOfAFunction) {
  Location inlined;
  inlined.origin = CodeOrigin::kUser;
  inlined.lines = {{.function = "hot", .system_name = {}, .file = {}},
                   {.function = "caller", .system_name = {}, .file = {}}};
  MadeProfile made;
  made.Add({std::make_shared<const Location>(inlined)}, 1).Add({MakeLocation("hot")}, 1);
  EXPECT_EQ(LineWith(EncodeTop(made.profile()), "hot"),
            " 100.0 %        2 100.0 %        2      hot");
}

TEST(EncodeTop, TellsWhereFunctionsAreInTheSourceWhereThereIsRoom) {
  Location location;
  location.origin = CodeOrigin::kUser;
  location.object = MakeObject("/usr/bin/server");
  location.lines = {{.function = "main.serve",
                     .system_name = {},
                     .file = "/src/server/main.go",
                     .line = 15,
                     .start_line = 12}};
  MadeProfile made;
  made.Add({std::make_shared<const Location>(location)}, 1).Add({MakeLocation("f")}, 1);
  const std::string wide = EncodeTop(made.profile(), {.width = 132});
  EXPECT_THAT(LineWith(wide, "FUNCTION"), testing::EndsWith("OBJECT                  SOURCE"));
  EXPECT_THAT(LineWith(wide, "main.serve"),
              testing::EndsWith("server                  main.go:12"));
  EXPECT_THAT(LineWith(wide, "    f"), testing::EndsWith("    f"));
  EXPECT_THAT(EncodeTop(made.profile(), {.width = 100}), Not(HasSubstr("main.go")));
}

TEST(EncodeTop, TakesAFunctionWithLinesOfSeveralFilesForOne) {
  MadeProfile made;
  for (const char* const file : {"", "/src/grammar.go", "/src/grammar.y"}) {
    Location location;
    location.origin = CodeOrigin::kUser;
    location.lines = {{.function = "main.parse", .system_name = {}, .file = file}};
    made.Add({std::make_shared<const Location>(location)}, 1);
  }
  EXPECT_THAT(LineWith(EncodeTop(made.profile(), {.width = 132}), "main.parse"),
              testing::AllOf(testing::StartsWith(" 100.0 %        3"), HasSubstr("grammar.go")));
}

TEST(EncodeTop, MarksKernelAndJit) {
  MadeProfile made;
  made.Add({MakeLocation("jitted", CodeOrigin::kJit),
            MakeLocation("sys_read", CodeOrigin::kKernel, MakeObject("[kernel.kallsyms]"))},
           1);
  const std::string text = EncodeTop(made.profile());
  EXPECT_THAT(LineWith(text, "sys_read"), HasSubstr("[k] sys_read"));
  EXPECT_THAT(LineWith(text, "sys_read"), testing::EndsWith("  [kernel.kallsyms]"));
  EXPECT_THAT(LineWith(text, "jitted"), HasSubstr("[j] jitted"));
}

TEST(EncodeTop, LeavesOutTheMarkersOfCutStacksButSaysHowManyThereAre) {
  MadeProfile made;
  made.Add({MakeLocation("leaf")}, 1, {.end = StackEnd::kTruncated}).Add({MakeLocation("f")}, 3);
  const std::string text = EncodeTop(made.profile());
  EXPECT_EQ(LinesOf(text)[0],
            "4 samples in 10.0 s at 100 Hz (0.0 s of CPU time); 25.0 % of the stacks are cut");
  EXPECT_THAT(text, Not(HasSubstr("[truncated]")));
}

TEST(EncodeTop, ListsProcessesByName) {
  MadeProfile made;
  made.Add({}, 1, {.comm = "cc1", .pid = 1}).Add({}, 2, {.comm = "cc1", .pid = 2});
  made.Add({}, 7, {.comm = "make", .pid = 3});
  const std::string text = EncodeTop(made.profile());
  EXPECT_EQ(LineWith(text, "make"), "  70.0 %        7  make (3)");
  EXPECT_EQ(LineWith(text, "cc1"), "  30.0 %        3  cc1 (2 processes)");
}

TEST(EncodeTop, SaysHowManyRowsItLeftOut) {
  MadeProfile made;
  for (int i = 0; i < 5; ++i) made.Add({MakeLocation("f" + std::to_string(i))}, 1);
  EXPECT_THAT(EncodeTop(made.profile(), {.functions = 2}), HasSubstr("...  3 more functions\n"));
}

TEST(EncodeTop, StaysWithinItsWidthWhateverTheNames) {
  MadeProfile made;
  const std::string name(300, 'n');
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "\xC3\xA4";
  made.Add({MakeLocation(name, CodeOrigin::kUser, MakeObject("/" + name)), MakeLocation(umlauts)},
           123'456'789, {.comm = name});
  for (const size_t width : {80, 100, 160}) {
    for (const std::string& line : LinesOf(EncodeTop(made.profile(), {.width = width}))) {
      EXPECT_LE(CodePoints(line), width) << line;
    }
  }
}

TEST(EncodeTop, EndsNoLineInBlanksAndHasNoControlCharacters) {
  MadeProfile made;
  made.Add({MakeLocation("\x1b[31mred\t")}, 1, {.comm = "\x1b]0;title\a"});
  for (const std::string& line : LinesOf(EncodeTop(made.profile()))) {
    EXPECT_TRUE(IsPrintable(line)) << line;
    EXPECT_THAT(line, Not(testing::EndsWith(" ")));
  }
}

TEST(EncodeTop, SpeaksOfPageFaultsAsCounted) {
  const std::pair<uint64_t, const char*> cases[] = {
      {1, "4,000 samples in 10.0 s for each of 4,000 page faults"},
      {10, "4,000 samples in 10.0 s for every 10 of 40,000 page faults"},
  };
  for (const auto& [period, header] : cases) {
    MadeProfile made;
    made.CountPageFaults(period).Add({MakeLocation("f")}, 4000);
    const std::string text = EncodeTop(made.profile());
    EXPECT_EQ(LinesOf(text)[0], header);
    EXPECT_THAT(text, HasSubstr("SHARE"));
    EXPECT_THAT(text, Not(HasSubstr("CPU")));
    EXPECT_THAT(text, Not(HasSubstr("Hz")));
  }
}

TEST(EncodeTop, OfNothingIsAHeader) {
  EXPECT_EQ(EncodeTop(MadeProfile().profile()),
            "0 samples in 10.0 s at 100 Hz (0.0 s of CPU time)\n");
}

}  // namespace
}  // namespace pyrometer
