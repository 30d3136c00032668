// SPDX-License-Identifier: Apache-2.0
// How user addresses that lie in no object are named.
#include <fmt/format.h>
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

// Processes with perf maps, named by a namer with a small budget.
class ManyPerfMaps : public SymbolizerTest {
 protected:
  static constexpr uint64_t kStep = 0x100;
  static constexpr size_t kBudget = size_t{256} << 10;

  static ProcessKey Process(uint32_t i) { return {Pid(1000 + i), StartTime(1)}; }

  // Functions `first` to before `last`, one behind the other.
  static std::string Lines(uint32_t first, uint32_t last) {
    std::string text;
    for (uint32_t i = first; i < last; ++i) {
      text += fmt::format("{:x} {:x} function_{}\n", (i + 1) * kStep, kStep, i);
    }
    return text;
  }

  std::string NameIn(JitNamer& namer, uint32_t process, uint32_t function) {
    const Frame frame = Frame::User(Address((function + 1) * kStep + 1));
    return OnlyLine(namer.Name(frame, Process(process), window_)).function;
  }

  void EndWindow(JitNamer& namer) {
    namer.EndWindow(window_ > 60 ? window_ - 60 : 0);
    ++window_;
  }

  uint32_t window_ = 1;
  SymbolizerCounts counts_;
};

TEST_F(ManyPerfMaps, ShareOneBudgetWhatsoeverTheyHold) {
  constexpr uint32_t kFunctions = 1250;
  constexpr uint32_t kProcesses = 24;
  JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
  for (uint32_t i = 0; i < kProcesses; ++i) perf_maps_.texts[Process(i)] = Lines(0, kFunctions);
  for (int window = 0; window < 3; ++window) {
    for (uint32_t i = 0; i < kProcesses; ++i) {
      EXPECT_EQ(NameIn(namer, i, kFunctions - 1), "function_1249") << i;
      EXPECT_LE(namer.bytes(), kBudget) << i;
    }
    EndWindow(namer);
  }
  EXPECT_EQ(NameIn(namer, 0, 0), "[unknown]");
  EXPECT_GT(counts_.perf_map_functions_forgotten, 0);
  EXPECT_GT(counts_.perf_map_bytes_left_out, 0);
}

TEST_F(ManyPerfMaps, GiveWayWhenTheyWereNotNeededOfLate) {
  JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
  for (uint32_t i = 0; i < 7; ++i) {
    perf_maps_.texts[Process(i)] = Lines(0, 750);
    EXPECT_EQ(NameIn(namer, i, 0), "function_0") << "nearly a quarter is its own";
    EXPECT_LE(namer.bytes(), kBudget);
    for (int window = 0; window < 8; ++window) EndWindow(namer);
  }
  EXPECT_EQ(counts_.perf_map_functions_forgotten, 0);
  perf_maps_.texts.erase(Process(0));
  EXPECT_EQ(NameIn(namer, 0, 0), "function_0") << "a name holds";
  EXPECT_EQ(NameIn(namer, 0, 1), "[unknown]") << "it had to go";
  EXPECT_EQ(NameIn(namer, 1, 1), "function_1") << "and is read again";
}

// Four take all, and are needed all the time; many more need little.
TEST_F(ManyPerfMaps, TakeFromLargeOnesNoMoreThanTheyNeed) {
  JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
  for (uint32_t i = 0; i < 4; ++i) perf_maps_.growing_of[Process(i)] = TextFile(Lines(0, 1000));
  for (uint32_t i = 4; i < 54; ++i) perf_maps_.growing_of[Process(i)] = TextFile(Lines(0, 3));
  for (int window = 0; window < 3; ++window) {
    for (uint32_t i = 0; i < 54; ++i) {
      const uint32_t last = i < 4 ? 999 : 2;
      EXPECT_EQ(NameIn(namer, i, last), fmt::format("function_{}", last));
      EXPECT_LE(namer.bytes(), kBudget);
    }
    EndWindow(namer);
  }
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(NameIn(namer, i, 500), "function_500") << i;
}

TEST_F(ManyPerfMaps, AreWholeAgainWhenOthersAreGone) {
  for (const uint32_t processes : {5, 24}) {
    JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
    for (uint32_t i = 0; i < processes; ++i) {
      perf_maps_.growing_of[Process(i)] = TextFile(Lines(0, 875));
      NameIn(namer, i, 874);
    }
    EndWindow(namer);
    uint32_t cut = 0;  // one that had to give way
    while (cut < processes && NameIn(namer, cut, 0) == "function_0") ++cut;
    ASSERT_LT(cut, processes);
    for (int window = 0; window < 8; ++window) {
      EndWindow(namer);
      NameIn(namer, cut, 874);
    }
    EXPECT_EQ(NameIn(namer, cut, 0), "function_0") << processes;
  }
}

TEST_F(ManyPerfMaps, AreNotReadAgainInEachWindow) {
  JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
  for (uint32_t i = 0; i < 24; ++i) {
    perf_maps_.growing_of[Process(i)] = TextFile(Lines(0, 875));
  }
  uint64_t forgotten = 0;
  for (int window = 0; window < 20; ++window) {
    if (window == 8) forgotten = counts_.perf_map_functions_forgotten;
    for (uint32_t i = window % 2; i < 24; i += 2) NameIn(namer, i, 874);  // half of them
    EndWindow(namer);
  }
  EXPECT_GT(forgotten, 0);
  EXPECT_EQ(counts_.perf_map_functions_forgotten, forgotten) << "as they would be again";
}

// Their names hold, and so they take memory.
TEST_F(ManyPerfMaps, CountThoughTheirFilesAreGone) {
  JitNamer namer(perf_maps_, {.bytes = kBudget}, counts_);
  for (uint32_t generation = 1; generation <= 3; ++generation) {
    for (uint32_t i = 0; i < 4; ++i) {
      perf_maps_.texts[Process(4 * (generation - 1) + i)] = Lines(0, 1000);
    }
    for (uint32_t i = 0; i < 4 * generation; ++i) {
      NameIn(namer, i, 999);
      EXPECT_LE(namer.bytes(), kBudget) << generation;
    }
    EndWindow(namer);
    perf_maps_.texts.clear();
  }
}

TEST_F(ManyPerfMaps, AreReadWithinALimitAndTheRestInTheNextWindow) {
  const std::string text = Lines(0, 100);
  JitNamer namer(perf_maps_, {.to_read = text.size() * 3 / 2}, counts_);
  for (uint32_t i = 0; i < 2; ++i) {
    perf_maps_.growing_of[Process(i)] = TextFile(text);
  }
  EXPECT_EQ(NameIn(namer, 0, 5), "function_5");
  EXPECT_EQ(NameIn(namer, 1, 5), "[unknown]");
  const Frame frame = Frame::User(Address(0x601));
  EXPECT_EQ(namer.Name(frame, Process(1), window_), namer.Name(frame, Process(1), window_));
  EXPECT_EQ(counts_.Of(Unresolved::kNotReady), 1);
  EndWindow(namer);
  EXPECT_EQ(NameIn(namer, 0, 6), "function_6") << "of which nothing is new";
  EXPECT_EQ(NameIn(namer, 1, 5), "function_5");
  EndWindow(namer);
  // Who was behind is not behind for good, however much others before it have to read.
  const auto grow = [&](uint32_t process, uint32_t from) {
    const std::string more = Lines(from, from + 90);
    ASSERT_TRUE(WriteAll(perf_maps_.growing_of[Process(process)].get(), more).has_value());
  };
  grow(0, 200);
  grow(1, 200);
  EXPECT_EQ(NameIn(namer, 0, 289), "function_289");
  EXPECT_EQ(NameIn(namer, 1, 289), "[unknown]");
  EndWindow(namer);
  grow(0, 300);
  EXPECT_EQ(NameIn(namer, 0, 389), "[unknown]");
  EXPECT_EQ(NameIn(namer, 1, 289), "function_289");
}

TEST_F(ManyPerfMaps, TellNoOldNameOfCodeThatMayBeNew) {
  JitNamer namer(perf_maps_, {.bytes = size_t{64} << 10}, counts_);
  perf_maps_.growing = TextFile(Lines(0, 10));
  EXPECT_EQ(NameIn(namer, 0, 5), "function_5");
  EndWindow(namer);
  // Somewhere in more than can be kept, function 5 may have been announced anew.
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), Lines(100, 5000)).has_value());
  EXPECT_EQ(NameIn(namer, 0, 5), "[unknown]");
  EXPECT_EQ(NameIn(namer, 0, 4999), "function_4999");
}

// Function 5 is announced anew, and forgotten at once for what comes behind.
TEST_F(ManyPerfMaps, TellNoOldNameOfCodeWhoseNewOneIsForgotten) {
  JitNamer namer(perf_maps_, {.bytes = size_t{256} << 10}, counts_);
  perf_maps_.growing = TextFile(Lines(0, 10));
  EXPECT_EQ(NameIn(namer, 0, 5), "function_5");
  EndWindow(namer);
  const std::string more = Lines(5, 6) + Lines(100, 1500);
  ASSERT_LT(more.size(), size_t{128} << 10) << "all of it is read";
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), more).has_value());
  EXPECT_EQ(NameIn(namer, 0, 5), "[unknown]");
  EXPECT_EQ(NameIn(namer, 0, 1499), "function_1499");
  EXPECT_EQ(counts_.perf_map_bytes_left_out, 0);
}

TEST_F(SymbolizerTest, NamesStacksThatAreNobodys) {
  Symbolizer symbolizer = Make();
  Window window = WindowOf({Frame::User(Address(0x10))});
  window.stacks[0].process.reset();
  EXPECT_EQ(OnlyLine(symbolizer.Name(std::move(window)).locations.at(0)).function, "[unknown]");
}

}  // namespace
}  // namespace pyrometer
