// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbol_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/shared/made_up_symbols.h"

namespace pyrometer {
namespace {

using Binding = DeclaredFunction::Binding;

struct Declared {
  const char* name;
  uint64_t start;
  uint64_t size = 0;
  uint64_t limit = 0x10000;  // of the section
  Binding binding = Binding::kGlobal;
  bool typed = true;
};

Result<SymbolTable> TableIn(const SymbolTableOptions& options,
                            const std::vector<Declared>& functions) {
  MadeUpSymbols symbols(options);
  for (const Declared& f : functions) {
    symbols.Add({.start = ElfAddress(f.start),
                 .size = f.size,
                 .limit = ElfAddress(f.limit),
                 .binding = f.binding,
                 .typed = f.typed},
                f.name);
  }
  return symbols.Build();
}

SymbolTable TableOf(const std::vector<Declared>& functions) {
  Result<SymbolTable> table = TableIn({}, functions);
  EXPECT_TRUE(table.has_value());
  return *std::move(table);
}

std::string NameAt(const SymbolTable& table, uint64_t address) {
  const std::optional<Symbol> symbol = table.Find(ElfAddress(address));
  return symbol ? symbol->name : "-";
}

TEST(SymbolTable, EmptyKnowsNothing) {
  EXPECT_EQ(NameAt(SymbolTable(), 0), "-");
  EXPECT_EQ(NameAt(TableOf({}), ~uint64_t{0}), "-");
}

TEST(SymbolTable, GivesStartAndSizeWithTheName) {
  const SymbolTable table = TableOf({{"f", 0x1000, 0x20}});
  const std::optional<Symbol> symbol = table.Find(ElfAddress(0x101f));
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(symbol->start, ElfAddress(0x1000));
  EXPECT_EQ(symbol->size, 0x20U);
}

std::string LinesAt(const SymbolTable& table, uint64_t address) {
  std::string text;
  for (const SourceLine& line : table.LinesAt(ElfAddress(address))) {
    text += fmt::format("{}@{}:{} ", line.function, line.file, line.line);
  }
  return text;
}

// 1,000 functions of 16 bytes, each of a line of its own, and a large record.
Result<SymbolTable> TableWithSources(const SymbolTableOptions& options = {}) {
  MadeUpSymbols symbols(options);
  for (uint32_t i = 0; i < 1000; ++i) {
    const ElfAddress start(0x1000 + i * 16);
    symbols.Add({.start = start, .size = 16, .limit = ElfAddress(0x10000)}, fmt::format("f{}", i));
    SourceRecord record{.start_line = i, .calls = {}, .rows = {}};
    record.calls = {{.name = 1, .within = {}, .from = {0, i}, .start_line = 3}};
    record.rows = {{.size = 8, .call = {}, .place = {0, i + 1}},
                   {.size = 4, .call = 0, .place = {2, i + 2}}};
    if (i == 500)
      record.rows.insert(record.rows.end(), 4, {.size = 1, .call = {}, .place = {2, 9}});
    if (i == 501) record.calls.resize(1000, record.calls[0]);
    symbols.AddSource({start, ElfAddress(start.value() + 16)}, record);
  }
  symbols.PutText(1, "inlined@somewhere");
  symbols.PutText(0, "a@v1/f.c");
  symbols.PutText(2, "f.h");
  return symbols.Build();
}

TEST(SymbolTable, KnowsTheSourceOfCode) {
  for (const bool is_spilled : {false, true}) {
    SymbolTableOptions options;
    if (is_spilled) options.spill = *SpillFile::Open({.directories = {}});
    const SymbolTable table = *TableWithSources(options);
    EXPECT_EQ(LinesAt(table, 0x1000), "@a@v1/f.c:1 ");
    EXPECT_EQ(LinesAt(table, 0x1009), "inlined@somewhere@f.h:2 @a@v1/f.c:0 ");
    EXPECT_EQ(LinesAt(table, 0x100c), "") << "of this part nothing is known";
    EXPECT_EQ(LinesAt(table, 0x1000 + 500 * 16 + 15), "@f.h:9 ");
    EXPECT_EQ(LinesAt(table, 0x1000 + 501 * 16), "@a@v1/f.c:502 ") << "a large record";
    EXPECT_EQ(LinesAt(table, 0x1000 + 999 * 16), "@a@v1/f.c:1000 ");
    EXPECT_EQ(LinesAt(table, 0x1000 + 1000 * 16), "");
    EXPECT_EQ(LinesAt(table, 0xfff), "");
  }
}

TEST(SymbolTable, HasTheSourcesForWhichNamesLeaveRoom) {
  MadeUpSymbols symbols;
  const std::vector<SourceRecord::Row> rows(1000, {.size = 1, .call = {}, .place = {0, 70'000}});
  uint32_t added = 0;
  for (uint32_t i = 0; i < 50'000; ++i) {
    const ElfAddress start(i * 16);
    symbols.Add({.start = start, .size = 16, .limit = ElfAddress(1 << 20)}, fmt::format("f{}", i));
  }
  while (added < 50'000) {
    const ElfAddress start(added * 16);
    const SourceRecord record{.start_line = 1, .calls = {}, .rows = rows};
    if (!symbols.AddSource({start, ElfAddress(start.value() + 16)}, record)) break;
    ++added;
  }
  EXPECT_GT(added, 1000U);
  EXPECT_LT(added, 50'000U) << "they take 2 KB each";
  const std::string longest(1000, 'x');
  for (uint32_t i = 0; i < 20'000; ++i) symbols.PutText(i, longest);
  const Result<SymbolTable> table = symbols.Build();
  ASSERT_TRUE(table);
  EXPECT_LT(table->bytes(), uint64_t{29} << 20);
  EXPECT_EQ(NameAt(*table, 49'999 * 16), "f49999");
  EXPECT_EQ(LinesAt(*table, 0), "@" + longest + ":70000 ");
  EXPECT_EQ(LinesAt(*table, 49'999 * 16), "");
}

TEST(SymbolTable, HasNoTextForWhichThereIsNoRoom) {
  MadeUpSymbols symbols;
  symbols.Add({.start = ElfAddress(0), .size = 16, .limit = ElfAddress(16)}, "f");
  const SourceRecord record{
      .start_line = 1, .calls = {}, .rows = {{.size = 16, .call = {}, .place = {20'000, 3}}}};
  EXPECT_TRUE(symbols.AddSource({ElfAddress(0), ElfAddress(16)}, record));
  for (uint32_t i = 0; i <= 20'000; ++i) symbols.PutText(i, std::string(512, 'x'));
  EXPECT_EQ(LinesAt(*symbols.Build(), 0), "@:3 ");
}

// A name that is another function's would be worse.
TEST(SymbolTable, SaysThatTheNameOfAnInlinedFunctionIsNotKnown) {
  MadeUpSymbols symbols;
  symbols.Add({.start = ElfAddress(0), .size = 16, .limit = ElfAddress(16)}, "f");
  SourceRecord record;
  record.calls = {{.name = 7, .within = {}, .from = {{}, 2}, .start_line = 3}};
  record.rows = {{.size = 16, .call = 0, .place = {{}, 4}}};
  EXPECT_TRUE(symbols.AddSource({ElfAddress(0), ElfAddress(16)}, record));
  EXPECT_EQ(LinesAt(*symbols.Build(), 0), "[unknown]@:4 @:2 ");
}

TEST(SymbolTable, KnowsSourcesThatCameInAnyOrder) {
  MadeUpSymbols symbols;
  symbols.Add({.start = ElfAddress(0), .size = 4096, .limit = ElfAddress(4096)}, "f");
  for (uint32_t i = 0; i < 512; ++i) {
    const uint32_t place = i * 37 % 256;  // each twice
    const SourceRecord record{
        .start_line = 1, .calls = {}, .rows = {{.size = 8, .call = {}, .place = {{}, i}}}};
    EXPECT_TRUE(symbols.AddSource({ElfAddress(place * 16), ElfAddress(place * 16 + 8)}, record));
  }
  const SymbolTable table = *symbols.Build();
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t place = i * 37 % 256;
    EXPECT_EQ(LinesAt(table, place * 16 + 3), fmt::format("@:{} ", i)) << "the first one counts";
    EXPECT_EQ(LinesAt(table, place * 16 + 9), "");
  }
}

class Collected : public SymbolByteSink {
 public:
  bool Put(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return true;
  }
  std::vector<std::byte> bytes;
};

TEST(SymbolTable, IsMadeOfItsBytesAgainWithItsSources) {
  Collected collected;
  const Result<SymbolTable> made = TableWithSources({.bytes = &collected});
  ASSERT_TRUE(made);
  const auto again = [&](const SymbolTable::Layout& layout) {
    const std::shared_ptr<SpilledBytes> bytes = SymbolTableOptions().Storage();
    EXPECT_TRUE(bytes->Put(collected.bytes));
    return SymbolTable::From(layout, bytes);
  };
  const Result<SymbolTable> same = again(made->layout());
  ASSERT_TRUE(same);
  EXPECT_EQ(NameAt(*same, 0x1009), "f0");
  EXPECT_EQ(LinesAt(*same, 0x1009), "inlined@somewhere@f.h:2 @a@v1/f.c:0 ");
  for (const int change : {-1, 1}) {
    SymbolTable::Layout layout = made->layout();
    layout.sources += static_cast<uint64_t>(change);
    EXPECT_FALSE(again(layout)) << "other numbers than there are bytes for";
    layout = made->layout();
    layout.texts += static_cast<uint64_t>(change);
    EXPECT_FALSE(again(layout));
  }
}

TEST(SymbolTable, LeavesGapsBetweenFunctionsUnnamed) {
  const SymbolTable table = TableOf({{"b", 0x2000, 0x10}, {"a", 0x1000, 0x10}});
  EXPECT_EQ(NameAt(table, 0xfff), "-");
  EXPECT_EQ(NameAt(table, 0x1000), "a");
  EXPECT_EQ(NameAt(table, 0x100f), "a");
  EXPECT_EQ(NameAt(table, 0x1010), "-");
  EXPECT_EQ(NameAt(table, 0x200f), "b");
  EXPECT_EQ(NameAt(table, 0x2010), "-");
  EXPECT_EQ(NameAt(table, 0x100000000 + 0x1000), "-");
}

TEST(SymbolTable, FunctionWithoutSizeEndsAtTheNextOne) {
  const SymbolTable table = TableOf({{"label", 0x1000}, {"next", 0x1010, 4}});
  EXPECT_EQ(NameAt(table, 0x100f), "label");
  EXPECT_EQ(NameAt(table, 0x1010), "next");
  EXPECT_EQ(NameAt(table, 0x1014), "-");
}

TEST(SymbolTable, FunctionWithoutSizeEndsWithItsSection) {
  const SymbolTable table = TableOf({{"label", 0x1000, 0, 0x1008}, {"next", 0x1010, 4}});
  EXPECT_EQ(NameAt(table, 0x1007), "label");
  EXPECT_EQ(NameAt(table, 0x1008), "-");
}

TEST(SymbolTable, FunctionWithoutSizeEndsAtCodeThatIsKnownToBegin) {
  MadeUpSymbols symbols;
  symbols.Add({.start = ElfAddress(0x1000), .limit = ElfAddress(0x3000)}, "label");
  symbols.Add({.start = ElfAddress(0x1200), .size = 0x200, .limit = ElfAddress(0x3000)}, "sized");
  symbols.Add({.start = ElfAddress(0x2000), .limit = ElfAddress(0x3000)}, "last");
  const SymbolTableBuilder::KnownCode code[] = {
      {.range = {ElfAddress(0x0800), ElfAddress(0x1080)}},
      {.range = {ElfAddress(0x1100), ElfAddress(0x1180)}},
      {.range = {ElfAddress(0x1300), ElfAddress(0x1380)}},
      {.range = {ElfAddress(0x2800), ElfAddress(0x2880)}}};
  symbols.AddCode(code);
  const SymbolTable table = *symbols.Build();
  EXPECT_EQ(NameAt(table, 0x1090), "label") << "it lies in the code that begins before it";
  EXPECT_EQ(NameAt(table, 0x10ff), "label");
  EXPECT_EQ(NameAt(table, 0x1100), "");
  EXPECT_EQ(NameAt(table, 0x1180), "-");
  EXPECT_EQ(NameAt(table, 0x1300), "sized");
  EXPECT_EQ(NameAt(table, 0x27ff), "last");
  EXPECT_EQ(NameAt(table, 0x2880), "-");
}

TEST(SymbolTable, FunctionWithoutSizeYieldsToOneWithSizeAroundIt) {
  const SymbolTable table = TableOf({{"sized", 0x1000, 0x100},
                                     {"at_start", 0x1000},
                                     {"in", 0x1040},
                                     {"behind", 0x1100, 0, 0x1200}});
  EXPECT_EQ(NameAt(table, 0x1000), "sized");
  EXPECT_EQ(NameAt(table, 0x1050), "sized");
  EXPECT_EQ(NameAt(table, 0x1100), "behind");
}

TEST(SymbolTable, InnermostFunctionIsNamed) {
  const SymbolTable table = TableOf({{"outer", 0x1000, 0x100},
                                     {"inner", 0x1010, 0x20},
                                     {"innermost", 0x1018, 8},
                                     {"overlapping", 0x10f0, 0x20},
                                     {"shorter", 0x1000, 8}});
  const std::pair<uint64_t, const char*> cases[] = {
      {0x1000, "shorter"},     {0x1008, "outer"}, {0x1010, "inner"}, {0x1018, "innermost"},
      {0x1020, "inner"},       {0x1030, "outer"}, {0x10ef, "outer"}, {0x10f0, "overlapping"},
      {0x110f, "overlapping"}, {0x1110, "-"}};
  for (const auto& [address, name] : cases) EXPECT_EQ(NameAt(table, address), name) << address;
}

TEST(SymbolTable, ChoosesAmongAliasesWhateverTheirOrder) {
  const std::vector<std::vector<Declared>> cases = {
      {{"typed", 0x1000, 8}, {"label", 0x1000, 8, 0x10000, Binding::kGlobal, false}},
      {{"x_global", 0x1000, 8}, {"weak", 0x1000, 8, 0x10000, Binding::kWeak}},
      {{"_weak", 0x1000, 8, 0x10000, Binding::kWeak}, {"a", 0x1000, 8, 0x10000, Binding::kLocal}},
      {{"zlib_longer", 0x1000, 8}, {"_a", 0x1000, 8}, {"__a", 0x1000, 8}},
      {{"zz", 0x1000, 8}, {"aaa", 0x1000, 8}},
      {{"a", 0x1000, 8}, {"b", 0x1000, 8}},
      {{"b", 0x1000}, {"c", 0x1000}},
  };
  for (std::vector<Declared> declared : cases) {
    const std::string best = declared[0].name;
    EXPECT_EQ(NameAt(TableOf(declared), 0x1004), best);
    std::ranges::reverse(declared);
    EXPECT_EQ(NameAt(TableOf(declared), 0x1004), best);
  }
}

TEST(SymbolTable, RemembersFunctionsAroundFunctionsToABoundedDepth) {
  constexpr uint64_t kEnd = 0x100000;
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("f" + std::to_string(i));
  std::vector<Declared> nested;  // f0 around f1 around f2 ...
  for (uint64_t i = 0; i < names.size(); ++i) {
    nested.push_back({.name = names[i].c_str(), .start = i, .size = kEnd - 2 * i, .limit = kEnd});
  }
  const SymbolTable table = TableOf(nested);
  EXPECT_EQ(NameAt(table, 4999), "f4999");
  EXPECT_EQ(NameAt(table, kEnd - 5), "f4");
  EXPECT_EQ(NameAt(table, kEnd - 1001), "f31") << "one that is around it, found in 32 steps";
}

TEST(SymbolTable, CutsSizesThatOverflow) {
  const SymbolTable table =
      TableOf({{"huge", 0x1000, ~uint64_t{0}, 0x2000}, {"next", 0x3000, 0x10}});
  EXPECT_EQ(NameAt(table, 0x1fff), "huge");
  EXPECT_EQ(NameAt(table, 0x2000), "-");
  EXPECT_EQ(NameAt(table, 0x3000), "next");
}

TEST(SymbolTable, LeavesOutWhatIsTooFarAway) {
  constexpr uint64_t kFar = uint64_t{1} << 40;
  const SymbolTable table = TableOf({{"near", 0x1000, 0x10}, {"far", kFar, 0x10, kFar + 0x100}});
  EXPECT_EQ(NameAt(table, 0x1000), "near");
  EXPECT_EQ(NameAt(table, kFar), "-");
}

TEST(SymbolTable, TakesSixteenBytesAFunctionAndTheNames) {
  std::vector<Declared> functions;
  for (uint64_t i = 0; i < 1000; ++i) {
    functions.push_back({.name = "name", .start = i * 16, .size = 16});
    functions.push_back(
        {.name = "dropped", .start = i * 16, .size = 16, .binding = Binding::kLocal});
  }
  EXPECT_LE(TableOf(functions).bytes(), 1000 * (16 + sizeof("name") + sizeof("dropped")) + 64);
}

TEST(SymbolTable, ChoosesAmongTheFirstOfVeryManyAliases) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("a" + std::to_string(9999 - i));
  std::vector<Declared> functions = {{"before", 0x800, 8}};
  for (const std::string& name : names) functions.push_back({name.c_str(), 0x1000, 8});
  functions.push_back({"behind", 0x1008, 8});
  const SymbolTable table = TableOf(functions);
  EXPECT_EQ(NameAt(table, 0x1004), "a9936");
  EXPECT_EQ(NameAt(table, 0x1008), "behind");
  EXPECT_LE(table.size(), 66U);
}

TEST(SymbolTable, OmitsTheVersionOfAName) {
  const SymbolTable table = TableOf({{"memcpy@@GLIBC_2.14", 0x1000, 8}, {"@odd", 0x2000, 8}});
  EXPECT_EQ(NameAt(table, 0x1000), "memcpy");
  EXPECT_EQ(NameAt(table, 0x2000), "@odd");
}

// 5,000 functions with long names, some of them within others and some with two names.
class LargeSymbolTableTest : public testing::Test {
 protected:
  static constexpr uint64_t kFunctions = 5'000;

  LargeSymbolTableTest() {
    for (uint64_t i = 0; i < kFunctions; ++i) names_.push_back(NameOf(i));
    const uint64_t end = kFunctions * 16;
    for (uint64_t i = 0; i < kFunctions; ++i) {
      // Every hundredth is around the nine that follow.
      functions_.push_back({names_[i].c_str(), i * 16, i % 100 == 0 ? 160U : 8U, end});
      if (i % 10 == 7) functions_.push_back({"__alias", i * 16, 8, end});
    }
  }
  static std::string NameOf(uint64_t i) { return std::string(100, 'f') + std::to_string(i); }
  static void ExpectAllNamed(const SymbolTable& table) {
    for (uint64_t i = 0; i < kFunctions; ++i) {
      ASSERT_EQ(NameAt(table, i * 16 + 7), NameOf(i));
      const std::string around = i % 100 < 10 ? NameOf(i / 100 * 100) : "-";
      ASSERT_EQ(NameAt(table, i * 16 + 8), around);
    }
  }

  std::vector<std::string> names_;
  std::vector<Declared> functions_;
};

TEST_F(LargeSymbolTableTest, IsKeptOutOfMemory) {
  const auto file = *SpillFile::Open({.directories = {}});
  {
    const Result<SymbolTable> table = TableIn({.spill = file, .most_in_memory = 0}, functions_);
    ASSERT_TRUE(table.has_value());
    EXPECT_LE(table->bytes(), 1000U);
    EXPECT_EQ(table->spilled_bytes(), file->bytes());
    EXPECT_GE(table->spilled_bytes(), kFunctions * 100);
    ExpectAllNamed(*table);
  }
  EXPECT_EQ(file->bytes(), 0U);
}

TEST_F(LargeSymbolTableTest, StaysInMemoryAsFarAsTheFileHasNoRoom) {
  const auto file = *SpillFile::Open({.directories = {}, .most_in_memory = 256 << 10});
  const Result<SymbolTable> table = TableIn({.spill = file}, functions_);
  ASSERT_TRUE(table.has_value());
  EXPECT_GE(table->bytes(), kFunctions * 100 - table->spilled_bytes());
  ExpectAllNamed(*table);
}

TEST_F(LargeSymbolTableTest, HasNoRoomWhereNeitherFileNorMemoryHasAny) {
  const auto file = *SpillFile::Open({.directories = {}});
  for (const SymbolTableOptions& options :
       {SymbolTableOptions{.spill = nullptr, .most_in_memory = 512 << 10},
        SymbolTableOptions{.spill = file, .most_spilled = 512 << 10, .most_in_memory = 0}}) {
    const Result<SymbolTable> table = TableIn(options, functions_);
    ASSERT_FALSE(table.has_value());
    EXPECT_EQ(table.error().code(), ErrorCode::kExhausted);
  }
  EXPECT_EQ(file->bytes(), 0U) << "what was written of it is free again";
}

TEST(SymbolTable, KeepsNoMoreBytesOfNamesThanTheFileHas) {
  const std::string all(4000, 'x');
  SymbolTableBuilder builder(ElfAddress(0), {});
  for (uint32_t i = 0; i < all.size(); ++i) {
    builder.Add({.start = ElfAddress(i), .size = 1, .limit = ElfAddress(all.size())}, i);
  }
  builder.ReadNames([&](uint32_t offset) -> Result<std::string_view> {
    return std::string_view(all).substr(offset);
  });
  const SymbolTable table = *std::move(builder).Build();
  EXPECT_LE(table.bytes(), all.size() * 17 + 1000);
  EXPECT_EQ(NameAt(table, 100), all.substr(100));
  EXPECT_EQ(NameAt(table, 3999), "x");
}

TEST(SymbolTableBuilder, FailsWithTooManyFunctions) {
  SymbolTableBuilder builder(ElfAddress(0), {});
  for (uint32_t i = 0; i <= 4 << 20; ++i) {
    builder.Add({.start = ElfAddress(i), .size = 1, .limit = ElfAddress(i + 1)}, 0);
  }
  builder.ForgetUnnamed();
  EXPECT_EQ(std::move(builder).Build().error().code(), ErrorCode::kExhausted);
}

using Code = SymbolTableBuilder::Code;

// With these functions, and code of which more or less is known.
SymbolTable TableWith(const std::vector<Declared>& functions,
                      const std::vector<std::tuple<uint64_t, uint64_t, Code>>& known) {
  MadeUpSymbols symbols;
  for (const Declared& f : functions) {
    symbols.Add({.start = ElfAddress(f.start), .size = f.size, .limit = ElfAddress(f.limit)},
                f.name);
  }
  std::vector<SymbolTableBuilder::KnownCode> code;
  for (const auto& [begin, end, what] : known) {
    code.push_back({.range = {ElfAddress(begin), ElfAddress(end)}, .code = what});
  }
  symbols.AddCode(code);
  return *symbols.Build();
}

// "name", or where the nameless function begins, "-" if nothing is there.
std::string Told(const SymbolTable& table, uint64_t address) {
  const std::optional<Symbol> symbol = table.Find(ElfAddress(address));
  if (!symbol) return "-";
  return symbol->name.empty() ? fmt::format("{:#x}", symbol->start.value()) : symbol->name;
}

TEST(SymbolTable, KnowsWhereFunctionsWithoutANameBegin) {
  const SymbolTable table = TableWith({}, {{0x1000, 0x1010, Code::kUnnamed},
                                           {0x1010, 0x1100, Code::kUnnamed},
                                           {0x1200, 0x1210, Code::kStart}});
  EXPECT_EQ(Told(table, 0xfff), "-");
  EXPECT_EQ(Told(table, 0x100f), "0x1000");
  EXPECT_EQ(Told(table, 0x1010), "0x1010");
  EXPECT_EQ(Told(table, 0x10ff), "0x1010");
  EXPECT_EQ(Told(table, 0x1100), "-");
  EXPECT_EQ(Told(table, 0x1205), "_start");
  EXPECT_FALSE(table.has_names());
  EXPECT_FALSE(table.empty());
}

TEST(SymbolTable, PrefersSymbolsToWhatIsKnownOtherwise) {
  const SymbolTable table = TableWith({{"same", 0x1000, 0x10},
                                       {"longer", 0x1100, 0x20},
                                       {"shorter", 0x1200, 0x8},
                                       {"inside", 0x1308, 0x4}},
                                      {{0x1000, 0x1010, Code::kUnnamed},
                                       {0x1100, 0x1110, Code::kUnnamed},
                                       {0x1110, 0x1130, Code::kUnnamed},
                                       {0x1200, 0x1210, Code::kUnnamed},
                                       {0x1300, 0x1310, Code::kUnnamed},
                                       {0x1400, 0x1410, Code::kPlt}});
  EXPECT_EQ(Told(table, 0x1008), "same");
  EXPECT_EQ(Told(table, 0x1118), "longer");
  EXPECT_EQ(Told(table, 0x1120), "0x1120") << "of what begins within a function, the rest";
  EXPECT_EQ(Told(table, 0x1207), "shorter");
  EXPECT_EQ(Told(table, 0x1208), "0x1208");
  EXPECT_EQ(Told(table, 0x1300), "0x1300");
  EXPECT_EQ(Told(table, 0x1309), "inside");
  EXPECT_EQ(Told(table, 0x130c), "0x1300");
  EXPECT_EQ(Told(table, 0x1401), "[plt]");
  EXPECT_TRUE(table.has_names());
}

TEST(SymbolTable, NamesStubsAfterWhatTheyCall) {
  MadeUpSymbols symbols;
  const auto add = [&](uint64_t begin, std::string_view name) {
    symbols.AddStub({ElfAddress(begin), ElfAddress(begin + 0x10)}, name);
  };
  symbols.Add({.start = ElfAddress(0x1030), .size = 0x10, .limit = ElfAddress(0x9000)}, "same");
  symbols.Add({.start = ElfAddress(0x1048), .size = 0x10, .limit = ElfAddress(0x9000)}, "half");
  symbols.Add({.start = ElfAddress(0x2000), .size = 0x20, .limit = ElfAddress(0x9000)}, "around");
  add(0x1010, "one");
  add(0x1020, "two@@VERSION_2");
  add(0x1030, "covered");
  add(0x1040, "three");
  add(0x1060, "");
  add(0x1070, std::string(4093, 'a'));
  add(0x1080, std::string(4092, 'b'));
  add(0x2010, "covered");
  const SymbolTableBuilder::KnownCode code[] = {
      {.range = {ElfAddress(0x1000), ElfAddress(0x1090)}, .code = Code::kPlt}};
  symbols.AddCode(code);
  const SymbolTable table = *symbols.Build();
  EXPECT_EQ(Told(table, 0x1000), "[plt]");
  EXPECT_EQ(Told(table, 0x1010), "one@plt");
  EXPECT_EQ(Told(table, 0x101f), "one@plt");
  EXPECT_EQ(Told(table, 0x1020), "two@plt");
  EXPECT_EQ(Told(table, 0x1030), "same");
  EXPECT_EQ(Told(table, 0x1040), "three@plt");
  EXPECT_EQ(Told(table, 0x1048), "half");
  EXPECT_EQ(Told(table, 0x1058), "[plt]");
  EXPECT_EQ(Told(table, 0x1060), "[plt]") << "what has no name";
  EXPECT_EQ(Told(table, 0x1070), "[plt]") << "what would be cut";
  EXPECT_EQ(Told(table, 0x1080), std::string(4092, 'b') + "@plt");
  EXPECT_EQ(Told(table, 0x2010), "around");
  EXPECT_EQ(table.Find(ElfAddress(0x1015))->start, ElfAddress(0x1010));
}

TEST(SymbolTable, HasNoNamesIfItHasOnlyStubs) {
  MadeUpSymbols symbols;
  symbols.AddStub({ElfAddress(0x1000), ElfAddress(0x1010)}, "f");
  const SymbolTable table = *symbols.Build();
  EXPECT_EQ(Told(table, 0x1000), "f@plt");
  EXPECT_FALSE(table.has_names());
}

// The names of a linker that lets one be the end of another.
TEST(SymbolTable, KeepsTheNamesOfStubsOnce) {
  const std::string names = std::string("xmemcpy\0y", 10);
  SymbolTableBuilder builder(ElfAddress(0), {});
  const SymbolTableBuilder::Stub stubs[] = {{{ElfAddress(0x00), ElfAddress(0x10)}, 1},
                                            {{ElfAddress(0x10), ElfAddress(0x20)}, 0},
                                            {{ElfAddress(0x20), ElfAddress(0x30)}, 8},
                                            {{ElfAddress(0x30), ElfAddress(0x40)}, 0}};
  builder.AddStubs(stubs, [&](uint32_t offset) -> Result<std::string_view> {
    return std::string_view(names.data() + offset);
  });
  const SymbolTable table = *std::move(builder).Build();
  EXPECT_EQ(Told(table, 0x00), "memcpy@plt");
  EXPECT_EQ(Told(table, 0x10), "xmemcpy@plt");
  EXPECT_EQ(Told(table, 0x20), "y@plt");
  EXPECT_EQ(Told(table, 0x30), "xmemcpy@plt");
  EXPECT_EQ(table.layout().entries_at, std::string_view("xmemcpy@plt y@plt ").size());
}

// As where assembly has several functions in one description of frames.
TEST(SymbolTable, KeepsTheNamesOfFunctionsThatShareBounds) {
  const SymbolTable table = TableWith({{"a", 0x1000, 0x50},
                                       {"b", 0x1050, 0xb0},
                                       {"c", 0x2000, 0x10},
                                       {"d", 0x2010, 0x10},
                                       {"e", 0x3000, 0x10},
                                       {"larger", 0x3010, 0x40},
                                       {"f", 0x4000, 0x100},
                                       {"g", 0x4060, 0xc0}},
                                      {{0x1000, 0x1100, Code::kUnnamed},
                                       {0x2000, 0x2030, Code::kUnnamed},
                                       {0x3000, 0x3020, Code::kUnnamed},
                                       {0x4050, 0x4190, Code::kUnnamed}});
  EXPECT_EQ(Told(table, 0x104f), "a");
  EXPECT_EQ(Told(table, 0x1050), "b");
  EXPECT_EQ(Told(table, 0x10ff), "b");
  EXPECT_EQ(Told(table, 0x2018), "d");
  EXPECT_EQ(Told(table, 0x2020), "0x2010") << "where the rest of it begins";
  EXPECT_EQ(Told(table, 0x3018), "larger");
  EXPECT_EQ(Told(table, 0x304f), "larger");
  EXPECT_EQ(Told(table, 0x4110), "g") << "which begins before the end of f, and ends behind it";
  EXPECT_EQ(Told(table, 0x4130), "0x4120");
}

TEST(SymbolTable, HasRoomForMillionsOfFunctionsWithoutAName) {
  MadeUpSymbols symbols;
  std::vector<SymbolTableBuilder::KnownCode> code;
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    code.push_back({.range = {ElfAddress(i * 32), ElfAddress(i * 32 + 20)}});
  }
  code.push_back({.range = {ElfAddress(uint64_t{5} << 32), ElfAddress((uint64_t{5} << 32) + 9)}});
  symbols.AddCode(code);
  const SymbolTable table = *symbols.Build();
  EXPECT_EQ(table.size(), 1'000'000U) << "what is out of reach is left out";
  EXPECT_EQ(Told(table, 999'999 * 32 + 19), fmt::format("{:#x}", 999'999 * 32));
  EXPECT_EQ(Told(table, 999'999 * 32 + 20), "-");
}

}  // namespace
}  // namespace pyrometer
