// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_hash.h"
#include "indexer/in_process_indexer.h"
#include "indexer/sandboxed_indexer.h"
#include "symbolize/jit_dump.h"
#include "symbolize/perf_map.h"
#include "tests/shared/made_up_jit_dump.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

UniqueFd FileOf(std::string_view bytes) {
  UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).has_value());
  return fd;
}

// What every indexer does.
class IndexerTest : public testing::TestWithParam<const char*> {
 protected:
  IndexerTest() {
    if (GetParam() == std::string("InProcess")) {
      indexer_ = std::make_unique<InProcessIndexer>();
      return;
    }
    Result<std::unique_ptr<SandboxedIndexer>> started = SandboxedIndexer::Start({});
    if (!started) throw std::runtime_error(started.error().message());
    indexer_ = *std::move(started);
  }
  std::unique_ptr<Indexer> indexer_;
};
#ifdef __SANITIZE_ADDRESS__
constexpr std::array kIndexers = {"InProcess"};  // the sandbox refuses what the sanitizer needs
#else
constexpr std::array kIndexers = {"InProcess", "Sandboxed"};
#endif
INSTANTIATE_TEST_SUITE_P(All, IndexerTest, testing::ValuesIn(kIndexers),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(IndexerTest, FindsBuildIdAndSegments) {
  const UniqueFd fd = *Open(FixturePath("two_texts"), O_RDONLY);
  const Result<ObjectFacts> facts = indexer_->Inspect(fd.get());
  ASSERT_TRUE(facts.has_value()) << facts.error().message();
  EXPECT_EQ(facts->build_id.ToHex(), "0123456789abcdef");
  EXPECT_GE(std::ranges::count_if(facts->segments, &Segment::executable), 2);
}

TEST_P(IndexerTest, ReadsSourceLinesOfSeveralFilesTogether) {
  const UniqueFd own = *Open(FixturePath("inlined_two_splits"), O_RDONLY);
  const Result<DebugLinks> links = indexer_->Links(own.get());
  ASSERT_TRUE(links.has_value()) << links.error().message();
  ASSERT_EQ(links->splits.size(), 2U);
  std::vector<UniqueFd> splits;
  FilesToRead files{.own = own.get()};
  for (const std::string& path : links->splits) {
    splits.push_back(*Open(path, O_RDONLY));
    files.splits.push_back(splits.back().get());
  }
  const SymbolTableOptions room{.most_in_memory = size_t{1} << 20};
  const Result<Made<SourceMap>> made = indexer_->Sources(files, room);
  ASSERT_TRUE(made.has_value()) << made.error().message();
  EXPECT_EQ(made->value.lost(), 0U);
  for (const char* name : {"main", "use_imports"}) {
    const auto frames =
        made->value.Find(ElfAddress(NmSymbolOf("inlined_two_splits", name).address));
    ASSERT_FALSE(frames.empty()) << name;
    EXPECT_EQ(frames.back().name, name);
  }
  EXPECT_EQ(*indexer_->Repeats(files, made->reading), true);
  const std::vector<int> both = files.splits;
  // As many as there may be, the first of them again and again.
  files.splits.resize(DebugLinks::kMostSplits, both[0]);
  const Result<Made<SourceMap>> of_many = indexer_->Sources(files, room);
  ASSERT_TRUE(of_many.has_value()) << of_many.error().message();
  EXPECT_EQ(of_many->value.lost(), 0U);
  EXPECT_EQ(of_many->reading.sizes.size(), 1 + DebugLinks::kMostSplits);
  files.splits = {both[0]};
  EXPECT_EQ(*indexer_->Repeats(files, made->reading), false);
  EXPECT_EQ(indexer_->Sources(files, room)->value.lost(), 1U) << "a unit of which nothing is there";
}

TEST_P(IndexerTest, HashesFilesWithoutABuildId) {
  std::vector<std::byte> bytes = FixtureBytes("no_build_id.so");
  // What comes after what its headers tell of counts as well.
  for (const size_t size : {bytes.size(), (bytes.size() | 4095) + 1, (bytes.size() | 4095) + 2}) {
    bytes.resize(size, std::byte{'x'});
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Result<ObjectFacts> facts = indexer_->Inspect(FileOf({text, size}).get());
    ASSERT_TRUE(facts.has_value()) << facts.error().message();
    EXPECT_TRUE(facts->build_id.empty());
    EXPECT_EQ(facts->hash, HashOf(std::span(bytes).first(kHashedPart),
                                  std::span(bytes).last(kHashedPart), size));
    EXPECT_TRUE(facts->tells_names);
  }
}

TEST_P(IndexerTest, ReadsSymbols) {
  const UniqueFd fd = *Open(FixturePath("shared.so"), O_RDONLY);
  const Result<Made<SymbolTable>> symbols = indexer_->Symbols({.own = fd.get()}, {});
  ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
  const ElfAddress address(NmSymbolOf("shared.so", "fixture_far").address);
  EXPECT_EQ(symbols->value.Find(address)->name, "fixture_far");
}

TEST_P(IndexerTest, CompilesUnwindTables) {
  const UniqueFd fd = *Open(FixturePath("unwound"), O_RDONLY);
  const Result<Made<UnwindTable>> table = indexer_->Unwind({.own = fd.get()}, {});
  ASSERT_TRUE(table.has_value()) << table.error().message();
  const ElfAddress address(NmSymbolOf("unwound", "fixture_frame").address);
  EXPECT_EQ(table->value.RuleAt(address)->kind, PYRO_RULE_REGISTER);
}

TEST_P(IndexerTest, AddsWhatTheDebugFileTells) {
  const UniqueFd fd = *Open(FixturePath("unwound_bare"), O_RDONLY);
  const UniqueFd debug_file = *Open(FixturePath("unwound_debug_frame"), O_RDONLY);
  const ElfAddress address(NmSymbolOf("unwound_debug_frame", "fixture_frame").address);
  EXPECT_EQ(indexer_->Unwind({.own = fd.get()}, {})->value.RuleAt(address)->kind, PYRO_RULE_NONE);
  const Result<Made<UnwindTable>> table =
      indexer_->Unwind({.own = fd.get(), .debug = debug_file.get()}, {});
  ASSERT_TRUE(table.has_value()) << table.error().message();
  EXPECT_EQ(table->value.RuleAt(address)->kind, PYRO_RULE_REGISTER);
  EXPECT_FALSE(
      indexer_->Unwind({.own = fd.get(), .debug = FileOf("no ELF file").get()}, {}).has_value());
}

TEST_P(IndexerTest, FindsNoSegmentsInWhatIsNoElfFile) {
  for (const char* bytes : {"", "\x7f", "#!/bin/sh\n"}) {
    const Result<ObjectFacts> facts = indexer_->Inspect(FileOf(bytes).get());
    ASSERT_TRUE(facts.has_value()) << bytes;
    EXPECT_TRUE(facts->segments.empty());
    EXPECT_FALSE(indexer_->Symbols({.own = FileOf(bytes).get()}, {}).has_value());
    EXPECT_FALSE(indexer_->Unwind({.own = FileOf(bytes).get()}, {}).has_value());
  }
}

TEST_P(IndexerTest, RefusesADamagedElfFile) {
  const UniqueFd fd = FileOf(
      "\x7f"
      "ELF and then nothing of the kind");
  EXPECT_EQ(indexer_->Inspect(fd.get()).error().code(), ErrorCode::kMalformed);
}

TEST_P(IndexerTest, KnowsAFileWithTheSameBytes) {
  const UniqueFd fd = *Open(FixturePath("unwound"), O_RDONLY);
  const Reading reading = indexer_->Unwind({.own = fd.get()}, {})->reading;
  EXPECT_TRUE(reading.is_complete);
  EXPECT_TRUE(*indexer_->Repeats({.own = fd.get()}, reading));
  const UniqueFd other = *Open(FixturePath("pie"), O_RDONLY);
  EXPECT_FALSE(*indexer_->Repeats({.own = other.get()}, reading));
}

TEST_P(IndexerTest, FindsNoSourceLinesWhereNobodyTellsThem) {
  const UniqueFd fd = *Open(FixturePath("stripped"), O_RDONLY);
  const Result<Made<SourceMap>> made = indexer_->Sources({.own = fd.get()}, {});
  ASSERT_TRUE(made.has_value()) << made.error().message();
  EXPECT_TRUE(made->value.empty());
  EXPECT_TRUE(made->reading.is_complete);
}

TEST_P(IndexerTest, ReadsBytesUpToTheEndOfTheFile) {
  const UniqueFd fd = FileOf("0123456789");
  const auto text = [&](uint64_t offset, size_t size) {
    const std::vector<std::byte> bytes = *indexer_->Bytes(fd.get(), FileOffset(offset), size);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(2, 3), "234");
  EXPECT_EQ(text(8, 4096), "89");
  EXPECT_EQ(text(10, 1), "");
  EXPECT_EQ(text(~uint64_t{0}, 1), "");
}

TEST_P(IndexerTest, ReadsRegularFilesOnly) {
  const UniqueFd null = *Open("/dev/null", O_RDONLY);
  EXPECT_FALSE(indexer_->Inspect(null.get()).has_value());
  EXPECT_FALSE(indexer_->Symbols({.own = null.get()}, {}).has_value());
  EXPECT_FALSE(indexer_->Unwind({.own = null.get()}, {}).has_value());
}

TEST_P(IndexerTest, GivesRowsToASinkIfThereIsOne) {
  class Counter : public RowSink {
   public:
    void Put(std::span<const pyro_unwind_row> rows) override { count += rows.size(); }
    size_t count = 0;
  } counter;
  const UniqueFd fd = *Open(FixturePath("unwound"), O_RDONLY);
  const UnwindTable table = indexer_->Unwind({.own = fd.get()}, {.rows = &counter})->value;
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(counter.count, table.row_count());
}

TEST_P(IndexerTest, ReadsPerfMapsInParts) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("{:x} 10 function_{}\n", 0x1000 + i * 16, i);
  text += "nonsense\n9000000 10 the last";
  const UniqueFd fd = FileOf(text);
  PerfMap map;
  const auto read = [&](int file, const PerfMapPart& part, OnPerfMapFunction on_function) {
    return indexer_->PerfMapLines(file, part, on_function);
  };
  ASSERT_TRUE(map.Update(fd.get(), PerfMap::Writer::kMayWrite, read).has_value());
  EXPECT_EQ(map.Find(Address(0x1000)), "function_0");
  EXPECT_EQ(map.Find(Address(0x1000 + 4999 * 16)), "function_4999");
  EXPECT_EQ(map.Find(Address(0x9000000)), std::nullopt);
  ASSERT_TRUE(WriteAll(fd.get(), " one\n1000 8 again\n").has_value());
  ASSERT_TRUE(map.Update(fd.get(), PerfMap::Writer::kGone, read).has_value());
  EXPECT_EQ(map.Find(Address(0x9000000)), "the last one");
  EXPECT_EQ(map.Find(Address(0x1000)), "again");
  EXPECT_EQ(map.bad_lines(), 1U);
}

TEST_P(IndexerTest, ReadsJitDumpsInParts) {
  MadeUpJitDump dump;
  for (uint64_t i = 0; i < 3000; ++i) dump.Load(1, 0x1000 + i * 16, 16, fmt::format("f{}", i));
  // More lines than a message holds.
  const std::vector<std::string> files = {"/a.js", "/b.js"};
  std::vector<MadeUpJitDump::Line> lines;
  for (uint32_t i = 0; i < 20000; ++i) lines.push_back({0x900000 + i, i + 1, files[i % 2]});
  dump.Lines(0x900000, lines).Load(2, 0x900000, lines.size(), "large");
  dump.Move(3, 0x1000, 0x800000, 16).Load(4, 0x1000, 0, "bad");
  const std::string& text = dump.bytes();
  const UniqueFd fd = FileOf(text.substr(0, text.size() / 2));
  JitDump read_in_parts(size_t{8} << 20);
  const auto update = [&] {
    return read_in_parts.Update(fd.get(), /*has_stopped=*/false, MonotonicNow(),
                                [&](int file, const JitDumpPart& part, OnJitCode on_code) {
                                  return indexer_->JitDumpRecords(file, part, on_code);
                                });
  };
  ASSERT_TRUE(update());
  EXPECT_FALSE(read_in_parts.Find(Address(0x900000), MonotonicNow()));
  ASSERT_TRUE(WriteAll(fd.get(), text.substr(text.size() / 2)));
  ASSERT_TRUE(update());
  EXPECT_EQ(read_in_parts.Find(Address(0x1000 + 2999 * 16), MonotonicNow())->function, "f2999");
  EXPECT_EQ(read_in_parts.Find(Address(0x800000), MonotonicNow())->function, "f0");
  const auto place = read_in_parts.Find(Address(0x900000 + 19999), MonotonicNow());
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, "/b.js");
  EXPECT_EQ(place->line, 20000U);
  EXPECT_EQ(read_in_parts.bad_records(), 1U);
}

TEST_P(IndexerTest, SaysWhyItRefusesAJitDump) {
  const UniqueFd fd = FileOf(MadeUpJitDump({.magic = 0x4454694a}).bytes());
  const auto end =
      indexer_->JitDumpRecords(fd.get(), {.size = 40, .most_records = 10, .most_bytes = 1000},
                               [](const JitCode&) { FAIL(); });
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(end.error().message(), "a jitdump in the byte order of another machine");
}

}  // namespace
}  // namespace pyrometer
