// SPDX-License-Identifier: Apache-2.0
#include "symbolize/plt_symbols.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "symbolize/elf_symbols.h"
#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

namespace fs = std::filesystem;

// Address -> name of a stub.
using Stubs = std::map<uint64_t, std::string>;

// Whatever the command prints, line by line.
void ForEachLine(const std::string& command, const std::function<void(const std::string&)>& visit) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::vector<char> line(size_t{1} << 16);
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) {
    visit(line.data());
  }
}

// "puts@GLIBC_2.2.5@plt" is the stub of puts.
std::string WithoutVersion(std::string name) {
  name.resize(name.size() - std::string_view("@plt").size());
  name.resize(std::min(name.size(), name.find('@', 1)));
  return name + "@plt";
}

// Not all linkers are on every machine.
bool IsThere(const char* fixture) {
  return fs::exists(FixturePath(fixture));
}

// By objdump's lines "0000000000001030 <puts@plt>:".
Stubs StubsByObjdump(const std::string& path) {
  Stubs stubs;
  const std::string sections = "-j .plt -j .plt.sec -j .plt.got -j .iplt";
  ForEachLine(fmt::format("objdump -d {} '{}' 2>/dev/null", sections, path),
              [&](const std::string& line) {
                const size_t name = line.find(" <");
                if (line.empty() || line[0] == ' ' || name == std::string::npos) return;
                if (!line.ends_with("@plt>:\n")) return;
                stubs[std::strtoull(line.c_str(), nullptr, 16)] =
                    WithoutVersion(line.substr(name + 2, line.size() - name - 5));
              });
  return stubs;
}

std::string NameAt(const SymbolTable& table, uint64_t address) {
  const std::optional<Symbol> symbol = table.Find(ElfAddress(address));
  return symbol ? symbol->name : "-";
}

struct Comparison {
  size_t files = 0;
  size_t agreed = 0;
  size_t indirect = 0;  // called after the function that chooses the target
  size_t unknown = 0;   // likewise, but that has no name
};

// objdump calls a stub whose target a function at 0x1234 chooses "*ABS*+0x1234@plt".
void CompareIndirect(const SymbolTable& table, uint64_t stub, const std::string& told,
                     const std::string& path, Comparison& sum) {
  const uint64_t chooser = std::strtoull(told.c_str() + told.find('+') + 1, nullptr, 16);
  const std::optional<Symbol> symbol = table.Find(ElfAddress(chooser));
  const bool has_name = symbol && symbol->start == ElfAddress(chooser) && !symbol->name.empty();
  EXPECT_EQ(NameAt(table, stub), has_name ? symbol->name + "@plt" : "[plt]") << path;
  ++(has_name ? sum.indirect : sum.unknown);
}

void Compare(const std::string& path, Comparison& sum) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const Result<ElfFile> elf = ElfFile::Open(fd.get());
  if (!elf) return;
  const Result<SymbolTable> table = ReadSymbolTable(*elf);
  if (!table) return;
  const Stubs truth = StubsByObjdump(path);
  sum.files += truth.empty() ? 0 : 1;
  for (const auto& [address, name] : truth) {
    if (name.starts_with("*ABS*+")) {
      CompareIndirect(*table, address, name, path, sum);
      continue;
    }
    EXPECT_EQ(NameAt(*table, address), name) << fmt::format("{}: {:#x}", path, address);
    EXPECT_EQ(NameAt(*table, address + 7), name) << fmt::format("{}: {:#x}", path, address);
    ++sum.agreed;
  }
}

// Of the directories in PYROMETER_SWEEP, separated by colons, every file.
std::vector<std::string> Files() {
  std::vector<std::string> files;
  const char* const directories = std::getenv("PYROMETER_SWEEP");
  if (directories == nullptr) {
    for (const char* fixture : {"plt_lazy", "plt_now", "plt_ibt", "plt_gold", "plt_shared.so",
                                "plt_stripped", "plt_lld", "plt_lld_ibt"}) {
      if (IsThere(fixture)) files.push_back(FixturePath(fixture));
    }
    return files;
  }
  std::istringstream words(directories);
  for (std::string directory; std::getline(words, directory, ':');) {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
    }
  }
  return files;
}

TEST(PltSymbols, AgreeWithObjdump) {
  Comparison sum;
  for (const std::string& path : Files()) Compare(path, sum);
  fmt::print("{} files, {} stubs; {} indirect ones, and {} whose function has no name\n", sum.files,
             sum.agreed, sum.indirect, sum.unknown);
  EXPECT_GE(sum.files, 3U);
  EXPECT_GE(sum.agreed, 15U);
}

// Slot -> what its relocation says, by readelf: the name of a symbol, or where the function begins
// that chooses the target. In their order.
struct Relocation {
  uint64_t slot = 0;
  std::string symbol;
  uint64_t chooser = 0;
};
std::vector<Relocation> RelocationsByReadelf(const std::string& path) {
  std::vector<Relocation> relocations;
  ForEachLine(fmt::format("readelf -rW '{}'", path), [&](const std::string& line) {
    std::istringstream fields(line);
    Relocation relocation;
    std::string info;
    std::string type;
    std::string value;
    fields >> std::hex >> relocation.slot >> info >> type >> value >> relocation.symbol;
    if (type.ends_with("_IRELATIVE")) relocation.chooser = std::stoull(value, nullptr, 16);
    if (relocation.chooser != 0 || type.ends_with("_JUMP_SLOT")) relocations.push_back(relocation);
  });
  return relocations;
}

// Instruction -> slot, of "401018: ff 25 e2 3f 0a 00  jmp *0xa3fe2(%rip)  # 4a5000 <...>".
std::map<uint64_t, uint64_t> JumpsByObjdump(const std::string& path) {
  std::map<uint64_t, uint64_t> jumps;
  ForEachLine(fmt::format("objdump -d -j .plt -j .iplt '{}' 2>/dev/null", path),
              [&](const std::string& line) {
                const size_t slot = line.find(" # ");
                if (slot == std::string::npos || line.find("jmp") == std::string::npos) return;
                jumps[std::strtoull(line.c_str(), nullptr, 16)] =
                    std::strtoull(line.c_str() + slot + 3, nullptr, 16);
              });
  return jumps;
}

// As memcpy is in a static program: nothing but the function that chooses tells what it is.
TEST(PltSymbols, OfFunctionsThatAreChosenHaveTheirNames) {
  for (const char* fixture : {"plt_static", "plt_static_pie", "plt_lld"}) {
    if (!IsThere(fixture)) continue;
    const std::string path = FixturePath(fixture);
    const ElfFile elf = OpenFixture(fixture);
    if (elf.header().e_machine != EM_X86_64) GTEST_SKIP() << "objdump's jumps are told of x86_64";
    const SymbolTable table = *ReadSymbolTable(elf);
    std::map<uint64_t, std::set<std::string>> right;  // by slot
    for (const Relocation& relocation : RelocationsByReadelf(path)) {
      for (const NmSymbol& symbol : NmSymbols(fixture)) {
        if (relocation.chooser != symbol.address || relocation.chooser == 0) continue;
        right[relocation.slot].insert(symbol.name + "@plt");
      }
    }
    size_t checked = 0;
    for (const auto& [jump, slot] : JumpsByObjdump(path)) {
      if (!right.contains(slot)) continue;
      EXPECT_TRUE(right[slot].contains(NameAt(table, jump))) << path << ": " << NameAt(table, jump);
      ++checked;
    }
    EXPECT_GE(checked, 1U) << path;
    EXPECT_EQ(checked, right.size()) << path;
  }
}

// lld emits stubs in the order of their relocations.
TEST(PltSymbols, AreThoseOfTheirRelocations) {
  struct Case {
    const char* fixture;
    uint64_t head;  // bytes before the first stub
    uint64_t size;  // of a stub
  };
  for (const auto& [fixture, head, size] : {Case{"plt_arm64.so", 32, 16},
                                            {"plt_arm64_bti.so", 32, 24},
                                            {"plt_arm64_pac.so", 32, 24},
                                            {"plt_arm64_bti_pac.so", 32, 24},
                                            {"plt_lld_retpoline", 48, 32}}) {
    if (!IsThere(fixture)) GTEST_SKIP() << "no lld, or not for this machine, to link " << fixture;
    const ElfFile elf = OpenFixture(fixture);
    const SymbolTable table = *ReadSymbolTable(elf);
    const SectionTable sections = *SectionTable::Read(elf);
    const Section* const plt = sections.Find(".plt");
    ASSERT_NE(plt, nullptr) << fixture;
    uint64_t stub = plt->header.sh_addr;
    EXPECT_EQ(NameAt(table, stub), "[plt]") << fixture;
    EXPECT_EQ(NameAt(table, stub + head - 1), "[plt]") << fixture;
    stub += head;
    for (const Relocation& relocation : RelocationsByReadelf(FixturePath(fixture))) {
      if (relocation.chooser != 0) continue;
      const std::string right = WithoutVersion(relocation.symbol + "@plt");
      EXPECT_EQ(NameAt(table, stub), right) << fixture;
      EXPECT_EQ(NameAt(table, stub + size - 1), right) << fixture;
      stub += size;
    }
    EXPECT_EQ(stub, plt->header.sh_addr + plt->header.sh_size) << fixture;
    EXPECT_GT(stub, plt->header.sh_addr + head + 4 * size) << fixture;
  }
}

TEST(PltSymbols, AreFoundWithoutSections) {
  for (const char* fixture : {"plt_lazy", "plt_now", "plt_ibt", "plt_gold", "plt_shared.so"}) {
    if (!IsThere(fixture)) continue;
    const Stubs truth = StubsByObjdump(FixturePath(fixture));
    std::vector<std::byte> image = FixtureBytes(fixture);
    RemoveSectionHeaders(image);
    const SymbolTable table = *ReadSymbolTable(*ElfFile::FromBytes(image));
    size_t found = 0;
    for (const auto& [address, name] : truth) {
      const std::string told = NameAt(table, address);
      // Without symbols nobody knows the function that chooses a target.
      const bool is_indirect = name.starts_with("*ABS*+") && told == "[plt]";
      EXPECT_TRUE(told == name || told == "-" || is_indirect)
          << fixture << ": " << name << " is " << told;
      found += told == name ? 1 : 0;
    }
    // Those bound when the file is loaded may take 8 bytes, as a tail call does.
    EXPECT_GE(found, 4U) << fixture;
  }
}

TEST(PltSymbols, ThatNoRelocationTellsAreStubsOfWhatever) {
  std::vector<std::byte> image = FixtureBytes("plt_lazy");
  const ElfFile elf = *ElfFile::FromBytes(image);
  const SectionTable sections = *SectionTable::Read(elf);
  const Elf64_Shdr relocations = sections.Find(".rela.plt")->header;
  for (uint64_t at = 0; at < relocations.sh_size; at += sizeof(Elf64_Rela)) {
    auto relocation = Peek<Elf64_Rela>(image, relocations.sh_offset + at);
    relocation.r_offset += 4;  // no slot
    Poke(image, relocations.sh_offset + at, relocation);
  }
  const SymbolTable table = *ReadSymbolTable(*ElfFile::FromBytes(image));
  const Elf64_Shdr plt = sections.Find(".plt")->header;
  for (uint64_t at = 0; at < plt.sh_size; ++at) EXPECT_EQ(NameAt(table, plt.sh_addr + at), "[plt]");
}

TEST(PltSymbols, OfSymbolsThatDoNotExistAreStubsOfWhatever) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{1} << 20, uint64_t{0xffffffff}}) {
    std::vector<std::byte> image = FixtureBytes("plt_lazy");
    const SectionTable sections = *SectionTable::Read(*ElfFile::FromBytes(image));
    const Elf64_Shdr relocations = sections.Find(".rela.plt")->header;
    const auto first = Peek<Elf64_Rela>(image, relocations.sh_offset);
    for (uint64_t at = 0; at < relocations.sh_size; at += sizeof(Elf64_Rela)) {
      auto relocation = Peek<Elf64_Rela>(image, relocations.sh_offset + at);
      relocation.r_info = ELF64_R_INFO(number, ELF64_R_TYPE(first.r_info));
      Poke(image, relocations.sh_offset + at, relocation);
    }
    const SymbolTable table = *ReadSymbolTable(*ElfFile::FromBytes(image));
    const Elf64_Shdr plt = sections.Find(".plt")->header;
    for (uint64_t at = 0; at < plt.sh_size; at += 16) {
      EXPECT_EQ(NameAt(table, plt.sh_addr + at), "[plt]") << number;
    }
  }
}

}  // namespace
}  // namespace pyrometer
