// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/made_up_symbols.h"

namespace pyrometer {
namespace {

SymbolTable OneFunction(size_t name_length = 1000, const SymbolTableOptions& options = {}) {
  MadeUpSymbols symbols(options);
  symbols.Add({.start = ElfAddress(0x1000), .size = 16, .limit = ElfAddress(0x2000)},
              std::string(name_length, 'f'));
  return *symbols.Build();
}

// Has a function for every object but 13, 14, 16 and 17, a long one for 15, with debug information
// one ten times as long for those from 40 on, the same table for all from 20 to 39, and counts how
// often it was asked.
class CountingSource : public ObjectSource {
 public:
  std::optional<ObjectDescription> Describe(ObjectId) override { return ObjectDescription(); }
  SymbolAnswer Symbols(ObjectId object, DebugInfo debug_info) override {
    ++asked[object.value()];
    if (object == ObjectId(18)) return of_18;
    if (object == ObjectId(13)) return {.table = nullptr, .reason = Unresolved::kFileGone};
    if (object == ObjectId(14)) return {.table = nullptr, .reason = Unresolved::kUnreadable};
    if (object == ObjectId(16)) return {.table = nullptr, .reason = Unresolved::kNoRoom};
    if (object == ObjectId(17)) return {.table = nullptr, .reason = Unresolved::kNotReady};
    if (object >= ObjectId(40)) {
      const bool is_all = debug_info == DebugInfo::kIfThere;
      return {.table = std::make_shared<const SymbolTable>(OneFunction(is_all ? 10'000 : 1000)),
              .has_debug_info = is_all};
    }
    if (object >= ObjectId(20)) return {.table = shared};
    return {.table = std::make_shared<const SymbolTable>(
                OneFunction(object == ObjectId(15) ? 10'000 : name_length, options))};
  }
  size_t name_length = 1000;
  SymbolTableOptions options;
  std::map<uint32_t, int> asked;
  std::shared_ptr<const SymbolTable> shared = std::make_shared<const SymbolTable>(OneFunction());
  SymbolAnswer of_18 = {.table = shared, .better_after = 3};
};

TEST(SymbolTableCache, ReadsATableOnce) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache.Get(ObjectId(1), {}, 1).table, nullptr);
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(cache.tables_read(), 1U);
}

TEST(SymbolTableCache, DropsTheLeastRecentlyUsedWhenItIsNoLongerInUse) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 2 * OneFunction().bytes()});
  for (const uint32_t object : {1, 2, 1, 3}) cache.Get(ObjectId(object), {}, 1);
  cache.EndWindow(1, 0);
  EXPECT_EQ(cache.bytes(), 3 * OneFunction().bytes()) << "all are in use";
  cache.EndWindow(1 + SymbolTableCache::kUseWindows, 0);
  EXPECT_EQ(cache.bytes(), 2 * OneFunction().bytes());
  for (const uint32_t object : {1, 2, 3}) cache.Get(ObjectId(object), {}, 20);
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(source.asked[2], 2);
  EXPECT_EQ(source.asked[3], 1);
  EXPECT_EQ(cache.dropped_in_use(), 0U);
}

TEST(SymbolTableCache, ReadsALargeTableOnceHoweverLongItIsInUse) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 1});
  for (uint32_t window = 1; window < 50; window += SymbolTableCache::kUseWindows - 1) {
    EXPECT_TRUE(cache.Get(ObjectId(1), {}, window).table->Find(ElfAddress(0x1008)).has_value());
    cache.EndWindow(window, 0);
  }
  EXPECT_EQ(source.asked[1], 1);
}

TEST(SymbolTableCache, HoldsATableAboveItsMaximumForTheWindowOnly) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 1, .max_bytes = 1});
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache.Get(ObjectId(1), {}, 1).table, nullptr);
  cache.EndWindow(1, 0);
  EXPECT_EQ(cache.bytes(), 0U);
  for (uint32_t window = 2; window < 1 + SymbolTableCache::kUseWindows; ++window) {
    EXPECT_TRUE(cache.BeginWindow(window).failed.empty());
    EXPECT_EQ(cache.Get(ObjectId(1), {}, window).reason, Unresolved::kNoRoom);
    cache.EndWindow(window, window);
  }
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(cache.BeginWindow(7).failed, std::vector<ObjectId>{ObjectId(1)});
  EXPECT_NE(cache.Get(ObjectId(1), {}, 7).table, nullptr);
  EXPECT_EQ(source.asked[1], 2);
}

TEST(SymbolTableCache, HoldsATableAboveItsMaximumBesideAllOthers) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 1, .max_bytes = 2 * OneFunction().bytes()});
  for (const uint32_t object : {1, 15, 15, 2}) {
    EXPECT_NE(cache.Get(ObjectId(object), {}, 1).table, nullptr) << object;
  }
  EXPECT_EQ(cache.Get(ObjectId(15), {}, 1).reason, Unresolved::kNoRoom) << "until another is asked";
  EXPECT_NE(cache.Get(ObjectId(1), {}, 1).table, nullptr);
  cache.EndWindow(1, 0);
  EXPECT_EQ(cache.BeginWindow(1 + SymbolTableCache::kUseWindows).failed,
            std::vector<ObjectId>{ObjectId(15)});
  EXPECT_EQ(source.asked, (std::map<uint32_t, int>{{1, 1}, {2, 1}, {15, 1}}));
  EXPECT_EQ(cache.dropped_in_use(), 1U);
}

TEST(SymbolTableCache, ReadsNothingOverAndOverWhenTablesInUseExceedItsMaximum) {
  CountingSource source;
  const size_t max_bytes = 2 * OneFunction().bytes();
  SymbolTableCache cache(source, {.idle_bytes = 1, .max_bytes = max_bytes});
  constexpr uint32_t kWindows = 60;
  for (uint32_t window = 1; window <= kWindows; ++window) {
    cache.BeginWindow(window);
    for (const uint32_t object : {1, 2, 3}) cache.Get(ObjectId(object), {}, window);
    cache.EndWindow(window, 0);
    EXPECT_LE(cache.bytes(), max_bytes);
  }
  EXPECT_LE(cache.tables_read(), 3 * kWindows / SymbolTableCache::kUseWindows);
  EXPECT_EQ(cache.tables_read(), cache.dropped_in_use() + 2);
}

TEST(SymbolTableCache, HoldsNoMoreThanItsMaximumInTheSpillFile) {
  CountingSource source;
  source.name_length = 100'000;
  source.options.spill = *SpillFile::Open({.directories = {}});
  const uint64_t of_one = OneFunction(source.name_length, source.options).spilled_bytes();
  ASSERT_GE(of_one, source.name_length);
  SymbolTableCache cache(source, {.max_spilled = 2 * of_one});
  for (const uint32_t object : {1, 2, 3}) {
    EXPECT_NE(cache.Get(ObjectId(object), {}, 1).table, nullptr);
  }
  EXPECT_EQ(cache.spilled_bytes(), 2 * of_one);
  EXPECT_EQ(source.options.spill->bytes(), 2 * of_one);
  EXPECT_EQ(cache.Get(ObjectId(1), {}, 1).reason, Unresolved::kNoRoom);
}

TEST(SymbolTableCache, SaysThatThereWasNoRoomForATable) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  EXPECT_EQ(cache.Get(ObjectId(16), {}, 1).reason, Unresolved::kNoRoom);
}

TEST(SymbolTableCache, RemembersFailuresForSomeWindows) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  EXPECT_EQ(cache.Get(ObjectId(13), {}, 5).reason, Unresolved::kFileGone);
  EXPECT_EQ(cache.Get(ObjectId(13), {}, 6).table, nullptr);
  EXPECT_EQ(cache.Get(ObjectId(14), {}, 6).reason, Unresolved::kUnreadable);
  cache.EndWindow(6, 5);
  cache.Get(ObjectId(13), {}, 7);
  EXPECT_EQ(source.asked[13], 1);
  cache.EndWindow(7, 6);
  cache.Get(ObjectId(13), {}, 8);
  EXPECT_EQ(source.asked[13], 2);
}

TEST(SymbolTableCache, SaysWhatMayBeTriedAgain) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  cache.Get(ObjectId(13), {}, 1);
  cache.Get(ObjectId(14), {}, 1);
  cache.EndWindow(1, 0);
  EXPECT_TRUE(cache.BeginWindow(SymbolTableCache::kUseWindows).failed.empty());
  EXPECT_EQ(cache.BeginWindow(1 + SymbolTableCache::kUseWindows).failed,
            std::vector<ObjectId>{ObjectId(13)})
      << "a file may be found again";
  cache.EndWindow(60, 2);
  EXPECT_EQ(cache.BeginWindow(61).failed, std::vector<ObjectId>{ObjectId(14)});
}

TEST(SymbolTableCache, AsksAgainForATableThatMayBeBetterByThen) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  for (uint32_t window = 1; window <= 3; ++window) {
    EXPECT_TRUE(cache.BeginWindow(window).better.empty());
    EXPECT_NE(cache.Get(ObjectId(18), {}, window).table, nullptr);
    cache.Get(ObjectId(1), {}, window);
    cache.EndWindow(window, 0);
  }
  EXPECT_EQ(source.asked[18], 1);
  EXPECT_TRUE(cache.BeginWindow(4).better.empty()) << "it is the same";
  EXPECT_EQ(source.asked[18], 2);
  source.of_18 = {.table = nullptr, .reason = Unresolved::kFileGone};
  EXPECT_TRUE(cache.BeginWindow(7).better.empty());
  EXPECT_EQ(cache.Get(ObjectId(18), {}, 7).table, source.shared.get()) << "there is no other";
  source.of_18 = {.table = std::make_shared<const SymbolTable>(OneFunction())};
  EXPECT_EQ(cache.BeginWindow(8).better, std::vector<ObjectId>{ObjectId(18)});
  EXPECT_EQ(cache.Get(ObjectId(18), {}, 8).table, source.of_18.table.get());
  EXPECT_TRUE(cache.BeginWindow(100).better.empty());
  EXPECT_EQ(source.asked[18], 4);
  EXPECT_EQ(source.asked[1], 1);
}

TEST(SymbolTableCache, HasTablesWithoutDebugInformationWhereThereIsNoRoomForMore) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 1, .max_bytes = 25'000});
  for (uint32_t window = 1; window < SymbolTableCache::kWithoutWindows; ++window) {
    EXPECT_TRUE(cache.BeginWindow(window).better.empty());
    for (const uint32_t object : {1, 40, 41, 42, 43, 44}) {
      EXPECT_NE(cache.Get(ObjectId(object), {}, window).table, nullptr);
      EXPECT_LE(cache.bytes(), 25'000U);
    }
    cache.EndWindow(window, 0);
  }
  EXPECT_EQ(cache.dropped_in_use(), 0U);
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(source.asked[40], 2);
  EXPECT_EQ(cache.BeginWindow(1 + SymbolTableCache::kWithoutWindows).better.size(), 3U);
}

TEST(SymbolTableCache, NamesByATableWithoutDebugInformationWhatIsTooLargeWithIt) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 1, .max_bytes = 5000});
  EXPECT_LT(cache.Get(ObjectId(40), {}, 1).table->bytes(), 5000U);
  EXPECT_EQ(cache.dropped_in_use(), 0U);
}

TEST(SymbolTableCache, AsksInTheNextWindowForWhatWasNotReady) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  EXPECT_EQ(cache.Get(ObjectId(17), {}, 1).reason, Unresolved::kNotReady);
  cache.Get(ObjectId(17), {}, 1);
  EXPECT_EQ(source.asked[17], 1);
  cache.EndWindow(1, 0);
  EXPECT_EQ(cache.BeginWindow(2).failed, std::vector<ObjectId>{ObjectId(17)});
  cache.Get(ObjectId(17), {}, 2);
  EXPECT_EQ(source.asked[17], 2);
}

TEST(SymbolTableCache, CountsATableOnceThatObjectsShare) {
  CountingSource source;
  SymbolTableCache cache(source, {.idle_bytes = 0, .max_bytes = 2 * OneFunction().bytes()});
  for (uint32_t object = 20; object < 30; ++object) {
    EXPECT_EQ(cache.Get(ObjectId(object), {}, 1).table, source.shared.get());
  }
  EXPECT_EQ(cache.bytes(), OneFunction().bytes());
  EXPECT_EQ(cache.dropped_in_use(), 0U);
  cache.EndWindow(1 + SymbolTableCache::kUseWindows, 0);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(SymbolTableCache, ReadsTheVdsoItself) {
  CountingSource source;
  SymbolTableCache cache(source, {});
  ObjectDescription vdso;
  vdso.is_vdso = true;
  const SymbolTableCache::Answer answer = cache.Get(ObjectId(7), vdso, 1);
  ASSERT_NE(answer.table, nullptr);
  EXPECT_FALSE(answer.table->empty());
  EXPECT_TRUE(source.asked.empty());
}

}  // namespace
}  // namespace pyrometer
