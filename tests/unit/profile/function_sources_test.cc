// SPDX-License-Identifier: Apache-2.0
#include "profile/function_sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LocationRef At(std::string function, int64_t line, std::string file = "a.cc") {
  return MakeLines({{.function = std::move(function),
                     .system_name = {},
                     .file = std::move(file),
                     .line = line}});
}

// "a.cc:5 self 1 total 3" for each line of `function`, then the hottest one.
std::vector<std::string> LinesOf(const Profile& profile, std::string_view function) {
  const ShownStacks shown(profile);
  const FunctionSources sources(profile, shown);
  const auto frame = std::ranges::find(shown.frames(), function, &ShownFrame::name);
  if (frame == shown.frames().end()) return {"no such function"};
  const auto id = static_cast<uint32_t>(frame - shown.frames().begin());
  std::vector<std::string> lines;
  for (const SourceLine& line : sources.LinesOf(id)) {
    lines.push_back(
        fmt::format("{}:{} self {} total {}", line.file, line.line, line.self, line.total));
  }
  const SourceLine* const hottest = sources.HottestOf(id);
  if (hottest != nullptr) lines.push_back(fmt::format("hottest {}", hottest->line));
  return lines;
}

TEST(FunctionSources, CountsLinesOfCallsAndOfTheFunctionItself) {
  MadeProfile made;
  made.Add({At("main", 7), At("work", 20)}, 5).Add({At("main", 7), At("work", 21)}, 3);
  made.Add({At("main", 8)}, 1);
  EXPECT_THAT(LinesOf(made.profile(), "main"),
              ElementsAre("a.cc:7 self 0 total 8", "a.cc:8 self 1 total 1", "hottest 8"));
  EXPECT_THAT(LinesOf(made.profile(), "work"),
              ElementsAre("a.cc:20 self 5 total 5", "a.cc:21 self 3 total 3", "hottest 20"));
}

TEST(FunctionSources, TakesTheLineOfTheCallForWhatIsInlined) {
  MadeProfile made;
  made.Add({MakeLines({{.function = "inner", .system_name = {}, .file = "a.h", .line = 3},
                       {.function = "outer", .system_name = {}, .file = "a.cc", .line = 9}})},
           4);
  EXPECT_THAT(LinesOf(made.profile(), "inner"), ElementsAre("a.h:3 self 4 total 4", "hottest 3"));
  EXPECT_THAT(LinesOf(made.profile(), "outer"), ElementsAre("a.cc:9 self 0 total 4", "hottest 9"));
}

TEST(FunctionSources, CountsALineOnceInAStack) {
  const LocationRef recursive = At("recursive", 5);
  MadeProfile made;
  made.Add({recursive, recursive, recursive}, 2);
  EXPECT_THAT(LinesOf(made.profile(), "recursive"),
              ElementsAre("a.cc:5 self 2 total 2", "hottest 5"));
}

TEST(FunctionSources, KeepsFewLinesAndTheHottest) {
  MadeProfile made;
  const LocationRef leaf = MakeLocation("leaf");
  for (int i = 1; i <= 9; ++i) made.Add({At("f", i), leaf}, static_cast<uint64_t>(10 + i));
  made.Add({At("f", 30)}, 2);
  EXPECT_THAT(LinesOf(made.profile(), "f"),
              ElementsAre("a.cc:9 self 0 total 19", "a.cc:8 self 0 total 18",
                          "a.cc:7 self 0 total 17", "a.cc:30 self 2 total 2", "hottest 30"));
}

TEST(FunctionSources, KnowsNothingWithoutAFile) {
  MadeProfile made;
  made.Add({MakeLocation("f"), std::make_shared<const Location>()}, 1);
  EXPECT_THAT(LinesOf(made.profile(), "f"), IsEmpty());
  EXPECT_THAT(LinesOf(made.profile(), "[unknown]"), IsEmpty());
}

}  // namespace
}  // namespace pyrometer
