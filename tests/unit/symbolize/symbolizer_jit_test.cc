// SPDX-License-Identifier: Apache-2.0
// How user addresses that lie in no object are named.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "tests/unit/symbolize/jit_dump_file.h"
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

TEST_F(SymbolizerTest, NamesCodeInheritedByForkByThePerfMapOfWhoHasForked) {
  constexpr ProcessKey kGrandchild{Pid(30), StartTime(300)};
  perf_maps_.texts[kAlice] = "7f0000000000 100 of_alice\n7f0000000100 100 replaced\n";
  perf_maps_.texts[kBob] = "7f0000000100 100 of_bob\n";
  perf_maps_.inherited[kBob] = {kAlice};
  perf_maps_.inherited[kGrandchild] = {kBob, kAlice};
  Symbolizer symbolizer = Make();
  const auto names = [&](ProcessKey process) {
    const Window window =
        WindowOf({Frame::User(Address(0x7f0000000010)), Frame::User(Address(0x7f0000000110)),
                  Frame::User(Address(0x7f0000000210))},
                 {process});
    std::vector<std::string> all;
    for (const LocationRef& location : symbolizer.Name(window).locations) {
      all.push_back(OnlyLine(location).function);
    }
    return all;
  };
  const std::vector<std::string> expected = {"of_alice", "of_bob", "[unknown]"};
  EXPECT_EQ(names(kBob), expected) << "its own perf map comes first";
  EXPECT_EQ(names(kGrandchild), expected);
  perf_maps_.texts[kAlice] += "7f0000000200 100 later\n";
  EXPECT_EQ(names(kGrandchild).back(), "later");
  EXPECT_EQ(names(kAlice).at(1), "replaced");
}

// A window that ends at `end`.
Window WindowAt(uint64_t end, uint64_t address, ProcessKey process = kAlice) {
  Window window = WindowOf({Frame::User(Address(address))}, {process});
  window.end = MonotonicTime(end);
  return window;
}

TEST_F(SymbolizerTest, NamesJitCodeByAJitdumpAsItLayWhenTheWindowEnded) {
  constexpr uint64_t kCode = 0x7f0000000000;
  JitDumpFile file;
  file.Lines(kCode, {{kCode, 5, "a.js"}, {kCode + 0x20, 6, "a.js"}});
  file.Load(kCode, 0x100, "first", 10).Load(kCode, 0x80, "second", 20);
  jit_dumps_.files[1] = TextFile(file.bytes());
  jit_dumps_.uses[kAlice] = {{.file = 1, .until = MonotonicTime(UINT64_MAX)}};
  perf_maps_.texts[kAlice] = "7f0000000000 80 of_perf_map\n7f0000001000 80 of_perf_map_only\n";
  Symbolizer symbolizer = Make();
  const auto line = [&](uint64_t end, uint64_t address) {
    return OnlyLine(symbolizer.Name(WindowAt(end, address)).locations.at(0));
  };
  EXPECT_EQ(line(5, kCode).function, "of_perf_map") << "the jitdump tells of nothing there yet";
  EXPECT_EQ(line(15, kCode + 0x24).function, "first");
  EXPECT_EQ(line(15, kCode + 0x24).file, "a.js");
  EXPECT_EQ(line(15, kCode + 0x24).line, 6);
  EXPECT_EQ(line(15, kCode + 0x10).line, 5);
  EXPECT_EQ(line(25, kCode + 0x24).function, "second");
  EXPECT_EQ(line(25, kCode + 0x24).line, 0);
  EXPECT_EQ(line(25, kCode + 0x1000).function, "of_perf_map_only");
  EXPECT_EQ(jit_dumps_.reads, 1) << "it has not grown";
  const NamedWindow one = symbolizer.Name(WindowAt(26, kCode));
  EXPECT_EQ(symbolizer.Name(WindowAt(27, kCode)).locations.at(0), one.locations.at(0));
}

TEST_F(SymbolizerTest, NamesEachStackByWhatLayThereWhenItWasSeen) {
  constexpr uint64_t kCode = 0x7f0000000000;
  jit_dumps_.files[1] = TextFile(
      JitDumpFile().Load(kCode, 0x100, "first", 10).Load(kCode, 0x100, "second", 30).bytes());
  jit_dumps_.uses[kAlice] = {{.file = 1, .until = MonotonicTime(UINT64_MAX)}};
  Window window = WindowOf({Frame::User(Address(kCode))}, {kAlice, kAlice, kAlice, kAlice});
  window.end = MonotonicTime(50);
  for (const auto& [stack, seen] : {std::pair(0U, 5U), std::pair(1U, 20U), std::pair(2U, 40U)}) {
    Sample sample{};
    sample.process = kAlice;
    sample.stack = stack;
    sample.last_seen = MonotonicTime(seen);
    window.samples.push_back(sample);
  }
  std::vector<std::string> names;
  Symbolizer symbolizer = Make();
  for (const LocationRef& location : symbolizer.Name(window).locations) {
    names.push_back(OnlyLine(location).function);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"second", "first", "second", "second"}))
      << "what ran before it was announced is what was announced by the end of the window";
}

TEST_F(SymbolizerTest, NamesCodeOfAChildByItsParentsJitdumpAsItWasAtTheFork) {
  constexpr uint64_t kCode = 0x7f0000000000;
  jit_dumps_.files[1] = TextFile(
      JitDumpFile().Load(kCode, 0x100, "before", 10).Load(kCode, 0x100, "after", 30).bytes());
  jit_dumps_.files[2] = TextFile(JitDumpFile().Load(kCode + 0x100, 0x100, "own", 40).bytes());
  jit_dumps_.uses[kAlice] = {{.file = 1, .until = MonotonicTime(UINT64_MAX)}};
  jit_dumps_.uses[kBob] = {{.file = 2, .until = MonotonicTime(UINT64_MAX)},
                           {.file = 1, .until = MonotonicTime(20)}};
  Symbolizer symbolizer = Make();
  for (const uint64_t end : {50, 60, 70}) {
    const auto name = [&](uint64_t address, ProcessKey process) {
      const Window window = WindowAt(end, address, process);
      return OnlyLine(symbolizer.Name(window).locations.at(0)).function;
    };
    EXPECT_EQ(name(kCode, kBob), "before");
    EXPECT_EQ(name(kCode + 0x100, kBob), "own");
    EXPECT_EQ(name(kCode, kAlice), "after");
  }
}

TEST_F(SymbolizerTest, NamesNothingByAJitdumpThatIsBehind) {
  constexpr uint64_t kCode = 0x7f0000000000;
  jit_dumps_.files[1] = TextFile(JitDumpFile().Load(kCode, 0x100, "known").bytes());
  jit_dumps_.uses[kAlice] = {{.file = 1, .until = MonotonicTime(UINT64_MAX)}};
  jit_dumps_.fail = ErrorCode::kIo;
  perf_maps_.texts[kAlice] = "7f0000000000 80 perhaps_another\n";
  Symbolizer symbolizer = Make();
  const auto name = [&](uint64_t end) {
    return OnlyLine(symbolizer.Name(WindowAt(end, kCode)).locations.at(0)).function;
  };
  EXPECT_EQ(name(10), "[unknown]");
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kNotReady), 1U);
  jit_dumps_.fail.reset();
  EXPECT_EQ(name(20), "known");
  jit_dumps_.files[1] = TextFile("this is no jitdump, but called like one, and long enough");
  EXPECT_EQ(name(30), "perhaps_another");
  EXPECT_EQ(symbolizer.counts().jit_dumps_unreadable, 1U);
}

TEST_F(SymbolizerTest, SharesTheMemoryForJitdumpsAmongAllThatAreInUse) {
  constexpr uint64_t kCode = 0x7f0000000000;
  constexpr size_t kMost = size_t{1} << 20;
  for (uint64_t file = 1; file <= 8; ++file) {
    JitDumpFile dump;
    for (uint64_t i = 0; i < 4000; ++i) {
      dump.Load(kCode + i * 0x10, 0x10, std::string(100, 'a'), 10 + i);
    }
    jit_dumps_.files[file] = TextFile(dump.bytes());
    const ProcessKey process{Pid(static_cast<uint32_t>(file)), StartTime(1)};
    jit_dumps_.uses[process] = {{.file = file, .until = MonotonicTime(UINT64_MAX)}};
  }
  SymbolizerCounts counts;
  JitDumps dumps(jit_dumps_, {.bytes = kMost}, counts);
  for (uint32_t window = 1; window < 4; ++window) {
    dumps.BeginWindow(window, MonotonicTime(10'000 + window));
    for (uint64_t file = 1; file <= 8; ++file) {
      const JitDumpSource::Use use{.file = file, .until = MonotonicTime(UINT64_MAX)};
      EXPECT_TRUE(dumps.Find(use, Address(kCode + 3999 * 0x10), MonotonicTime(10'000)).found)
          << "the newest stays";
      EXPECT_LE(dumps.bytes(), kMost);
    }
    dumps.EndWindow(0);
  }
  EXPECT_GT(counts.jit_dump_functions_forgotten, 0U);
  dumps.EndWindow(10);
  EXPECT_EQ(dumps.bytes(), 0U);
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
