// SPDX-License-Identifier: Apache-2.0
// What is made of a stripped Go program, against what its linker says of it: the machine's Go
// builds one twice. Most of a minute where its standard library has not been compiled yet.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "binary/segments.h"
#include "binary/symbols.h"
#include "foreign/in_process_indexer.h"
#include "pyrometer/abi/unwind.h"
#include "tests/shared/test_paths.h"

namespace pyrometer {
namespace {

class GoAgreement : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("go version >/dev/null 2>&1") != 0) {
      const char* const required = std::getenv("PYROMETER_REQUIRE_BPF");
      if (required != nullptr) FAIL() << "no go (Debian package golang-go) to build a program with";
      GTEST_SKIP() << "no go (Debian package golang-go) to build a program with";
    }
    std::string pattern = testing::TempDir() + "pyrometer_go_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  std::string Built(const std::string& name, const std::string& flags,
                    const std::string& source = "tests/programs/go_threads.go") const {
    const std::string path = directory_ + "/" + name;
    const std::string command = fmt::format(
        "HOME=${{HOME:-/root}} GOTOOLCHAIN=local GOFLAGS= CGO_ENABLED=0 go build -ldflags='{}' "
        "-o {} {}",
        flags, path, SourcePath(source));
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path;
  }

  std::string directory_;
};

struct FunctionSymbol {
  uint64_t end = 0;
  std::set<std::string> names = {};  // as Go's runtime has them
};

// By their beginnings.
std::map<uint64_t, FunctionSymbol> SymbolsOf(const ElfFile& elf) {
  std::map<uint64_t, FunctionSymbol> all;
  const Result<SectionTable> sections = SectionTable::Read(elf);
  EXPECT_TRUE(sections);
  const Result<SymbolRange> range = FindSymbols(*sections, SHT_SYMTAB);
  EXPECT_TRUE(range);
  SymbolNames names(elf, *range);
  const Result<void> read = ForEachSymbol(elf, *range, [&](const Elf64_Sym& symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) return;
    const Result<std::string_view> name = names.At(symbol.st_name);
    if (!name) return;
    constexpr std::string_view kAssembly = ".abi0";
    std::string_view plain = *name;
    if (plain.ends_with(kAssembly)) plain.remove_suffix(kAssembly.size());
    FunctionSymbol& function = all[symbol.st_value];
    function.end = symbol.st_value + symbol.st_size;
    function.names.emplace(plain);
  });
  EXPECT_TRUE(read);
  return all;
}

// In symbols Go's linker writes "." for what the runtime has "·" for, and the lengths of arrays
// for what some of its versions have "..." for.
bool IsSame(std::string_view symbol, std::string_view of_runtime) {
  size_t at = 0;
  for (size_t i = 0; i < of_runtime.size();) {
    const std::string_view rest = of_runtime.substr(i);
    if (rest.starts_with("...") && !symbol.substr(at).starts_with("...")) {
      at = symbol.find(']', at);
      if (at == std::string_view::npos) return false;
      i += 3;
      continue;
    }
    const bool is_dot = rest.starts_with("\xc2\xb7");
    if (at >= symbol.size() || symbol[at] != (is_dot ? '.' : rest[0])) return false;
    ++at;
    i += is_dot ? 2 : 1;
  }
  return at == symbol.size();
}

TEST_F(GoAgreement, StrippedFunctionsHaveTheNamesOfTheirSymbols) {
  const Result<UniqueFd> whole = Open(Built("whole", ""), O_RDONLY);
  const Result<UniqueFd> stripped = Open(Built("stripped", "-s -w"), O_RDONLY);
  ASSERT_TRUE(whole && stripped);
  InProcessIndexer indexer;
  const Result<Made<SymbolTable>> table = indexer.Symbols({.own = stripped->get()}, {});
  ASSERT_TRUE(table) << table.error().message();
  const auto symbols = SymbolsOf(*ElfFile::Open(whole->get()));
  EXPECT_GT(symbols.size(), 1000U);
  std::vector<std::string> wrong;
  for (const auto& [address, function] : symbols) {
    const std::optional<Symbol> found = table->value.Find(ElfAddress(address));
    const bool is_right = found && found->start == ElfAddress(address) &&
                          std::ranges::any_of(function.names, [&](const auto& name) {
                            return IsSame(name, found->name);
                          });
    if (!is_right)
      wrong.push_back(*function.names.begin() + " is " + (found ? found->name : "nothing"));
  }
  EXPECT_TRUE(wrong.empty()) << wrong.size() << ", of which the first: " << wrong[0];
}

struct RuntimeFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;
};

// What the program at `path` says of itself: for each of `addresses` its frames, innermost first.
std::vector<std::vector<RuntimeFrame>> FramesSaidBy(const std::string& path,
                                                    const std::vector<uint64_t>& addresses) {
  std::ofstream in(path + ".in");
  for (const uint64_t address : addresses) in << fmt::format("{:x}\n", address);
  in.close();
  EXPECT_EQ(std::system(fmt::format("{0} <{0}.in >{0}.out", path).c_str()), 0);
  std::vector<std::vector<RuntimeFrame>> all(1);
  std::ifstream out(path + ".out");
  for (std::string line; std::getline(out, line);) {
    if (line.empty()) {
      all.emplace_back();
      continue;
    }
    std::istringstream fields(line);
    RuntimeFrame& frame = all.back().emplace_back();
    std::getline(fields, frame.function, '\t');
    std::getline(fields, frame.file, '\t');
    fields >> frame.line;
  }
  all.pop_back();
  return all;
}

// As the runtime prints generic functions.
std::string WithoutTypes(std::string_view name) {
  const size_t begin = name.find('[');
  const size_t end = name.rfind(']');
  if (begin == std::string_view::npos || end < begin) return std::string(name);
  return fmt::format("{}[...]{}", name.substr(0, begin), name.substr(end + 1));
}

// The runtime takes an offset of 0 for no name, though the first name has it.
bool IsSame(const SourceLine& line, std::string_view own, const RuntimeFrame& frame) {
  constexpr std::string_view kAssembly = ".abi0";
  if (own.ends_with(kAssembly)) own.remove_suffix(kAssembly.size());
  const std::string_view name = line.function.empty() ? own : line.function;
  const bool is_named = frame.function.empty() || IsSame(name, frame.function) ||
                        WithoutTypes(name) == frame.function;
  return is_named && line.file == frame.file && line.line == frame.line;
}

// Of padding it says "?"; before Go 1.23 it tells only the first of several.
bool AreSame(const std::vector<SourceLine>& lines, std::string_view own,
             const std::vector<RuntimeFrame>& frames) {
  if (lines.empty()) return frames.size() == 1 && frames[0].file == "?";
  if (frames.empty() || frames.size() > lines.size()) return false;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!IsSame(lines[i], own, frames[i])) return false;
  }
  return true;
}

std::vector<uint64_t> PlacesIn(const ElfFile& elf, const SymbolTable& table) {
  constexpr uint64_t kPlaces = 10'000;
  std::vector<uint64_t> places;
  const Result<SectionTable> sections = SectionTable::Read(elf);
  const Section* const text = sections ? sections->Find(".text") : nullptr;
  for (uint64_t i = 0; text != nullptr && i < kPlaces; ++i) {
    const uint64_t place = text->header.sh_addr + text->header.sh_size / kPlaces * i + i % 7;
    const std::optional<Symbol> symbol = table.Find(ElfAddress(place));
    if (!symbol) continue;
    // What the runtime is asked of is the next byte, and that may be another function's.
    const std::optional<Symbol> next = table.Find(ElfAddress(place + 1));
    if (next && next->start == symbol->start) places.push_back(place);
  }
  return places;
}

class LinesOfGo : public GoAgreement, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Flags, LinesOfGo, testing::Values("-s -w", ""));

TEST_P(LinesOfGo, AndInlinedFunctionsAreThoseThatTheRuntimeTells) {
  const std::string path = Built("program", GetParam(), "tests/programs/go_frames.go");
  const Result<UniqueFd> file = Open(path, O_RDONLY);
  ASSERT_TRUE(file);
  const auto table = InProcessIndexer().Symbols({.own = file->get()}, {});
  ASSERT_TRUE(table) << table.error().message();
  const std::vector<uint64_t> places = PlacesIn(*ElfFile::Open(file->get()), table->value);
  EXPECT_GT(places.size(), 9'000U);
  const auto said = FramesSaidBy(path, places);
  ASSERT_EQ(said.size(), places.size());
  size_t inlined = 0;
  size_t whole = 0;
  std::vector<uint64_t> wrong;
  for (size_t i = 0; i < places.size(); ++i) {
    const ElfAddress place(places[i]);
    const std::vector<SourceLine> lines = table->value.LinesAt(place);
    inlined += lines.size() > 1 ? 1U : 0U;
    whole += lines.size() == said[i].size() ? 1U : 0U;
    if (!AreSame(lines, table->value.Find(place)->name, said[i])) wrong.push_back(places[i]);
  }
  fmt::print("{} places, {} in inlined functions; of {} the runtime tells all functions\n",
             places.size(), inlined, whole);
  EXPECT_GT(inlined, places.size() / 20);
  EXPECT_TRUE(wrong.empty()) << wrong.size() << fmt::format(", the first at {:#x}", wrong[0]);
}

// The same file without its table of functions of Go.
std::string WithoutTable(const std::string& path) {
  const Result<std::string> whole = ReadFile(path);
  EXPECT_TRUE(whole);
  std::string image = *whole;
  constexpr std::string_view kName = ".gopclntab";
  for (size_t at = image.find(kName); at != std::string::npos; at = image.find(kName, at)) {
    image[at + 1] = 'x';
  }
  std::string copy = path + ".without";
  std::ofstream(copy, std::ios::binary) << image;
  return copy;
}

// What GoFrames knows better.
bool IsOfTheRuntime(const pyro_unwind_rule& rule) {
  return rule.kind == PYRO_RULE_END || rule.kind == PYRO_RULE_SIGNAL ||
         rule.kind == PYRO_RULE_SWITCHED || rule.cfa_offset % 8 != 0;
}

// But for the frame pointer, which Go's call frame information leaves out, and what GoFrames knows.
TEST_F(GoAgreement, FramesAreWhereTheCallFrameInformationSays) {
  const std::string path = Built("whole", "");
  const Result<UniqueFd> with = Open(path, O_RDONLY);
  const Result<UniqueFd> without = Open(WithoutTable(path), O_RDONLY);
  ASSERT_TRUE(with && without);
  InProcessIndexer indexer;
  const auto own = indexer.Unwind({.own = with->get()}, {});
  const auto linkers = indexer.Unwind({.own = without->get()}, {});
  ASSERT_TRUE(own && linkers);
  uint64_t same = 0;
  uint64_t of_runtime = 0;
  std::vector<uint64_t> different;
  const ElfFile elf = *ElfFile::Open(with->get());
  for (const auto& [begin, function] : SymbolsOf(elf)) {
    for (uint64_t address = begin; address < function.end; ++address) {
      const pyro_unwind_rule& mine = *own->value.RuleAt(ElfAddress(address));
      const pyro_unwind_rule& theirs = *linkers->value.RuleAt(ElfAddress(address));
      if (theirs.kind == PYRO_RULE_NONE) continue;
      if (IsOfTheRuntime(mine)) {
        ++of_runtime;
      } else if (mine.kind == theirs.kind && mine.cfa_register == theirs.cfa_register &&
                 mine.cfa_offset == theirs.cfa_offset && mine.ra_offset == theirs.ra_offset) {
        ++same;
      } else {
        different.push_back(address);
      }
    }
  }
  fmt::print("{} bytes of code agree, {} are of the runtime\n", same, of_runtime);
  EXPECT_GT(same, 100'000U);
  EXPECT_GT(of_runtime, 0U);
  EXPECT_LT(of_runtime, 4096U) << "a dozen small functions";
  EXPECT_TRUE(different.empty()) << different.size() << fmt::format(" from {:#x}", different[0]);
}

}  // namespace
}  // namespace pyrometer
