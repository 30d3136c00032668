// SPDX-License-Identifier: Apache-2.0
// Compiles every ELF file of the machine, and prints what that takes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <set>
#include <string>

#include "base/file.h"
#include "base/unique_fd.h"
#include "tests/unit/unwind/printed_rule.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

double CpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Sweep {
  size_t files = 0;
  size_t without_rows = 0;
  size_t failed = 0;
  size_t with_bad_functions = 0;
  size_t with_exotic = 0;
  uint64_t rows = 0;
  uint64_t pages = 0;
  uint64_t rules = 0;  // summed up over the files
  uint64_t functions = 0;
  uint64_t bad_functions = 0;
  uint64_t overlaps = 0;
  std::set<std::string> distinct;
  std::set<std::string> distinct_without_rbx;
  std::array<uint64_t, PYRO_RULE_KINDS> rows_by_kind{};
  double seconds = 0;  // of CPU time
  // Of one file, or page.
  uint32_t most_functions = 0;
  size_t most_pages = 0;
  size_t most_rules = 0;
  uint32_t most_rows = 0;
};

void Add(const UnwindTable& table, Sweep& sweep) {
  ++sweep.files;
  sweep.without_rows += table.empty() ? 1 : 0;
  sweep.with_bad_functions += table.bad_functions == 0 ? 0 : 1;
  sweep.with_exotic += table.exotic.empty() ? 0 : 1;
  sweep.rows += table.rows.size();
  sweep.pages += table.pages.size();
  sweep.rules += table.rules.size();
  sweep.functions += table.functions;
  sweep.bad_functions += table.bad_functions;
  sweep.overlaps += table.overlaps;
  sweep.most_functions = std::max(sweep.most_functions, table.functions);
  sweep.most_pages = std::max(sweep.most_pages, table.pages.size());
  sweep.most_rules = std::max(sweep.most_rules, table.rules.size());
  for (const UnwindTable::Page& page : table.pages) {
    sweep.most_rows = std::max(sweep.most_rows, page.row_count);
  }
  for (const pyro_unwind_row& row : table.rows) {
    ++sweep.rows_by_kind.at(table.rules.at(row.rule).kind);
  }
  for (pyro_unwind_rule rule : table.rules) {
    if (rule.kind == PYRO_RULE_EXOTIC) continue;
    sweep.distinct.insert(Print(rule));
    rule.rbx_offset = PYRO_RBX_LOST;
    sweep.distinct_without_rbx.insert(Print(rule));
  }
}

void PrintPeculiarities(const std::string& path, const UnwindTable& table) {
  if (table.bad_functions == 0 && table.exotic.empty()) return;
  fmt::print("{}: {} bad functions, {} exotic rules\n", path, table.bad_functions,
             table.exotic.size());
}

void CompileFile(const std::string& path, Sweep& sweep) {
  const Result<UniqueFd> fd = Open(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return;
  const Result<ElfFile> elf = ElfFile::Open(fd->get());
  if (!elf) return;
  const double begin = CpuSeconds();
  const Result<UnwindTable> table = CompileUnwindTable(*elf);
  sweep.seconds += CpuSeconds() - begin;
  if (!table) {
    ++sweep.failed;
    fmt::print("{}: {}\n", path, table.error().message());
    return;
  }
  Add(*table, sweep);
  PrintPeculiarities(path, *table);
}

void PrintSweep(const Sweep& s) {
  constexpr size_t kRow = sizeof(pyro_unwind_row);
  const uint64_t bytes =
      s.rows * kRow + s.pages * sizeof(UnwindTable::Page) + s.rules * sizeof(pyro_unwind_rule);
  fmt::print("{} files, {} without rows, {} failed\n", s.files, s.without_rows, s.failed);
  fmt::print("{:.2f} s of CPU, {:.1f} M rows/s\n", s.seconds,
             static_cast<double>(s.rows) / s.seconds / 1e6);
  fmt::print("{} rows of {} bytes, {:.2f} with pages and rules; {} pages\n", s.rows, kRow,
             static_cast<double>(bytes) / static_cast<double>(s.rows), s.pages);
  fmt::print("{} functions, {} bad ones in {} files, {} overlaps\n", s.functions, s.bad_functions,
             s.with_bad_functions, s.overlaps);
  fmt::print("{} distinct rules, {} without RBX; exotic rules in {} files\n", s.distinct.size(),
             s.distinct_without_rbx.size(), s.with_exotic);
  fmt::print("at most {} functions, {} pages and {} rules in a file, {} rows in a page\n",
             s.most_functions, s.most_pages, s.most_rules, s.most_rows);
  constexpr std::array kKinds{"none",        "end", "signal",  "exotic",  "register",
                              "dereference", "PLT", "leaving", "switched"};
  static_assert(kKinds.size() == PYRO_RULE_KINDS);
  for (size_t kind = 0; kind < s.rows_by_kind.size(); ++kind) {
    fmt::print("  {:>9} rows {}\n", s.rows_by_kind[kind], kKinds[kind]);
  }
}

TEST(EveryFileOfTheMachine, IsCompiled) {
  Sweep sweep;
  for (const char* root : {"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"}) {
    if (!fs::exists(root)) continue;
    constexpr auto kOptions = fs::directory_options::skip_permission_denied;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root, kOptions)) {
      if (entry.is_regular_file() && !entry.is_symlink()) CompileFile(entry.path(), sweep);
    }
  }
  PrintSweep(sweep);
  ASSERT_GT(sweep.files, 0U);
  EXPECT_EQ(sweep.failed, 0U);
  EXPECT_LE(sweep.bad_functions, sweep.functions / 10'000);
  // A table of many files shares its rules; numbers have 16 bits.
  EXPECT_LE(sweep.distinct.size(), 16'384U);
}

}  // namespace
}  // namespace pyrometer
