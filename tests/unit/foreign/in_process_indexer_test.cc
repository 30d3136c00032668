// SPDX-License-Identifier: Apache-2.0
#include "foreign/in_process_indexer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

UniqueFd FileOf(std::string_view bytes) {
  UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).has_value());
  return fd;
}

TEST(InProcessIndexer, FindsBuildIdAndSegments) {
  InProcessIndexer indexer;
  const UniqueFd fd = *Open(FixturePath("two_texts"), O_RDONLY);
  const Result<ObjectFacts> facts = indexer.Inspect(fd.get());
  ASSERT_TRUE(facts.has_value()) << facts.error().message();
  EXPECT_EQ(facts->build_id.ToHex(), "0123456789abcdef");
  EXPECT_GE(std::ranges::count_if(facts->segments, &Segment::executable), 2);
}

TEST(InProcessIndexer, ReadsSymbols) {
  InProcessIndexer indexer;
  const UniqueFd fd = *Open(FixturePath("shared.so"), O_RDONLY);
  const Result<Made<SymbolTable>> symbols = indexer.Symbols({.own = fd.get()}, {});
  ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
  const ElfAddress address(NmSymbolOf("shared.so", "fixture_far").address);
  EXPECT_EQ(symbols->value.Find(address)->name, "fixture_far");
}

TEST(InProcessIndexer, CompilesUnwindTables) {
  InProcessIndexer indexer;
  const UniqueFd fd = *Open(FixturePath("unwound"), O_RDONLY);
  const Result<Made<UnwindTable>> table = indexer.Unwind({.own = fd.get()}, {});
  ASSERT_TRUE(table.has_value()) << table.error().message();
  const ElfAddress address(NmSymbolOf("unwound", "fixture_frame").address);
  EXPECT_EQ(table->value.RuleAt(address)->kind, PYRO_RULE_REGISTER);
}

TEST(InProcessIndexer, AddsWhatTheDebugFileTells) {
  InProcessIndexer indexer;
  const UniqueFd fd = *Open(FixturePath("unwound_bare"), O_RDONLY);
  const UniqueFd debug_file = *Open(FixturePath("unwound_debug_frame"), O_RDONLY);
  const ElfAddress address(NmSymbolOf("unwound_debug_frame", "fixture_frame").address);
  EXPECT_EQ(indexer.Unwind({.own = fd.get()}, {})->value.RuleAt(address)->kind, PYRO_RULE_NONE);
  const Result<Made<UnwindTable>> table =
      indexer.Unwind({.own = fd.get(), .debug = debug_file.get()}, {});
  ASSERT_TRUE(table.has_value()) << table.error().message();
  EXPECT_EQ(table->value.RuleAt(address)->kind, PYRO_RULE_REGISTER);
  EXPECT_FALSE(
      indexer.Unwind({.own = fd.get(), .debug = FileOf("no ELF file").get()}, {}).has_value());
}

TEST(InProcessIndexer, FindsNoSegmentsInWhatIsNoElfFile) {
  InProcessIndexer indexer;
  for (const char* bytes : {"", "\x7f", "#!/bin/sh\n"}) {
    const Result<ObjectFacts> facts = indexer.Inspect(FileOf(bytes).get());
    ASSERT_TRUE(facts.has_value()) << bytes;
    EXPECT_TRUE(facts->segments.empty());
    EXPECT_FALSE(indexer.Symbols({.own = FileOf(bytes).get()}, {}).has_value());
    EXPECT_FALSE(indexer.Unwind({.own = FileOf(bytes).get()}, {}).has_value());
  }
}

TEST(InProcessIndexer, RefusesADamagedElfFile) {
  InProcessIndexer indexer;
  const UniqueFd fd = FileOf(
      "\x7f"
      "ELF and then nothing of the kind");
  EXPECT_EQ(indexer.Inspect(fd.get()).error().code(), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace pyrometer
