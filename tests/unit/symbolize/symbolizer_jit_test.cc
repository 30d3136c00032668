// SPDX-License-Identifier: Apache-2.0
// How user addresses that lie in no object are named.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "tests/shared/made_up_jit_dump.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

TEST_F(SymbolizerTest, NamesUserAddressesByTheProcessWhoseStackItIs) {
  jits_.texts[kAlice] = "7f0000000000 100 of_alice\n";
  jits_.texts[kBob] = "7f0000000000 100 of_bob\n";
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
  jits_.texts[kAlice] = "7f0000000000 100 interpreted\n";
  EXPECT_EQ(name(), "interpreted");
  jits_.texts[kAlice] += "7f0000000000 100 optimized\n";
  EXPECT_EQ(name(), "optimized");
  jits_.texts.erase(kAlice);
  EXPECT_EQ(name(), "optimized") << "the process has ended, its samples are still coming";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineWhenTheProcessHasEnded) {
  jits_.texts[kAlice] = "7f0000000000 100 last";
  jits_.texts[kBob] = "7f0000000000 100 la";
  jits_.ended.insert(kAlice);
  Symbolizer symbolizer = Make();
  const auto name = [&](ProcessKey process) {
    const Window window = WindowOf({Frame::User(Address(0x7f0000000010))}, {process});
    return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
  };
  EXPECT_EQ(name(kAlice), "last");
  EXPECT_EQ(name(kBob), "[unknown]");
  jits_.ended = {kBob};
  EXPECT_EQ(name(kBob), "la");
  jits_.ended.clear();
  jits_.texts[kBob] += "s";
  EXPECT_EQ(name(kBob), "[unknown]") << "a part of a name is forgotten when its line grows";
}

TEST_F(SymbolizerTest, TakesALastLineWithoutANewlineForMadeUpWhileItMayGrow) {
  jits_.growing = TextFile("7f0000000000 100 la");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(OnlyLine(location()).function, "la");
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  EXPECT_EQ(location(), location()) << "one for all windows";
  jits_.ended.insert(kAlice);
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "its writer is gone";
  jits_.ended.clear();
  EXPECT_EQ(location()->quality, NameQuality::kSymbol) << "a name stays";
  ASSERT_TRUE(WriteAll(jits_.growing.get(), "st\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, TakesALastLineForANameWhenItsNewlineComes) {
  jits_.growing = TextFile("7f0000000000 100 last");
  Symbolizer symbolizer = Make();
  const auto location = [&] {
    return symbolizer.Name(WindowOf({Frame::User(Address(0x7f0000000010))})).locations.at(0);
  };
  location();
  EXPECT_EQ(location()->quality, NameQuality::kMadeUp);
  ASSERT_TRUE(WriteAll(jits_.growing.get(), "\n").has_value());
  EXPECT_EQ(OnlyLine(location()).function, "last");
  EXPECT_EQ(location()->quality, NameQuality::kSymbol);
}

TEST_F(SymbolizerTest, NamesByTheJitDumpAndOnlyThenByThePerfMap) {
  jits_.texts[kAlice] = "7f0000000000 200 of_the_map\n";
  jits_.dumps[kAlice] = TextFile(MadeUpJitDump()
                                     .Lines(0x7f0000000000, {{0x7f0000000000, 7, "/src/a.js"}})
                                     .Load(1, 0x7f0000000000, 0x100, "of_the_dump")
                                     .bytes());
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(
      WindowOf({Frame::User(Address(0x7f0000000010)), Frame::User(Address(0x7f0000000110))}));
  const Line& line = OnlyLine(named.locations.at(0));
  EXPECT_EQ(line.function, "of_the_dump");
  EXPECT_EQ(line.file, "/src/a.js");
  EXPECT_EQ(line.line, 7);
  EXPECT_EQ(named.locations.at(0)->quality, NameQuality::kSymbol);
  EXPECT_EQ(OnlyLine(named.locations.at(1)).function, "of_the_map");
}

TEST_F(SymbolizerTest, NamesJitCodeAsOfWhenItWasSampled) {
  const uint64_t now = MonotonicNow().value();
  jits_.dumps[kAlice] = TextFile(MadeUpJitDump()
                                     .Load(now - 2000, 0x1000, 0x100, "first")
                                     .Load(now - 1000, 0x1000, 0x100, "second")
                                     .bytes());
  Window window = WindowOf({Frame::User(Address(0x1010))}, {kAlice, kAlice, kAlice});
  const auto add_sample = [&](uint32_t stack, uint64_t last_seen) {
    Sample sample;
    sample.stack = stack;
    sample.last_seen = MonotonicTime(last_seen);
    window.samples.push_back(sample);
  };
  add_sample(0, now);
  add_sample(1, now - 1500);
  add_sample(2, now - 1500);
  add_sample(2, now - 10);
  Symbolizer symbolizer = Make();
  const NamedWindow named = symbolizer.Name(std::move(window));
  EXPECT_EQ(OnlyLine(named.locations.at(0)).function, "second");
  EXPECT_EQ(OnlyLine(named.locations.at(1)).function, "first");
  EXPECT_EQ(OnlyLine(named.locations.at(2)).function, "second") << "seen before and after";
}

TEST_F(SymbolizerTest, CountsWhatIsWrongWithJitDumps) {
  const Window window = WindowOf({Frame::User(Address(0x1010))});
  Symbolizer symbolizer = Make();
  jits_.dumps[kAlice] = TextFile(MadeUpJitDump({.flags = 1}).Load(1, 0x1000, 0x100, "a").bytes());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(OnlyLine(symbolizer.Name(window).locations.at(0)).function, "[unknown]");
  }
  EXPECT_EQ(symbolizer.counts().jit_dumps_refused, 1U);
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kUnmapped), 1U);
  jits_.dumps[kAlice] =
      TextFile(MadeUpJitDump().Load(1, 0x1000, 0, "bad").Load(1, 0x2000, 0x100, "a").bytes());
  symbolizer.Name(window);
  symbolizer.Name(window);
  EXPECT_EQ(symbolizer.counts().bad_jit_dump_records, 1U);
}

// What lies there now is unknown, and not what lay there before.
TEST_F(SymbolizerTest, ForgetsTheNameOfCodeInWhosePlaceSomethingCameWithoutRoom) {
  Symbolizer symbolizer = Make({.jit_dump_bytes = 1000});
  MadeUpJitDump dump;
  dump.Load(1, 0x1000, 0x100, "first");
  const auto name = [&] {
    const Window window = WindowOf({Frame::User(Address(0x1010))});
    return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
  };
  jits_.dumps[kAlice] = TextFile(dump.bytes());
  EXPECT_EQ(name(), "first");
  dump.Load(2, 0x2000, 0x100, std::string(900, 'x')).Load(3, 0x1000, 0x100, "second");
  jits_.dumps[kAlice] = TextFile(dump.bytes());
  EXPECT_EQ(name(), "[unknown]");
  EXPECT_EQ(symbolizer.counts().jit_dump_passed_over, 1U);
}

TEST_F(SymbolizerTest, ForgetsJitDumpsBeyondItsBudgetAndReadsThemAgain) {
  Symbolizer symbolizer = Make({.jit_dump_bytes = 1000});
  const auto name = [&](ProcessKey process) {
    const Window window = WindowOf({Frame::User(Address(0x1010))}, {process});
    return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
  };
  const std::string long_name(700, 'x');
  for (const ProcessKey process : {kAlice, kBob}) {
    jits_.dumps[process] = TextFile(MadeUpJitDump().Load(1, 0x1000, 0x100, long_name).bytes());
  }
  EXPECT_EQ(name(kAlice), long_name);
  EXPECT_EQ(symbolizer.counts().jit_dumps_dropped, 0U);
  EXPECT_EQ(name(kBob), long_name);
  EXPECT_EQ(symbolizer.counts().jit_dumps_dropped, 1U) << "Alice's";
  EXPECT_EQ(name(kAlice), long_name);
  EXPECT_EQ(symbolizer.counts().jit_dumps_dropped, 2U) << "Bob's";
}

TEST_F(SymbolizerTest, NamesStacksThatAreNobodys) {
  Symbolizer symbolizer = Make();
  Window window = WindowOf({Frame::User(Address(0x10))});
  window.stacks[0].process.reset();
  EXPECT_EQ(OnlyLine(symbolizer.Name(std::move(window)).locations.at(0)).function, "[unknown]");
}

}  // namespace
}  // namespace pyrometer
