// SPDX-License-Identifier: Apache-2.0
// What the perf maps of many processes may take together, and which names that leaves.
#include "symbolize/perf_maps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "symbolize/jit_namer.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

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
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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
    JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget}}, counts_);
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

// So that none is left out for what is read of the first ones, and forgotten for the next.
TEST_F(ManyPerfMaps, HaveTheirPartsFromTheBeginningIfTheyAreKnown) {
  constexpr uint32_t kFunctions = 10'000;
  constexpr uint32_t kProcesses = 24;
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = kBudget, .to_read = 2 * kBudget}},
                 counts_);
  const std::string text = Lines(0, kFunctions);
  for (uint32_t i = 0; i < kProcesses; ++i) perf_maps_.growing_of[Process(i)] = TextFile(text);
  perf_maps_.growing_of[Process(kProcesses)] = TextFile(Lines(0, 10));
  for (uint32_t i = 0; i <= kProcesses; ++i) namer.Expect(Process(i), window_);
  for (uint32_t i = 0; i < kProcesses; ++i) {
    EXPECT_EQ(NameIn(namer, i, kFunctions - 1), "function_9999") << i;
    EXPECT_EQ(NameIn(namer, i, kFunctions - 60), "function_9940") << i;
    EXPECT_LE(namer.bytes(), kBudget) << i;
  }
  EXPECT_EQ(NameIn(namer, kProcesses, 0), "function_0") << "a small one has all";
  EXPECT_EQ(counts_.Of(Unresolved::kNotReady), 0);
  const uint64_t read = kProcesses * text.size() - counts_.perf_map_bytes_left_out;
  EXPECT_LE(read, 2 * kBudget);
}

TEST_F(ManyPerfMaps, AreReadWithinALimitAndTheRestInTheNextWindow) {
  const std::string text = Lines(0, 100);
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.to_read = text.size() * 3 / 2}}, counts_);
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

// Names of functions that were announced anew, or may have been, in lines that are not known.
class OldNames : public ManyPerfMaps,
                 public ::testing::WithParamInterface<std::pair<std::string, size_t>> {};

TEST_P(OldNames, AreNotTold) {
  const auto& [more, budget] = GetParam();
  JitNamer namer(perf_maps_, jit_dumps_, {.perf_maps = {.bytes = budget}}, counts_);
  perf_maps_.growing = TextFile(Lines(0, 10));
  EXPECT_EQ(NameIn(namer, 0, 5), "function_5");
  EndWindow(namer);
  ASSERT_TRUE(WriteAll(perf_maps_.growing.get(), more + Lines(100, 1500)).has_value());
  EXPECT_EQ(NameIn(namer, 0, 5), "[unknown]");
  EXPECT_EQ(NameIn(namer, 0, 1499), "function_1499");
  EXPECT_EQ(counts_.perf_map_bytes_left_out > 0, more.empty());
}

// The beginning of more than can be kept is not read; or it is, and forgotten for what comes
// behind.
INSTANTIATE_TEST_SUITE_P(LeftOutOrForgotten, OldNames,
                         ::testing::Values(std::pair("", size_t{32} << 10),
                                           std::pair("600 100 anew\n", size_t{256} << 10)));

}  // namespace
}  // namespace pyrometer
