// SPDX-License-Identifier: Apache-2.0
// How user addresses that lie in no object are named.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

TEST_F(SymbolizerTest, NamesUserAddressesByTheProcessWhoseStackItIs) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 of_alice\n";
  perf_maps_.texts[kBob] = "7f0000000000 100 of_bob\n";
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(
      WindowOf({Frame::User(Address(0x7f0000000010)), InLibrary(0x1010)}, {kAlice, kBob}));
  std::vector<std::string> names;
  for (const LocationRef& location : named.locations) names.push_back(OnlyLine(location).function);
  EXPECT_EQ(names, (std::vector<std::string>{"of_alice", "foo::bar", "of_bob", "foo::bar"}));
}

TEST_F(SymbolizerTest, FollowsAPerfMapThatGrows) {
  constexpr Frame kFrame = Frame::User(Address(0x7f0000000010));
  Symbolizer symbolizer = Make();
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({kFrame})).locations.at(0)).function;
  };
  EXPECT_EQ(name(), "[unknown]");
  perf_maps_.texts[kAlice] = "7f0000000000 100 interpreted\n";
  EXPECT_EQ(name(), "interpreted");
  perf_maps_.texts[kAlice] += "7f0000000000 100 optimized\n";
  EXPECT_EQ(name(), "optimized");
  perf_maps_.texts.erase(kAlice);
  EXPECT_EQ(name(), "optimized") << "the process has ended, its samples are still coming";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineWhenTheProcessHasEnded) {
  perf_maps_.texts[kAlice] = "7f0000000000 100 last";
  perf_maps_.texts[kBob] = "7f0000000000 100 la";
  perf_maps_.ended.insert(kAlice);
  Symbolizer symbolizer = Make();
  const auto name = [&](ProcessKey process) {
    const Window window = WindowOf({Frame::User(Address(0x7f0000000010))}, {process});
    return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
  };
  EXPECT_EQ(name(kAlice), "last");
  EXPECT_EQ(name(kBob), "[unknown]");
  perf_maps_.ended = {kBob};
  EXPECT_EQ(name(kBob), "la");
  perf_maps_.ended.clear();
  perf_maps_.texts[kBob] += "s";
  EXPECT_EQ(name(kBob), "[unknown]") << "a part of a name is forgotten when its line grows";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineForMadeUpWhileItMayGrow) {
  perf_maps_.growing = TextFile("7f0000000000 100 la");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(OnlyLine(location()).function, "la");
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  EXPECT_EQ(location(), location()) << "one for all windows";
  perf_maps_.ended.insert(kAlice);
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "its writer is gone";
  perf_maps_.ended.clear();
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "a name stays";
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), "st\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, TakesALastLineForANameWhenItsNewlineComes) {
  perf_maps_.growing = TextFile("7f0000000000 100 last");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), "\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, NamesStacksThatAreNobodys) {
  Symbolizer symbolizer = Make();
  Window window = WindowOf({Frame::User(Address(0x10))});
  window.stacks[0].process.reset();
  EXPECT_EQ(OnlyLine(symbolizer.Name(std::move(window)).locations.at(0)).function, "[unknown]");
}

}  // namespace
}  // namespace pyrometer
