// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "symbolize/symbol_table_builder.h"

namespace pyrometer {
namespace {

SymbolTable OneFunction() {
  SymbolTableBuilder builder;
  EXPECT_TRUE(builder
                  .Add({.start = ElfAddress(0x1000), .size = 16, .limit = ElfAddress(0x2000)},
                       std::string(1000, 'f'))
                  .has_value());
  return std::move(builder).Build();
}

// Has a function for every object but 13, and counts how often it was asked.
class CountingSource : public ObjectSource {
 public:
  std::optional<ObjectDescription> Describe(ObjectId) override { return ObjectDescription(); }
  Result<SymbolTable> Symbols(ObjectId object) override {
    ++asked[object.value()];
    if (object == ObjectId(13)) return Fail(ErrorCode::kNotFound, "gone");
    if (object == ObjectId(14)) return Fail(ErrorCode::kMalformed, "damaged");
    return OneFunction();
  }
  std::map<uint32_t, int> asked;
};

TEST(SymbolTableCache, ReadsATableOnce) {
  CountingSource source;
  SymbolTableCache cache(source, 1 << 20);
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache.Get(ObjectId(1), {}, 1).table, nullptr);
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(cache.tables_read(), 1U);
}

TEST(SymbolTableCache, DropsTheLeastRecentlyUsedBeyondItsBudget) {
  CountingSource source;
  SymbolTableCache cache(source, 2 * OneFunction().bytes());
  cache.Get(ObjectId(1), {}, 1);
  cache.Get(ObjectId(2), {}, 1);
  cache.Get(ObjectId(1), {}, 1);
  cache.Get(ObjectId(3), {}, 1);
  EXPECT_LE(cache.bytes(), 2 * OneFunction().bytes());
  cache.Get(ObjectId(1), {}, 1);
  cache.Get(ObjectId(2), {}, 1);
  EXPECT_EQ(source.asked[1], 1);
  EXPECT_EQ(source.asked[2], 2);
}

TEST(SymbolTableCache, HoldsATableAboveItsBudgetOnlyWhileInUse) {
  CountingSource source;
  SymbolTableCache cache(source, 1);
  EXPECT_TRUE(cache.Get(ObjectId(1), {}, 1).table->Find(ElfAddress(0x1008)).has_value());
  cache.EndWindow(0);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(SymbolTableCache, RemembersFailuresForSomeWindows) {
  CountingSource source;
  SymbolTableCache cache(source, 1 << 20);
  EXPECT_EQ(cache.Get(ObjectId(13), {}, 5).reason, Unresolved::kFileGone);
  EXPECT_EQ(cache.Get(ObjectId(13), {}, 6).table, nullptr);
  EXPECT_EQ(cache.Get(ObjectId(14), {}, 6).reason, Unresolved::kUnreadable);
  cache.EndWindow(5);
  cache.Get(ObjectId(13), {}, 7);
  EXPECT_EQ(source.asked[13], 1);
  cache.EndWindow(6);
  cache.Get(ObjectId(13), {}, 8);
  EXPECT_EQ(source.asked[13], 2);
}

TEST(SymbolTableCache, ReadsTheVdsoItself) {
  CountingSource source;
  SymbolTableCache cache(source, 1 << 20);
  ObjectDescription vdso;
  vdso.is_vdso = true;
  const SymbolTableCache::Answer answer = cache.Get(ObjectId(7), vdso, 1);
  ASSERT_NE(answer.table, nullptr);
  EXPECT_FALSE(answer.table->empty());
  EXPECT_TRUE(source.asked.empty());
}

}  // namespace
}  // namespace pyrometer
