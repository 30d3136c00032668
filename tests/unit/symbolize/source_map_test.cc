// SPDX-License-Identifier: Apache-2.0
#include "symbolize/source_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/spilled_bytes.h"
#include "symbolize/source_map_writer.h"

namespace pyrometer {
namespace {

using Range = SourceSink::Range;

constexpr uint64_t kBase = 0x400000;

class SourceMapTest : public testing::Test {
 protected:
  explicit SourceMapTest(const SourceMapWriter::Limits& limits = {})
      : writer_(ElfAddress(kBase), limits) {}

  // Addresses here and below are relative to kBase. `call`: line of it, in calls.c.
  void Function(uint32_t depth, const std::string& name, std::vector<Range> ranges,
                uint32_t call = 0) {
    for (Range& range : ranges) range = {.begin = range.begin + kBase, .end = range.end + kBase};
    writer_.AddScope({.depth = depth,
                      .name = writer_.AddName(name),
                      .call_file = call == 0 ? SourceSink::kUnknown : File("calls.c"),
                      .call_line = call,
                      .ranges = ranges});
  }
  void Lines(std::vector<std::pair<uint64_t, uint32_t>> lines, uint64_t end,
             const char* file = "a.c") {
    std::vector<SourceSink::Row> rows;
    for (const auto& [address, line] : lines) {
      rows.push_back({.address = address + kBase, .file = File(file), .line = line});
    }
    writer_.AddSequence(rows, end + kBase);
  }
  SourceSink::Text File(const char* name) { return writer_.AddPath("/src", name); }

  std::shared_ptr<SpilledBytes> Bytes() {
    auto bytes =
        std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{1} << 30});
    EXPECT_TRUE(std::move(writer_).Write(*bytes));
    return bytes;
  }
  SourceMap Map() { return *SourceMap::From(Bytes()); }

  SourceMapWriter writer_;
};

// "inner a.c:3 < outer calls.c:7", "-" if nothing is known.
std::string Told(const SourceMap& map, uint64_t address) {
  std::string text;
  for (const SourceFrame& frame : map.Find(ElfAddress(kBase + address))) {
    text += fmt::format("{}{} {}:{}", text.empty() ? "" : " < ", frame.name,
                        frame.path.substr(frame.path.rfind('/') + 1), frame.line);
  }
  return text.empty() ? "-" : text;
}

TEST_F(SourceMapTest, EmptyKnowsNothing) {
  EXPECT_EQ(Told(SourceMap(), 0), "-");
  EXPECT_EQ(Told(Map(), 0), "-");
}

TEST_F(SourceMapTest, TellsFunctionsInlinedCallsAndLines) {
  Function(0, "outer", {{0x100, 0x200}});
  Function(1, "inlined", {{0x120, 0x140}, {0x160, 0x170}}, 7);
  Function(2, "deep", {{0x130, 0x138}}, 8);
  Function(1, "second", {{0x180, 0x190}}, 9);
  Lines({{0x100, 1}, {0x120, 50}, {0x134, 60}, {0x180, 2}}, 0x200);
  const SourceMap map = Map();
  EXPECT_EQ(Told(map, 0xff), "-");
  EXPECT_EQ(Told(map, 0x100), "outer a.c:1");
  EXPECT_EQ(Told(map, 0x120), "inlined a.c:50 < outer calls.c:7");
  EXPECT_EQ(Told(map, 0x130), "deep a.c:50 < inlined calls.c:8 < outer calls.c:7");
  EXPECT_EQ(Told(map, 0x137), "deep a.c:60 < inlined calls.c:8 < outer calls.c:7");
  EXPECT_EQ(Told(map, 0x138), "inlined a.c:60 < outer calls.c:7");
  EXPECT_EQ(Told(map, 0x140), "outer a.c:60");
  EXPECT_EQ(Told(map, 0x16f), "inlined a.c:60 < outer calls.c:7");
  EXPECT_EQ(Told(map, 0x18f), "second a.c:2 < outer calls.c:9");
  EXPECT_EQ(Told(map, 0x1ff), "outer a.c:2");
  EXPECT_EQ(Told(map, 0x200), "-");
  EXPECT_EQ(map.Find(ElfAddress(kBase + 0x100))[0].path, "/src/a.c");
  EXPECT_TRUE(map.Find(ElfAddress(kBase - 1)).empty());
  EXPECT_TRUE(map.Find(ElfAddress(kBase + (uint64_t{1} << 32) + 0x100)).empty());
}

TEST_F(SourceMapTest, TellsLinesWithoutFunctionsAndFunctionsWithoutLines) {
  Function(0, "f", {{0x300, 0x310}});
  Lines({{0x100, 1}}, 0x110);
  const SourceMap map = Map();
  EXPECT_EQ(Told(map, 0x105), " a.c:1");
  EXPECT_EQ(Told(map, 0x110), "-");
  EXPECT_EQ(Told(map, 0x305), "f :0");
}

TEST_F(SourceMapTest, KeepsFunctionsApart) {
  Function(0, "again", {{0x100, 0x200}});
  Function(0, "once more", {{0x100, 0x200}});
  Function(0, "overlaps", {{0x180, 0x280}});
  Function(1, "in what is cut", {{0x1c0, 0x1d0}}, 1);
  Function(1, "in the rest", {{0x240, 0x250}}, 2);
  const SourceMap map = Map();
  EXPECT_EQ(Told(map, 0x1c8), "again :0");
  EXPECT_EQ(Told(map, 0x200), "overlaps :0");
  EXPECT_EQ(Told(map, 0x248), "in the rest :0 < overlaps calls.c:2");
}

TEST_F(SourceMapTest, GivesCodeOfAFunctionToTheInlinedCallGivenLast) {
  Function(0, "f", {{0x100, 0x200}});
  Function(1, "longer", {{0x1c0, 0x300}}, 1);
  Function(1, "before", {{0x80, 0x90}}, 2);
  Function(0, "g", {{0x200, 0x280}});
  Function(1, "first", {{0x210, 0x240}}, 3);
  Function(1, "later", {{0x220, 0x230}}, 4);
  Function(2, "wider", {{0x22c, 0x234}}, 5);
  const SourceMap map = Map();
  EXPECT_EQ(Told(map, 0x1ff), "longer :0 < f calls.c:1");
  EXPECT_EQ(Told(map, 0x200), "g :0");
  EXPECT_EQ(Told(map, 0x85), "-");
  EXPECT_EQ(Told(map, 0x21f), "first :0 < g calls.c:3");
  EXPECT_EQ(Told(map, 0x22b), "later :0 < g calls.c:4");
  EXPECT_EQ(Told(map, 0x22c), "wider :0 < later calls.c:5 < g calls.c:4");
  EXPECT_EQ(Told(map, 0x233), "wider :0 < later calls.c:5 < g calls.c:4");
  EXPECT_EQ(Told(map, 0x234), "first :0 < g calls.c:3");
  EXPECT_EQ(Told(map, 0x240), "g :0");
}

TEST_F(SourceMapTest, KeepsSequencesApart) {
  Lines({{0x100, 1}, {0x110, 2}}, 0x200);
  Lines({{0x180, 10}, {0x1f0, 11}, {0x210, 12}}, 0x220, "b.c");
  Lines({{0x120, 20}}, 0x130, "c.c");
  Lines({{0x300, 30}, {0x300, 31}, {0x308, 32}}, 0x310);
  const SourceMap map = Map();
  EXPECT_EQ(Told(map, 0x125), " a.c:2");
  EXPECT_EQ(Told(map, 0x1ff), " a.c:2");
  EXPECT_EQ(Told(map, 0x200), " b.c:11");
  EXPECT_EQ(Told(map, 0x21f), " b.c:12");
  EXPECT_EQ(Told(map, 0x220), "-");
  EXPECT_EQ(Told(map, 0x300), " a.c:31") << "of the same address the last";
}

TEST_F(SourceMapTest, LeavesOutWhatIsOutOfReach) {
  writer_.AddScope({.name = writer_.AddName("below"), .ranges = std::vector<Range>{{0, 100}}});
  const uint64_t above = kBase + (uint64_t{1} << 32);
  writer_.AddScope(
      {.name = writer_.AddName("above"), .ranges = std::vector<Range>{{above, above + 1}}});
  Function(5, "inlined into nothing", {{0x100, 0x110}}, 1);
  Function(0, "f", {{0x100, 0x110}});
  EXPECT_EQ(Told(Map(), 0x108), "f :0");
}

TEST_F(SourceMapTest, TellsHowMuchWasLost) {
  Function(0, "f", {{0x100, 0x110}});
  writer_.NoteLost(3);
  writer_.NoteLost(4);
  const SourceMap map = Map();
  EXPECT_EQ(map.lost(), 7U);
  EXPECT_FALSE(map.is_cut());
  EXPECT_EQ(SourceMap().lost(), 0U);
}

class SmallSourceMapTest : public SourceMapTest {
 protected:
  SmallSourceMapTest() : SourceMapTest({.texts = 1000, .scopes = 10, .ranges = 10, .rows = 10}) {}
};

TEST_F(SmallSourceMapTest, SaysThatItIsFullAndKeepsWhatItHas) {
  for (uint32_t i = 0; i < 20; ++i) Function(0, fmt::format("f{}", i), {{i * 16, i * 16 + 16}});
  EXPECT_TRUE(writer_.is_full());
  const SourceMap map = Map();
  EXPECT_TRUE(map.is_cut());
  EXPECT_EQ(Told(map, 0x58), "f5 :0");
  EXPECT_EQ(Told(map, 19 * 16), "-");
}

TEST_F(SourceMapTest, AgreesWithPaintingAddressByAddress) {
  std::mt19937 random(7);
  std::map<uint64_t, std::string> names;
  std::map<uint64_t, uint32_t> lines;
  const std::function<void(uint32_t, Range, const std::string&)> add =
      [&](uint32_t depth, Range range, const std::string& outer) {
        const std::string name = fmt::format("f{}", random() % 1000);
        const auto call = static_cast<uint32_t>(depth == 0 ? 0 : random() % 9000 + 1);
        Function(depth, name, {range}, call);
        std::string chain = outer;
        if (depth > 0) {
          chain.insert(std::min(chain.find(' '), chain.size()), fmt::format(" calls.c:{}", call));
          chain.insert(0, " < ");
        }
        chain.insert(0, name);
        for (uint64_t a = range.begin; a < range.end; ++a) names[a] = chain;
        uint64_t at = range.begin;
        while (depth < 5 && at + 4 < range.end && random() % 3 != 0) {
          at += random() % (range.end - at);
          const uint64_t end = at + 1 + random() % (range.end - at);
          add(depth + 1, {at, end}, chain);
          at = end;
        }
      };
  uint64_t at = 0;
  for (int i = 0; i < 500; ++i) {
    at += random() % 3 == 0 ? random() % 40 : 0;
    const uint64_t end = at + 1 + random() % 200;
    add(0, {at, end}, "");
    std::vector<std::pair<uint64_t, uint32_t>> rows;
    for (uint64_t a = at; a < end; a += 1 + random() % 9) {
      rows.emplace_back(a, static_cast<uint32_t>(random() % 5000));
    }
    Lines(rows, end);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (uint64_t a = rows[r].first; a < (r + 1 < rows.size() ? rows[r + 1].first : end); ++a) {
        lines[a] = rows[r].second;
      }
    }
    at = end;
  }
  const SourceMap map = Map();
  for (uint64_t a = 0; a < at + 100; ++a) {
    std::string want = "-";
    if (names.contains(a)) {
      want = names[a];
      want.insert(std::min(want.find(' '), want.size()), fmt::format(" a.c:{}", lines[a]));
    }
    ASSERT_EQ(Told(map, a), want) << a;
  }
}

TEST_F(SourceMapTest, BelievesNoBytes) {
  Function(0, "outer", {{0x100, 0x200}});
  Function(1, "inlined", {{0x120, 0x140}}, 7);
  Lines({{0x100, 1}, {0x120, 50}}, 0x200);
  const std::shared_ptr<SpilledBytes> honest = Bytes();
  std::vector<std::byte> original(honest->size());
  ASSERT_TRUE(honest->Read(0, original));
  const auto look = [](std::span<const std::byte> bytes) {
    const auto stored =
        std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{1} << 20});
    ASSERT_TRUE(stored->Put(bytes));
    const Result<SourceMap> map = SourceMap::From(stored);
    for (uint64_t a = 0xf0; map && a < 0x210; a += 9) Told(*map, a);
  };
  for (size_t size = 0; size < original.size(); ++size) look(std::span(original).first(size));
  for (size_t i = 0; i < original.size(); ++i) {
    for (const auto with : {std::byte{0}, std::byte{0xff}, original[i] ^ std::byte{1}}) {
      std::vector<std::byte> changed = original;
      changed[i] = with;
      look(changed);
    }
  }
}

}  // namespace
}  // namespace pyrometer
