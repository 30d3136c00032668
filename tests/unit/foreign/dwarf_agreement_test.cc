// SPDX-License-Identifier: Apache-2.0
// What is made of debug information, against what LLVM's symbolizer says of the same addresses.
// The machine's compilers build a program in several ways; dwz and objcopy change some of these,
// and what is said before and after is compared. PYROMETER_AGREE_ON names another file to
// compare by hand.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "binary/symbols.h"
#include "foreign/in_process_indexer.h"
#include "symbolize/elf_symbols.h"
#include "tests/shared/test_paths.h"

namespace pyrometer {
namespace {

constexpr uint64_t kPlaces = 10'000;

struct Said {
  std::string function;
  std::string file;
  uint32_t line = 0;
  uint32_t start_line = 0;

  bool operator==(const Said&) const = default;
};
using Chain = std::vector<Said>;  // innermost first

std::string Print(const Chain& chain) {
  std::string text;
  for (const Said& said : chain) {
    text +=
        fmt::format("    {} {}:{} ({})\n", said.function, said.file, said.line, said.start_line);
  }
  return text;
}

// "a/b/../c/./d" is a/c/d, which compilers write as they like.
std::string Normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::vector<Chain> AskLlvm(const std::string& path, const std::vector<uint64_t>& places) {
  std::string directory = testing::TempDir() + "pyrometer_dwarf_XXXXXX";
  EXPECT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string base = directory + "/asked";
  std::ofstream in(base + ".in");
  for (const uint64_t place : places) in << fmt::format("{:#x}\n", place);
  in.close();
  const std::string command = fmt::format(
      "llvm-symbolizer --obj={0} --output-style=JSON --no-demangle --functions=linkage --inlines "
      "<{1}.in >{1}.out",
      path, base);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<Chain> all;
  std::ifstream out(base + ".out");
  for (std::string line; std::getline(out, line);) {
    const auto answer = nlohmann::json::parse(line);
    Chain& chain = all.emplace_back();
    for (const auto& frame : answer.value("Symbol", nlohmann::json::array())) {
      chain.push_back({.function = frame["FunctionName"],
                       .file = Normal(frame["FileName"]),
                       .line = frame["Line"],
                       .start_line = frame["StartLine"]});
    }
  }
  std::filesystem::remove_all(directory);
  return all;
}

Chain Ours(const SymbolTable& table, uint64_t place) {
  const ElfAddress address(place);
  const std::optional<Symbol> symbol = table.Find(address);
  Chain chain;
  for (const SourceLine& line : table.LinesAt(address)) {
    chain.push_back({.function = line.function.empty() ? symbol->name : line.function,
                     .file = Normal(line.file),
                     .line = line.line,
                     .start_line = line.start_line});
  }
  return chain;
}

// Of all code that a symbol covers.
std::vector<uint64_t> PlacesIn(const ElfFile& elf, const SymbolTable& table) {
  std::vector<uint64_t> places;
  const Result<SectionTable> sections = SectionTable::Read(elf);
  const Section* const text = sections ? sections->Find(".text") : nullptr;
  for (uint64_t i = 0; text != nullptr && i < kPlaces; ++i) {
    const uint64_t step = text->header.sh_size * i / kPlaces;
    const uint64_t place = text->header.sh_addr + std::min(step + i % 7, text->header.sh_size - 1);
    if (table.Find(ElfAddress(place))) places.push_back(place);
  }
  return places;
}

struct Compared {
  size_t places = 0;
  size_t inlined = 0;
  size_t without = 0;  // of which neither knows more than the symbol
  std::vector<std::string> different;
};

// The functions that a file's symbols name, by where they begin: one may have several names.
class SymbolNamesOf {
 public:
  explicit SymbolNamesOf(const ElfFile& elf) {
    const Result<SectionTable> sections = SectionTable::Read(elf);
    const Result<SymbolRange> range = FindSymbols(*sections, SHT_SYMTAB);
    if (!range) return;
    SymbolNames names(elf, *range);
    const Result<void> read = ForEachSymbol(elf, *range, [&](const Elf64_Sym& symbol) {
      if (const auto name = names.At(symbol.st_name)) all_.emplace(symbol.st_value, *name);
    });
    EXPECT_TRUE(read);
  }

  bool Has(ElfAddress address, const std::string& name) const {
    return all_.contains({address.value(), name});
  }

 private:
  std::set<std::pair<uint64_t, std::string>> all_;
};

// By hand: LLVM takes a relative directory of the compilation twice, so of paths only the last part
// counts, and lines on which functions begin do not.
enum class Detail : uint8_t { kAll, kByHand };

bool HaveSamePath(const Said& ours, const Said& theirs, Detail detail) {
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  return detail == Detail::kAll ? ours.file == theirs.file : name(ours.file) == name(theirs.file);
}

// Of the outermost function the name is compared with the symbols instead.
bool AreSame(const Chain& ours, const Chain& theirs, Detail detail) {
  if (ours.size() != theirs.size()) return false;
  for (size_t i = 0; i < ours.size(); ++i) {
    // To a name that is no linkage name it does not add the scopes.
    const bool is_named = i + 1 == ours.size() || ours[i].function == theirs[i].function ||
                          ours[i].function.ends_with("::" + theirs[i].function);
    // A file without a line says nothing.
    const bool is_same = is_named && ours[i].line == theirs[i].line &&
                         (ours[i].line == 0 || HaveSamePath(ours[i], theirs[i], detail));
    if (!is_same) return false;
    if (detail == Detail::kAll && ours[i].start_line != theirs[i].start_line) {
      return false;
    }
  }
  return true;
}

Compared Compare(const std::string& path, Detail detail) {
  Compared compared;
  const Result<UniqueFd> file = Open(path, O_RDONLY);
  EXPECT_TRUE(file);
  const std::clock_t begin = std::clock();
  const auto table = InProcessIndexer().Symbols(
      {.own = file->get()}, {.with_debug_info = true, .most_in_memory = size_t{1} << 30});
  EXPECT_TRUE(table) << table.error().message();
  if (!table) return compared;
  fmt::print("{} ms of CPU time for a table of {} KiB\n",
             (std::clock() - begin) / (CLOCKS_PER_SEC / 1000), table->value.bytes() >> 10);
  const ElfFile elf = *ElfFile::Open(file->get());
  const SymbolNamesOf names(elf);
  const std::vector<uint64_t> places = PlacesIn(elf, table->value);
  const std::vector<Chain> said = AskLlvm(path, places);
  EXPECT_EQ(said.size(), places.size());
  compared.places = std::min(places.size(), said.size());
  for (size_t i = 0; i < compared.places; ++i) {
    const Chain ours = Ours(table->value, places[i]);
    compared.inlined += ours.size() > 1 ? 1U : 0U;
    // It takes a file's name without a line from the symbols.
    const bool knows_nothing = said[i].size() == 1 && said[i][0].line == 0;
    const std::string own = said[i].empty() ? std::string() : said[i].back().function;
    const bool is_named = names.Has(table->value.Find(ElfAddress(places[i]))->start, own);
    if (ours.empty() && knows_nothing) {
      ++compared.without;
    } else if (!is_named || !AreSame(ours, said[i], detail)) {
      compared.different.push_back(
          fmt::format("{:#x}\n  ours:\n{}  LLVM's:\n{}", places[i], Print(ours), Print(said[i])));
    }
  }
  fmt::print("{} places, {} in inlined functions, {} without a source; {} are different\n",
             compared.places, compared.inlined, compared.without, compared.different.size());
  for (size_t i = 0; i < std::min<size_t>(compared.different.size(), 10); ++i) {
    fmt::print("{}", compared.different[compared.different.size() / 10 * i + i % 2]);
  }
  return compared;
}

struct Build {
  const char* name;
  const char* compiler;
  const char* flags;
};

std::ostream& operator<<(std::ostream& out, const Build& build) {
  return out << build.name;
}

class DwarfAgreement : public testing::TestWithParam<Build> {};

INSTANTIATE_TEST_SUITE_P(
    Builds, DwarfAgreement,
    testing::Values(Build{"gcc_5_64_compressed", "g++", "-gdwarf-5 -gdwarf64 -gz=zlib"},
                    Build{"gcc_4_sections", "g++",
                          "-gdwarf-4 -ffunction-sections -Wl,--gc-sections -Wl,-z,noseparate-code"},
                    Build{"gcc_3", "g++", "-gdwarf-3"}, Build{"gcc_lto", "g++", "-g -flto"},
                    Build{"clang_5", "clang++", "-gdwarf-5"},
                    Build{"clang_4", "clang++", "-gdwarf-4"}),
    [](const auto& build) { return std::string(build.param.name); });

TEST_P(DwarfAgreement, IsThatOfLlvm) {
  std::string directory = testing::TempDir() + "pyrometer_dwarf_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/program";
  const std::string command =
      fmt::format("{} -std=c++17 -O2 {} -o {} {}", GetParam().compiler, GetParam().flags, path,
                  SourcePath("tests/programs/inlined.cc"));
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const Compared compared = Compare(path, Detail::kAll);
  std::filesystem::remove_all(directory);
  EXPECT_GT(compared.places, kPlaces / 2);
  EXPECT_GT(compared.inlined, compared.places / 4);
  EXPECT_LE(compared.different.size(), compared.places / 1000);
}

// What is done to a program `after`, which leaves what its debug information says. LLVM's
// symbolizer knows none of it.
struct Change {
  const char* name;
  const char* build;
  const char* command;
  bool has_alternate = false;  // in common.debug
};

std::ostream& operator<<(std::ostream& out, const Change& change) {
  return out << change.name;
}

constexpr const char* kToZstd = "objcopy --compress-debug-sections=zstd after";
constexpr const char* kToPartialUnits = "dwz after";
constexpr const char* kToAlternate = "cp after other && dwz -m common.debug after other";
constexpr const char* kToStandardAlternate = "cp after other && dwz -5 -m common.debug after other";
constexpr const char* kToCompressedAlternate =
    "cp after other && dwz -m common.debug after other && "
    "objcopy --compress-debug-sections=zstd after && "
    "objcopy --compress-debug-sections=zstd common.debug";

std::unique_ptr<ByteSource> BytesOf(const std::string& path) {
  const std::string text = *ReadFile(path);
  const auto bytes = std::as_bytes(std::span(text));
  return MemoryBytes({bytes.begin(), bytes.end()});
}

// `alternate`: its path, or "".
SymbolTable TableOf(const std::string& path, const std::string& alternate) {
  const ElfFile elf = *ElfFile::From(BytesOf(path));
  std::optional<ElfFile> shared;
  if (!alternate.empty()) shared = *ElfFile::FromShared(BytesOf(alternate));
  auto table = ReadSymbolTable(elf, {.with_debug_info = true, .most_in_memory = size_t{1} << 30},
                               {}, {.alternate = shared ? &*shared : nullptr});
  EXPECT_TRUE(table) << table.error().message();
  return table ? *std::move(table) : SymbolTable();
}

// Whether `found` says the same as `known` or less.
bool IsSameOrLess(const Said& known, const Said& found) {
  const bool is_named =
      found.function == "[unknown]" || known.function.find(found.function) != std::string::npos;
  return is_named && known.file.ends_with(found.file) && found.line == known.line &&
         (found.start_line == 0 || found.start_line == known.start_line);
}

class DwarfChange : public testing::TestWithParam<Change> {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    Run(fmt::format("{} -std=c++17 -O2 -o before {} && cp before after", GetParam().build,
                    SourcePath("tests/programs/inlined.cc")));
    Run(GetParam().command);
    before_ = TableOf(directory_ + "/before", "");
    places_ = PlacesIn(*ElfFile::From(BytesOf(directory_ + "/before")), before_);
    ASSERT_GT(places_.size(), kPlaces / 2);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Run(const std::string& command) const {
    const std::string all = fmt::format("cd {} && {{ {}; }}", directory_, command);
    ASSERT_EQ(std::system(all.c_str()), 0) << all;
  }

  // Compares what is said before and after. Returns how many functions have no name after.
  template <typename AreSame>
  size_t Compare(const std::string& alternate, const AreSame& are_same) const {
    const SymbolTable after = TableOf(directory_ + "/after", alternate);
    size_t inlined = 0;
    size_t unknown = 0;
    size_t different = 0;
    for (const uint64_t place : places_) {
      const Chain expected = Ours(before_, place);
      const Chain chain = Ours(after, place);
      inlined += chain.size() > 1 ? 1U : 0U;
      for (const Said& said : chain) unknown += said.function == "[unknown]" ? 1U : 0U;
      if (std::ranges::equal(expected, chain, are_same) || different++ >= 5) continue;
      ADD_FAILURE() << fmt::format("{:#x}\n  before:\n{}  after:\n{}", place, Print(expected),
                                   Print(chain));
    }
    fmt::print(
        "{} places, {} in inlined functions; {} functions are unknown, {} places different\n",
        places_.size(), inlined, unknown, different);
    EXPECT_GT(inlined, places_.size() / 4);
    EXPECT_EQ(different, 0U);
    return unknown;
  }

  std::string directory_ = testing::TempDir() + "pyrometer_dwarf_XXXXXX";
  SymbolTable before_;
  std::vector<uint64_t> places_;
};

INSTANTIATE_TEST_SUITE_P(
    Changes, DwarfChange,
    testing::Values(Change{"gcc_5_zstd", "g++ -gdwarf-5", kToZstd},
                    Change{"gcc_4_partial", "g++ -gdwarf-4", kToPartialUnits},
                    Change{"gcc_5_partial", "g++ -gdwarf-5", kToPartialUnits},
                    Change{"clang_4_partial", "clang++ -gdwarf-4", kToPartialUnits},
                    Change{"gcc_4_alternate", "g++ -gdwarf-4", kToAlternate, true},
                    Change{"gcc_5_alternate", "g++ -gdwarf-5", kToAlternate, true},
                    Change{"clang_4_alternate", "clang++ -gdwarf-4", kToAlternate, true},
                    Change{"gcc_5_standard", "g++ -gdwarf-5", kToStandardAlternate, true},
                    Change{"gcc_5_compressed", "g++ -gdwarf-5", kToCompressedAlternate, true}),
    [](const auto& change) { return std::string(change.param.name); });

TEST_P(DwarfChange, ChangesNothing) {
  const bool has_alternate = GetParam().has_alternate;
  const std::string alternate = has_alternate ? directory_ + "/common.debug" : "";
  EXPECT_EQ(Compare(alternate, std::equal_to<>()), 0U);
  // And no name to another without what lies elsewhere.
  if (has_alternate) {
    EXPECT_GT(Compare("", &IsSameOrLess), 0U);
  }
}

TEST(DwarfAgreementOn, AFileByHand) {
  const char* const path = std::getenv("PYROMETER_AGREE_ON");
  if (path == nullptr) return;
  const Compared compared = Compare(path, Detail::kByHand);
  EXPECT_LE(compared.different.size(), compared.places / 1000);
}

}  // namespace
}  // namespace pyrometer
