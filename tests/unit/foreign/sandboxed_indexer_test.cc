// SPDX-License-Identifier: Apache-2.0
#include "foreign/sandboxed_indexer.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/unique_fd.h"
#include "foreign/in_process_indexer.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/symbolize/jit_dump_file.h"

namespace pyrometer {
namespace {

class SandboxedIndexerTest : public ::testing::Test {
 protected:
  static std::shared_ptr<ReaderPool> Start(std::shared_ptr<Indexer> indexer = nullptr) {
    Result<std::unique_ptr<ReaderPool>> pool =
        ReaderPool::Start({.clock = std::make_shared<FakeClock>(), .indexer = std::move(indexer)});
    EXPECT_TRUE(pool.has_value()) << pool.error().message();
    return pool ? *std::move(pool) : nullptr;
  }

  const std::shared_ptr<ReaderPool> readers_ = Start();
  SandboxedIndexer sandboxed_{readers_};
  InProcessIndexer in_process_;
};

void ExpectEqual(const UnwindTable& a, const UnwindTable& b) {
  EXPECT_EQ(a.first_page, b.first_page);
  EXPECT_EQ(a.sparse, b.sparse);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.covered_text, b.covered_text);
  EXPECT_EQ(a.functions, b.functions);
  EXPECT_EQ(a.exotic, b.exotic);
  const auto have_equal_bytes = [](const auto& x, const auto& y) {
    return std::ranges::equal(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  };
  EXPECT_TRUE(have_equal_bytes(a.rows, b.rows));
  EXPECT_TRUE(have_equal_bytes(a.rules, b.rules));
}

// At addresses all over a file.
void ExpectEqual(const SymbolTable& a, const SymbolTable& b) {
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(a.has_names(), b.has_names());
  for (uint64_t address = a.layout().base; address < a.layout().base + (1 << 20); address += 97) {
    const std::optional<Symbol> of_a = a.Find(ElfAddress(address));
    const std::optional<Symbol> of_b = b.Find(ElfAddress(address));
    ASSERT_EQ(of_a.has_value(), of_b.has_value()) << address;
    if (!of_a) continue;
    ASSERT_EQ(of_a->name, of_b->name);
    ASSERT_EQ(of_a->start, of_b->start);
  }
}

TEST_F(SandboxedIndexerTest, MakesWhatThisProcessWouldMake) {
  for (const std::string& path : {FixturePath("shared.so"), FixturePath("unwound"),
                                  FixturePath("two_texts"), std::string("/proc/self/exe")}) {
    SCOPED_TRACE(path);
    const UniqueFd fd = *Open(path, O_RDONLY);
    const FilesToRead files{.own = fd.get(), .is_large = path.starts_with("/proc")};
    const Result<ObjectFacts> facts = sandboxed_.Inspect(fd.get());
    ASSERT_TRUE(facts.has_value()) << facts.error().message();
    EXPECT_EQ(facts->build_id, in_process_.Inspect(fd.get())->build_id);
    EXPECT_EQ(facts->segments.size(), in_process_.Inspect(fd.get())->segments.size());
    const Result<Made<UnwindTable>> table = sandboxed_.Unwind(files, {});
    ASSERT_TRUE(table.has_value()) << table.error().message();
    ExpectEqual(table->value, in_process_.Unwind(files, {})->value);
    EXPECT_TRUE(*sandboxed_.Repeats(files, table->reading));
    const Result<Made<SymbolTable>> symbols = sandboxed_.Symbols(files, {});
    ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
    ExpectEqual(symbols->value, in_process_.Symbols(files, {})->value);
    EXPECT_TRUE(*sandboxed_.Repeats(files, symbols->reading));
  }
}

TEST_F(SandboxedIndexerTest, ReadsDebugFiles) {
  const UniqueFd stripped = *Open(FixturePath("lines_stripped.so"), O_RDONLY);
  const UniqueFd debug = *Open(FixturePath("lines.debug"), O_RDONLY);
  const Result<DebugLinks> links = sandboxed_.Links(stripped.get());
  ASSERT_TRUE(links.has_value()) << links.error().message();
  EXPECT_FALSE(links->has_debug_info);
  ASSERT_TRUE(links->debug_file.has_value());
  EXPECT_EQ(links->debug_file->name, "lines.debug");
  EXPECT_EQ(links->debug_file->checksum, *sandboxed_.Checksum(debug.get()));
  EXPECT_TRUE(sandboxed_.Links(debug.get())->has_debug_info);
  EXPECT_FALSE(sandboxed_.Links(debug.get())->debug_file.has_value());
  EXPECT_FALSE(sandboxed_.Links(Open("/etc/passwd", O_RDONLY)->get()).has_value());

  const SymbolTableOptions options{.with_debug_info = true};
  const FilesToRead files{.own = stripped.get(), .debug = debug.get()};
  const Result<Made<SymbolTable>> symbols = sandboxed_.Symbols(files, options);
  ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
  const UniqueFd whole = *Open(FixturePath("lines_5.so"), O_RDONLY);
  const SymbolTable expected = in_process_.Symbols({.own = whole.get()}, options)->value;
  ExpectEqual(symbols->value, expected);
  EXPECT_GT(expected.layout().sources, 0U);
  for (uint64_t address = 0; address < 0x2000; ++address) {
    ASSERT_EQ(symbols->value.LinesAt(ElfAddress(address)), expected.LinesAt(ElfAddress(address)));
  }
  EXPECT_TRUE(*sandboxed_.Repeats(files, symbols->reading));
}

TEST_F(SandboxedIndexerTest, ReadsAlternateFiles) {
  const UniqueFd own = *Open(FixturePath("shared_5.so"), O_RDONLY);
  const UniqueFd alternate = *Open(FixturePath("shared_5.debug"), O_RDONLY);
  const Result<DebugLinks> links = sandboxed_.Links(own.get());
  ASSERT_TRUE(links.has_value()) << links.error().message();
  ASSERT_TRUE(links->alternate.has_value());
  EXPECT_EQ(links->alternate->name, "shared_5.debug");
  const Result<DebugLinks> of_alternate = sandboxed_.Links(alternate.get());
  ASSERT_TRUE(of_alternate.has_value()) << of_alternate.error().message();
  EXPECT_EQ(of_alternate->as_alternate, links->alternate->build_id);

  const SymbolTableOptions options{.with_debug_info = true};
  const FilesToRead both{.own = own.get(), .alternate = alternate.get()};
  const Result<Made<SymbolTable>> symbols = sandboxed_.Symbols(both, options);
  ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
  EXPECT_TRUE(*sandboxed_.Repeats(both, symbols->reading));
  const Result<Made<SymbolTable>> without = sandboxed_.Symbols({.own = own.get()}, options);
  ASSERT_TRUE(without.has_value()) << without.error().message();
  const auto unknown = [](const SymbolTable& table) {
    size_t count = 0;
    for (uint64_t address = 0; address < 0x4000; ++address) {
      for (const SourceLine& line : table.LinesAt(ElfAddress(address))) {
        count += line.function == "[unknown]" ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(unknown(symbols->value), 0U);
  EXPECT_GT(unknown(without->value), 0U);

  const UniqueFd stripped = *Open(FixturePath("lines_stripped.so"), O_RDONLY);
  const FilesToRead all{.own = stripped.get(), .debug = own.get(), .alternate = alternate.get()};
  const Result<Made<SymbolTable>> of_all = sandboxed_.Symbols(all, options);
  ASSERT_TRUE(of_all.has_value()) << of_all.error().message();
  EXPECT_TRUE(*sandboxed_.Repeats(all, of_all->reading));
  ExpectEqual(of_all->value, symbols->value);
}

TEST_F(SandboxedIndexerTest, ReadsDebugInformation) {
  for (const char* fixture : {"lines_5.so", "lines_compressed.so"}) {
    const UniqueFd fd = *Open(FixturePath(fixture), O_RDONLY);
    const FilesToRead files{.own = fd.get()};
    const Result<Made<SymbolTable>> without = sandboxed_.Symbols(files, {});
    ASSERT_TRUE(without.has_value());
    EXPECT_GT(without->value.unread_debug_info(), 0U);
    const SymbolTableOptions options{.with_debug_info = true};
    const Result<Made<SymbolTable>> symbols = sandboxed_.Symbols(files, options);
    ASSERT_TRUE(symbols.has_value()) << symbols.error().message();
    EXPECT_EQ(symbols->value.unread_debug_info(), 0U);
    const SymbolTable expected = in_process_.Symbols(files, options)->value;
    ExpectEqual(symbols->value, expected);
    size_t lines = 0;
    for (uint64_t address = 0; address < 0x2000; ++address) {
      const std::vector<SourceLine> here = symbols->value.LinesAt(ElfAddress(address));
      ASSERT_EQ(here, expected.LinesAt(ElfAddress(address)));
      lines += here.size();
    }
    EXPECT_GT(lines, 0U);
    EXPECT_TRUE(*sandboxed_.Repeats(files, symbols->reading));
  }
}

TEST_F(SandboxedIndexerTest, AddsWhatTheDebugFileTells) {
  const UniqueFd fd = *Open(FixturePath("unwound_bare"), O_RDONLY);
  const UniqueFd debug_file = *Open(FixturePath("unwound_debug_frame"), O_RDONLY);
  const FilesToRead files{.own = fd.get(), .debug = debug_file.get()};
  const Result<Made<UnwindTable>> table = sandboxed_.Unwind(files, {});
  ASSERT_TRUE(table.has_value()) << table.error().message();
  ExpectEqual(table->value, in_process_.Unwind(files, {})->value);
  EXPECT_TRUE(*sandboxed_.Repeats(files, table->reading));
  EXPECT_FALSE(*sandboxed_.Repeats({.own = fd.get()}, table->reading)) << "without that file";
}

TEST_F(SandboxedIndexerTest, ReadsCode) {
  const std::string bytes = ReadFile(FixturePath("unwound")).value();
  const UniqueFd fd = *Open(FixturePath("unwound"), O_RDONLY);
  ASSERT_GT(bytes.size(), 5000U);
  const auto read = [&](uint64_t offset) {
    const std::vector<std::byte> code = sandboxed_.ReadCode(fd.get(), offset).value();
    return std::string(reinterpret_cast<const char*>(code.data()), code.size());
  };
  EXPECT_EQ(read(100), bytes.substr(100, Indexer::kMostOfCode));
  EXPECT_EQ(read(bytes.size() - 10), bytes.substr(bytes.size() - 10)) << "fewer at its end";
  EXPECT_EQ(read(bytes.size() + 10), "");
}

// What an indexer tells of bytes [begin, end) of a file.
struct PerfMapText {
  std::vector<std::string> lines;
  uint64_t bad = 0;
  uint64_t end = 0;
  std::string last;
  bool operator==(const PerfMapText&) const = default;

  static PerfMapText Of(Indexer& indexer, int fd, const PerfMapPart& part) {
    PerfMapText text;
    const Result<std::optional<PerfMapFunction>> last =
        indexer.PerfMapLines(fd, part, std::chrono::seconds(1), [&](const PerfMapLines& lines) {
          for (const auto& [start, end, name] : lines.functions) {
            text.lines.push_back(fmt::format("{:x} {:x} {}", start, end, name));
          }
          text.bad += lines.bad;
          text.end = lines.end;
        });
    EXPECT_TRUE(last.has_value()) << last.error().message();
    if (last && *last) text.last = (*last)->name;
    return text;
  }
};

TEST_F(SandboxedIndexerTest, ReadsPerfMaps) {
  std::string bytes = "garbage\n10 10 a\x1b[31m\n";
  for (int i = 0; i < 10'000; ++i) bytes += fmt::format("{:x} 10 function_{}\n", i * 16, i);
  bytes += std::string(5000, 'x') + "\n20 20 last";
  const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_TRUE(WriteAll(fd.get(), bytes).has_value());
  const PerfMapText all = PerfMapText::Of(sandboxed_, fd.get(), {.end = bytes.size()});
  EXPECT_EQ(all.lines.size(), 10'001U);
  EXPECT_EQ(all.lines.front(), "10 20 a\uFFFD[31m");
  EXPECT_EQ(all.lines.back(), "270f0 27100 function_9999");
  EXPECT_EQ(all.bad, 2U);
  EXPECT_EQ(all.last, "last");
  for (const PerfMapPart& part :
       {PerfMapPart{.end = bytes.size()}, PerfMapPart{.begin = 3, .end = bytes.size() - 3},
        PerfMapPart{.begin = 20'000, .end = 40'000, .begins_in_line = true},
        PerfMapPart{.begin = bytes.size() - 3000, .end = bytes.size(), .begins_in_line = true},
        PerfMapPart{.begin = 5, .end = 5}, PerfMapPart{.begin = 5, .end = 1 << 30}}) {
    EXPECT_EQ(PerfMapText::Of(sandboxed_, fd.get(), part),
              PerfMapText::Of(in_process_, fd.get(), part));
  }
}

// What an indexer tells of a part of a file, and what it fails with.
struct JitDumpText {
  std::vector<std::string> records;
  uint64_t bad = 0;
  uint64_t lines_left_out = 0;
  uint64_t read = 0;
  uint64_t end = 0;
  bool is_all = false;
  std::string error;
  bool operator==(const JitDumpText&) const = default;

  static JitDumpText Of(Indexer& indexer, int fd, const JitDumpPart& part) {
    JitDumpText text;
    const auto take = [&](const JitDumpRecords& records) {
      for (const JitDumpRecords::Record& record : records.records) {
        std::string& said = text.records.emplace_back(
            fmt::format("{} {:x} {:x} {:x} {} {}", static_cast<int>(record.kind), record.start,
                        record.old_start, record.size, record.time.value(), record.name));
        for (const auto& [offset, line, file] : record.lines) {
          said += fmt::format(" {}:{}:{}", offset, line == 0 ? "-" : record.files[file], line);
        }
      }
      text.bad += records.bad;
      text.lines_left_out += records.lines_left_out;
      text.read += records.read;
      text.end = records.end;
    };
    const Result<bool> is_all = indexer.JitDumpRecords(fd, part, std::chrono::seconds(5), take);
    text.is_all = is_all && *is_all;
    if (!is_all) text.error = is_all.error().message();
    return text;
  }
};

// Two functions and a move for each of so many.
std::string ManyJitRecords(int count) {
  JitDumpFile file;
  file.Record(0, "bad").Load(0x100, 0x10, "a\x1b[31m", 5);
  for (int i = 0; i < count; ++i) {
    const uint64_t start = 0x10000 + 256 * static_cast<uint64_t>(i);
    const std::string source = fmt::format("file_{}.js", i % 7);
    file.Lines(start, {{start, 1, source}, {start + 8, 2, "\xff"}, {start + 16, 3, "\n"}})
        .Load(start, 64, fmt::format("function_{}", i), 10 + static_cast<uint64_t>(i))
        .Load(start + 128, 64, "other")
        .Move(start, start + 64, 64, 20 + static_cast<uint64_t>(i));
  }
  return file.bytes();
}

TEST_F(SandboxedIndexerTest, ReadsJitDumps) {
  const std::string bytes = ManyJitRecords(1000);
  const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_TRUE(WriteAll(fd.get(), bytes + "half").has_value());
  constexpr uint64_t kAll = 1 << 30;
  const JitDumpText all =
      JitDumpText::Of(sandboxed_, fd.get(), {.end = bytes.size() + 4, .to_read = kAll});
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.records.size(), 3001U);
  EXPECT_EQ(all.records.front(), "0 100 0 10 5 a\uFFFD[31m");
  EXPECT_EQ(all.records[1], "0 10000 0 40 10 function_0 0:file_0.js:1 8:file_0.js:2 16:-:0");
  EXPECT_EQ(all.records.back(), "1 4e740 4e700 40 1019 ");
  EXPECT_EQ(all.bad, 1U);
  EXPECT_EQ(all.end, bytes.size());
  EXPECT_TRUE(all.is_all);
  const JitDumpText some =
      JitDumpText::Of(sandboxed_, fd.get(), {.end = bytes.size(), .to_read = 50'000});
  EXPECT_FALSE(some.is_all);
  EXPECT_LT(some.end, bytes.size());
  for (const JitDumpPart& part :
       {JitDumpPart{.end = bytes.size(), .to_read = kAll}, JitDumpPart{.end = 10, .to_read = kAll},
        JitDumpPart{.end = bytes.size(), .to_read = 50'000},
        JitDumpPart{.begin = some.end, .end = bytes.size(), .to_read = kAll},
        JitDumpPart{.begin = 40, .end = 5000, .to_read = kAll},
        JitDumpPart{.begin = 45, .end = 5000, .to_read = kAll},
        JitDumpPart{.begin = 40, .end = 1 << 30, .to_read = kAll}}) {
    EXPECT_EQ(JitDumpText::Of(sandboxed_, fd.get(), part),
              JitDumpText::Of(in_process_, fd.get(), part));
  }
  EXPECT_EQ(readers_->counters().died, 0U);
}

TEST_F(SandboxedIndexerTest, ReadsFunctionsOfJitDumpsWithAsManyLinesAsThereMayBe) {
  std::vector<std::string> names;
  std::vector<JitDumpFile::Line> lines;
  for (uint32_t i = 0; i < 8; ++i) names.emplace_back(kMostOfJitName, static_cast<char>('a' + i));
  for (uint32_t i = 0; i < kMostJitLines; ++i) lines.push_back({0x1000 + i, i + 1, names[i % 8]});
  const std::string name(kMostOfJitName, 'n');
  const std::string bytes =
      JitDumpFile().Lines(0x1000, lines).Load(0x1000, 5000, name).Load(0x9000, 1, name).bytes();
  const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_TRUE(WriteAll(fd.get(), bytes).has_value());
  const JitDumpPart part{.end = bytes.size(), .to_read = 1 << 30};
  const JitDumpText all = JitDumpText::Of(sandboxed_, fd.get(), part);
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.records.size(), 2U);
  EXPECT_EQ(all, JitDumpText::Of(in_process_, fd.get(), part));
}

TEST_F(SandboxedIndexerTest, HasTheSameAnswerForMutatedJitDumps) {
  const std::string original = ManyJitRecords(3);
  std::mt19937 random(1);
  TemporaryTree tree;
  for (int mutation = 0; mutation < 300; ++mutation) {
    std::string bytes = original;
    for (uint32_t changes = random() % 4 + 1; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    // With a name: so all have one reader.
    tree.File("mutated", bytes);
    const UniqueFd fd = *Open(tree.Path("mutated"), O_RDONLY);
    const JitDumpPart part{.end = bytes.size(), .to_read = 1 << 20};
    ASSERT_EQ(JitDumpText::Of(sandboxed_, fd.get(), part),
              JitDumpText::Of(in_process_, fd.get(), part))
        << mutation;
  }
  EXPECT_EQ(readers_->counters().died, 0U);
}

TEST_F(SandboxedIndexerTest, RepeatsNothingOfAFileWithOtherBytes) {
  const std::string bytes = ReadFile(FixturePath("unwound")).value();
  const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_TRUE(WriteAll(fd.get(), bytes).has_value());
  const Result<Made<UnwindTable>> table = sandboxed_.Unwind({.own = fd.get()}, {});
  ASSERT_TRUE(table.has_value());
  ASSERT_FALSE(table->reading.pieces.empty());
  const Reading::Piece& last = table->reading.pieces.back();
  const char other = static_cast<char>(~bytes[last.offset]);
  ASSERT_EQ(::pwrite(fd.get(), &other, 1, static_cast<off_t>(last.offset)), 1);
  EXPECT_FALSE(*sandboxed_.Repeats({.own = fd.get()}, table->reading));
}

// Whatever bytes of a file are: it has an answer, and its reader lives. PYROMETER_MUTATIONS: how
// often that is tried with each file.
TEST_F(SandboxedIndexerTest, HasAnAnswerForMutatedFiles) {
  const char* wanted = std::getenv("PYROMETER_MUTATIONS");
  const int mutations = wanted == nullptr ? 100 : std::atoi(wanted);
  TemporaryTree tree;
  std::mt19937 random(1);
  for (const std::string& path : {FixturePath("shared.so"), FixturePath("unwound"),
                                  FixturePath("two_texts"), FixturePath("unwound_debug_frame")}) {
    const std::string original = ReadFile(path).value();
    for (int mutation = 0; mutation < mutations; ++mutation) {
      std::string bytes = original;
      // Most of what steers a reader is at the beginning and at the end.
      for (uint32_t changes = random() % 16 + 1; changes > 0; --changes) {
        size_t at = random() % bytes.size();
        if (random() % 2 == 0) at = random() % 2 == 0 ? at % 512 : bytes.size() - 1 - at % 4096;
        bytes[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
      }
      if (random() % 8 == 0) bytes.resize(random() % bytes.size());
      // With a name: so all have one reader.
      tree.File("mutated", bytes);
      const UniqueFd fd = *Open(tree.Path("mutated"), O_RDONLY);
      const FilesToRead files{.own = fd.get()};
      sandboxed_.Inspect(fd.get()).has_value();  // any answer will do
      sandboxed_.Unwind(files, {}).has_value();
      sandboxed_.Symbols(files, {}).has_value();
      ASSERT_EQ(readers_->counters().died, 0U) << path << ", mutation " << mutation;
    }
  }
}

TEST_F(SandboxedIndexerTest, FailsAsThisProcessWould) {
  for (const char* bytes : {"", "\x7f", "#!/bin/sh\n",
                            "\x7f"
                            "ELF and nothing of the kind"}) {
    SCOPED_TRACE(bytes);
    const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
    ASSERT_TRUE(WriteAll(fd.get(), std::string_view(bytes)).has_value());
    const FilesToRead files{.own = fd.get()};
    EXPECT_EQ(sandboxed_.Inspect(fd.get()).has_value(), in_process_.Inspect(fd.get()).has_value());
    EXPECT_EQ(sandboxed_.Symbols(files, {}).error().message(),
              in_process_.Symbols(files, {}).error().message());
    EXPECT_EQ(sandboxed_.Unwind(files, {}).error().message(),
              in_process_.Unwind(files, {}).error().message());
  }
  EXPECT_EQ(readers_->counters().died, 0U);
}

TEST_F(SandboxedIndexerTest, ReadsHeadersThatTakeMoreMemoryThanMost) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shoff = sizeof(header) + sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = SHN_LORESERVE - 1;
  header.e_ehsize = sizeof(header);
  Elf64_Phdr text{};
  text.p_type = PT_LOAD;
  text.p_flags = PF_R | PF_X;
  text.p_filesz = text.p_memsz = text.p_align = 4096;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&text), sizeof(text));
  bytes.resize(bytes.size() + header.e_shnum * sizeof(Elf64_Shdr));
  const UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_TRUE(WriteAll(fd.get(), bytes).has_value());
  ASSERT_EQ(in_process_.Inspect(fd.get()).value().segments.size(), 1U);
  const Result<ObjectFacts> facts = sandboxed_.Inspect(fd.get());
  ASSERT_TRUE(facts.has_value()) << facts.error().message();
  EXPECT_EQ(facts->segments.size(), 1U);
}

// Loses its first reader.
class KilledOnce : public InProcessIndexer {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    if ((*asked_)++ == 0) std::abort();
    return InProcessIndexer::Inspect(fd);
  }

 private:
  // Of all readers together.
  std::atomic<int>* asked_ = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(*asked_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
};

TEST_F(SandboxedIndexerTest, ReadsHeadersAgainWhenTheirReaderIsKilled) {
  SandboxedIndexer sandboxed(Start(std::make_shared<KilledOnce>()));
  const UniqueFd fd = *Open(FixturePath("shared.so"), O_RDONLY);
  EXPECT_TRUE(sandboxed.Inspect(fd.get()).has_value());
}

// Has no memory for anything.
class OutOfMemory : public InProcessIndexer {
 public:
  Result<ObjectFacts> Inspect(int /*fd*/) override { throw std::bad_alloc(); }
  Result<std::vector<std::byte>> ReadCode(int /*fd*/, uint64_t /*offset*/) override {
    throw std::bad_alloc();
  }
  Result<Made<SymbolTable>> Symbols(const FilesToRead& /*files*/,
                                    const SymbolTableOptions& /*options*/) override {
    throw std::bad_alloc();
  }
};

TEST_F(SandboxedIndexerTest, SaysOfNoHeadersThatMoreMemoryWouldDo) {
  SandboxedIndexer sandboxed(Start(std::make_shared<OutOfMemory>()));
  const UniqueFd fd = *Open(FixturePath("shared.so"), O_RDONLY);
  EXPECT_EQ(sandboxed.Inspect(fd.get()).error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(sandboxed.ReadCode(fd.get(), 0).error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(sandboxed.Symbols({.own = fd.get()}, {}).error().code(), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace pyrometer
