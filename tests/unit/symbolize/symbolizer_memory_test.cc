// SPDX-License-Identifier: Apache-2.0
// What a symbolizer forgets, and names again.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "symbolize/symbol_table_cache.h"
#include "tests/unit/symbolize/symbolizer_fixture.h"

namespace pyrometer {
namespace {

TEST_F(SymbolizerTest, KeepsNamesOfTablesThatItDropped) {
  Symbolizer symbolizer =
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_maps = {.bytes = 4096}, .keep_windows = 60});
  perf_maps_.texts[kAlice] = "7f0000000000 100 jitted\n";
  const std::vector<Frame> frames = {InLibrary(0x1010), Frame::User(Address(0x7f0000000010))};
  const NamedWindow first = symbolizer.Name(WindowOf(frames));
  perf_maps_.texts.clear();
  const NamedWindow second = symbolizer.Name(WindowOf(frames));
  EXPECT_EQ(first.locations, second.locations);
  EXPECT_EQ(objects_.reads, 1);
  for (uint32_t i = 0; i < SymbolTableCache::kUseWindows; ++i) symbolizer.Name(WindowOf(frames));
  symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_EQ(objects_.reads, 2);
}

TEST_F(SymbolizerTest, NamesFramesAgainWhoseSymbolsHadNoRoom) {
  Symbolizer symbolizer = Make({.symbol_tables = {.idle_bytes = 0, .max_bytes = 1}});
  EXPECT_EQ(OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010)})).locations[0]).function,
            "foo::bar");
  EXPECT_EQ(symbolizer.counts().symbol_table_bytes, 0U);
  const Frame late = InLibrary(0x1020);
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010), late})).locations[1]).function;
  };
  for (uint32_t window = 2; window < 1 + SymbolTableCache::kUseWindows; ++window) {
    EXPECT_EQ(name(), "libfoo.so+0x1020");
  }
  EXPECT_EQ(objects_.reads, 1);
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kNoRoom), 1U);
  EXPECT_EQ(name(), "foo::bar");
  EXPECT_EQ(objects_.reads, 2);
  EXPECT_EQ(symbolizer.counts().tables_dropped_in_use, 2U);
}

TEST_F(SymbolizerTest, NamesFramesAgainWhoseFileWasMissingForATime) {
  Symbolizer symbolizer = Make();
  const auto locations = [&] {
    return symbolizer.Name(WindowOf({InLibrary(0x1010), InLibrary(0x1110)})).locations;
  };
  objects_.missing = true;
  EXPECT_EQ(OnlyLine(locations()[0]).function, "libfoo.so+0x1010");
  objects_.missing = false;
  for (uint32_t window = 2; window < 1 + SymbolTableCache::kUseWindows; ++window) {
    EXPECT_EQ(OnlyLine(locations()[0]).function, "libfoo.so+0x1010");
  }
  EXPECT_EQ(objects_.reads, 1);
  const std::vector<LocationRef> found = locations();
  EXPECT_EQ(OnlyLine(found[0]).function, "foo::bar");
  EXPECT_EQ(OnlyLine(found[1]).function, "bad\uFFFDname\uFFFD");
  EXPECT_EQ(found[0]->quality, NameQuality::kSymbol);
  EXPECT_TRUE(found[0]->object->has_functions);
  EXPECT_EQ(locations(), found);
}

TEST_F(SymbolizerTest, NamesFramesInTheNextWindowWhoseSymbolsWereNotReady) {
  Symbolizer symbolizer = Make();
  const auto name = [&] {
    return OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010)})).locations[0]).function;
  };
  objects_.late = true;
  EXPECT_EQ(name(), "libfoo.so+0x1010");
  EXPECT_EQ(symbolizer.counts().Of(Unresolved::kNotReady), 1U);
  objects_.late = false;
  EXPECT_EQ(name(), "foo::bar");
}

TEST_F(SymbolizerTest, KeepsNamesWhoseFileIsMissingLater) {
  Symbolizer symbolizer = Make({.symbol_tables = {.idle_bytes = 0}});
  const auto name = [&](uint64_t address) {
    return OnlyLine(symbolizer.Name(WindowOf({InLibrary(0x1010), InLibrary(address)})).locations[0])
        .function;
  };
  EXPECT_EQ(name(0x1010), "foo::bar");
  for (uint32_t i = 0; i < SymbolTableCache::kUseWindows; ++i) name(0x1010);
  objects_.missing = true;
  for (uint32_t i = 0; i < 3 * SymbolTableCache::kUseWindows; ++i) {
    EXPECT_EQ(name(0x1020), "foo::bar");
  }
  EXPECT_GE(objects_.reads, 3);
}

TEST_F(SymbolizerTest, ForgetsLocationsThatAreNoLongerUsed) {
  Symbolizer symbolizer =
      Make({.symbol_tables = {.idle_bytes = 0}, .perf_maps = {.bytes = 0}, .keep_windows = 2});
  const std::weak_ptr<const Location> location =
      symbolizer.Name(WindowOf({InLibrary(0x1010)})).locations.at(0);
  symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_FALSE(location.expired());
  for (int i = 0; i < 3; ++i) symbolizer.Name(WindowOf({InLibrary(0x1020)}));
  EXPECT_TRUE(location.expired());
}

}  // namespace
}  // namespace pyrometer
