// SPDX-License-Identifier: Apache-2.0
#include "binary/plt_stubs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/binary/made_stubs.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Named {
  uint64_t begin = 0;  // in made code from its beginning
  uint64_t size = 0;
  std::string name;
  bool operator==(const Named&) const = default;
};
void PrintTo(const Named& stub, std::ostream* out) {
  *out << std::hex << stub.begin << "+" << stub.size << " " << stub.name;
}

Result<std::vector<Named>> Read(const ElfFile& elf, uint64_t base = 0) {
  ASSIGN_OR_RETURN(const SectionTable sections, SectionTable::Read(elf));
  ASSIGN_OR_RETURN(const PltStubs found, FindPltStubs(elf, sections));
  SymbolNames names(elf, found.symbols);
  std::vector<Named> all;
  for (const PltStub& stub : found.stubs) {
    const auto name = names.At(stub.name);
    all.push_back({stub.begin.value() - base, stub.end.value() - stub.begin.value(),
                   name ? std::string(*name) : "?"});
  }
  return all;
}

std::vector<Named> StubsOf(const std::vector<std::byte>& image) {
  return Read(*ElfFile::FromBytes(image), MadeStubs::kCode).value_or(std::vector<Named>());
}
std::vector<Named> StubsOf(const MadeStubs& made) {
  return StubsOf(made.Image());
}

// What objdump calls stubs, by where they begin, but for those without a symbol.
std::map<uint64_t, std::string> StubsByObjdump(const std::string& fixture) {
  const Result<std::string> text = ReadFile(FixturePath(fixture + ".code"));
  EXPECT_TRUE(text.has_value()) << fixture;
  std::map<uint64_t, std::string> stubs;
  std::istringstream lines(*text);
  const std::regex label("([0-9a-f]+) <([^*]+)@plt>:");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, label)) stubs[std::stoull(match[1], nullptr, 16)] = match[2];
  }
  return stubs;
}

class PltStubsOf : public testing::TestWithParam<const char*> {};

TEST_P(PltStubsOf, AreThoseThatObjdumpNames) {
  const std::map<uint64_t, std::string> truth = StubsByObjdump(GetParam());
  std::map<uint64_t, std::string> found;
  const std::vector<Named> stubs = *Read(OpenFixture(GetParam()));
  for (const Named& stub : stubs) found[stub.begin] = stub.name;
  EXPECT_EQ(found, truth);
  EXPECT_GE(found.size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(EachKind, PltStubsOf,
                         testing::Values("calls_lazy.so", "calls_now.so", "calls_stripped.so"
#ifdef __x86_64__
                                         ,
                                         "calls_ibt.so"
#endif
                                         ));

// A stub of each of x86_64's kinds: 16 bytes long, or 8 where others follow at once.
TEST(PltStubs, AreFoundInTheCodeOfEachLinkerForX86) {
  const DwarfBytes endbr = {0xf3, 0x0f, 0x1e, 0xfa};
  const DwarfBytes resolver = {0xff, 0x35, 0, 0, 0, 0};  // push
  const MadeStubs gnu = MadeStubs().Bytes(resolver).X86Jump(9).FillUpTo(16).X86Jump(0).FillUpTo(16);
  EXPECT_THAT(StubsOf(gnu), ElementsAre(Named{16, 16, "one"}));
  const MadeStubs ibt = MadeStubs().Bytes(endbr).X86Jump(0).FillUpTo(16).Bytes(endbr).X86Jump(1);
  EXPECT_THAT(StubsOf(ibt), ElementsAre(Named{0, 16, "one"}, Named{16, 10, "two"}));
  const MadeStubs bound = MadeStubs().Bytes(endbr).Bytes({0xf2}).X86Jump(1).FillUpTo(16);
  EXPECT_THAT(StubsOf(bound), ElementsAre(Named{0, 16, "two"}));
  const DwarfBytes index = {0x41, 0xbb, 7, 0, 0, 0};  // mov $7, %r11d
  const MadeStubs mold = MadeStubs().Bytes(endbr).Bytes(index).X86Jump(1);
  EXPECT_THAT(StubsOf(mold), ElementsAre(Named{0, 16, "two"}));
  const MadeStubs shorter = MadeStubs().X86Jump(1).FillUpTo(8).X86Jump(0).FillUpTo(8);
  EXPECT_THAT(StubsOf(shorter), ElementsAre(Named{0, 8, "two"}, Named{8, 8, "one"}));
  const MadeStubs single = MadeStubs().X86Jump(1).FillUpTo(8);
  EXPECT_THAT(StubsOf(single), ElementsAre(Named{0, 8, "two"}));
}

TEST(PltStubs, AreFoundInTheCodeOfEachLinkerForArm64) {
  constexpr uint32_t kPush = 0xa9bf7bf0;  // stp x16, x30, [sp, #-16]!
  constexpr uint32_t kAdd = 0x91001210;   // add x16, x16, #4
  constexpr uint32_t kBranch = 0xd61f0220;
  constexpr uint32_t kBranchTarget = 0xd503245f;
  constexpr uint32_t kAuthenticate = 0xd503219f;
  constexpr uint32_t kNop = 0xd503201f;
  MadeStubs made{.machine = EM_AARCH64,
                 .relocations = {{0, 1, R_AARCH64_JUMP_SLOT}, {1, 2, R_AARCH64_GLOB_DAT}}};
  made.Arm64({kPush}).Arm64Load(9).Arm64({kAdd, kBranch, kNop, kNop, kNop});
  made.Arm64Load(0).Arm64({kAdd, kBranch});
  made.Arm64({kBranchTarget}).Arm64Load(1).Arm64({kAdd, kBranch, kNop});
  made.Arm64Load(0).Arm64({kAdd, kAuthenticate, kBranch, kNop});
  made.Arm64Load(1).Arm64({kBranch, kNop});
  made.Arm64Load(1).Arm64({kAdd, kNop, kBranch});  // none
  EXPECT_THAT(StubsOf(made), ElementsAre(Named{0x20, 0x10, "one"}, Named{0x30, 0x18, "two"},
                                         Named{0x48, 0x18, "one"}, Named{0x60, 0x10, "two"}));
}

TEST(PltStubs, OfArm64MayHaveTheirSlotsBelow) {
  constexpr uint64_t kSlot = uint64_t{0} - 0x400;  // 0x2000 below kSlots
  MadeStubs made{.machine = EM_AARCH64, .relocations = {{kSlot, 2, R_AARCH64_JUMP_SLOT}}};
  made.Arm64({0xd503201f}).Arm64Load(kSlot).Arm64({0x91001210, 0xd61f0220});
  made.relocations.push_back({.slot = kSlot - 0x200, .symbol = 1, .type = R_AARCH64_JUMP_SLOT});
  made.Arm64Load(kSlot - 0x200).Arm64({0x91001210, 0xd61f0220});
  EXPECT_THAT(StubsOf(made), ElementsAre(Named{4, 16, "two"}, Named{20, 16, "one"}));
}

MadeStubs TwoStubs() {
  return MadeStubs().X86Jump(0).FillUpTo(16).X86Jump(1).FillUpTo(16);
}

TEST(PltStubs, HaveOnlyTheNameThatTheirRelocationTells) {
  const auto with = [](std::vector<MadeStubs::Relocation> relocations) {
    MadeStubs made = TwoStubs();
    made.relocations = std::move(relocations);
    return StubsOf(made);
  };
  EXPECT_THAT(with({{1, 1}, {0, 2}}), ElementsAre(Named{0, 16, "two"}, Named{16, 16, "one"}));
  EXPECT_THAT(with({{0, 1}, {0, 1, R_X86_64_GLOB_DAT}}), ElementsAre(Named{0, 16, "one"}));
  EXPECT_THAT(with({}), IsEmpty());
  EXPECT_THAT(with({{2, 1}, {3, 2}}), IsEmpty()) << "other slots";
  EXPECT_THAT(with({{0, 0}}), IsEmpty()) << "no symbol";
  EXPECT_THAT(with({{0, 3}, {1, ~0U}}), IsEmpty()) << "no such symbol";
  EXPECT_THAT(with({{0, 1, R_X86_64_IRELATIVE}, {1, 1, R_X86_64_64}}), IsEmpty());
  EXPECT_THAT(with({{0, 1}, {0, 2}, {0, 1}}), IsEmpty()) << "a contradiction";
  MadeStubs nameless = TwoStubs();
  nameless.names = {"", "two"};
  EXPECT_THAT(StubsOf(nameless), ElementsAre(Named{16, 16, "two"}));
}

TEST(PltStubs, ShareASlotWithOthers) {
  const MadeStubs made = MadeStubs().X86Jump(0).FillUpTo(16).X86Jump(0).FillUpTo(16);
  EXPECT_THAT(StubsOf(made), ElementsAre(Named{0, 16, "one"}, Named{16, 16, "one"}));
}

TEST(PltStubs, AreOnlyInSectionsOfThem) {
  for (const char* section : {".plt", ".plt.got", ".plt.sec", ".iplt"}) {
    MadeStubs made = TwoStubs();
    made.section = section;
    EXPECT_EQ(StubsOf(made).size(), 2U) << section;
  }
  MadeStubs text = TwoStubs();
  text.section = ".text";
  EXPECT_THAT(StubsOf(text), IsEmpty());
  std::vector<std::byte> without = TwoStubs().Image();
  RemoveSectionHeaders(without);
  EXPECT_EQ(Read(*ElfFile::FromBytes(without)).error().code(), ErrorCode::kNotFound);
}

// The made file with the header of that section changed.
std::vector<Named> StubsWith(MadeStubs::SectionNumber number,
                             const std::function<void(Elf64_Shdr&)>& change) {
  std::vector<std::byte> image = TwoStubs().Image();
  auto header = Peek<Elf64_Shdr>(image, MadeStubs::HeaderOf(number));
  change(header);
  Poke(image, MadeStubs::HeaderOf(number), header);
  return StubsOf(image);
}

TEST(PltStubs, AreNoneOfAMalformedFile) {
  using Header = Elf64_Shdr;
  const auto plt = MadeStubs::kPlt;
  const auto relocations = MadeStubs::kRelocations;
  const auto symbols = MadeStubs::kSymbols;
  EXPECT_EQ(StubsWith(plt, [](Header& h) { h.sh_size = ~uint64_t{0}; }).size(), 2U);
  EXPECT_THAT(StubsWith(plt, [](Header& h) { h.sh_size = 0; }), IsEmpty());
  EXPECT_THAT(StubsWith(plt, [](Header& h) { h.sh_size = 5; }), IsEmpty());
  EXPECT_THAT(StubsWith(plt, [](Header& h) { h.sh_addr -= 8; }), IsEmpty());
  EXPECT_THAT(StubsWith(plt, [](Header& h) { h.sh_addr = ~uint64_t{0}; }), IsEmpty());
  EXPECT_THAT(StubsWith(plt, [](Header& h) { h.sh_flags = SHF_ALLOC; }), IsEmpty());
  for (const uint64_t far : {uint64_t{1} << 20, ~uint64_t{0}, ~uint64_t{0} - 24}) {
    const auto offset = [far](Header& h) { h.sh_offset = far; };
    const auto size = [far](Header& h) { h.sh_size = far; };
    EXPECT_THAT(StubsWith(relocations, offset), IsEmpty());
    EXPECT_THAT(StubsWith(relocations, size), IsEmpty());
    EXPECT_THAT(StubsWith(symbols, offset), IsEmpty());
    EXPECT_THAT(StubsWith(symbols, size), IsEmpty());
  }
  EXPECT_THAT(StubsWith(relocations, [](Header& h) { h.sh_entsize = 16; }), IsEmpty());
  EXPECT_THAT(StubsWith(relocations, [](Header& h) { h.sh_link = 0; }), IsEmpty());
  EXPECT_THAT(StubsWith(relocations, [](Header& h) { h.sh_link = ~0U; }), IsEmpty());
  EXPECT_THAT(StubsWith(relocations, [](Header& h) { h.sh_size -= 1; }),
              ElementsAre(Named{0, 16, "one"}));
  EXPECT_THAT(StubsWith(symbols, [](Header& h) { h.sh_size -= 1; }),
              ElementsAre(Named{0, 16, "one"}));
}

TEST(PltStubs, CountOnceWhereSectionsOverlap) {
  std::vector<std::byte> image = TwoStubs().Image();
  const auto plt = Peek<Elf64_Shdr>(image, MadeStubs::HeaderOf(MadeStubs::kPlt));
  Poke(image, MadeStubs::HeaderOf(MadeStubs::kNone), plt);
  EXPECT_THAT(StubsOf(image), ElementsAre(Named{0, 16, "one"}, Named{16, 16, "two"}));
}

TEST(PltStubs, HaveAnEnd) {
  constexpr size_t kMost = 65'536;
  MadeStubs made;
  for (size_t i = 0; i < kMost + 100; ++i) made.X86Jump(0).FillUpTo(8);
  EXPECT_EQ(StubsOf(made).size(), kMost);
}

TEST(PltStubs, OfADamagedFileAreInOrderAndInItsCode) {
  const std::vector<std::byte> image = TwoStubs().Image();
  for (size_t at = 0; at < image.size(); ++at) {
    std::vector<std::byte> damaged = image;
    damaged[at] = ~damaged[at];
    const Result<ElfFile> elf = ElfFile::FromBytes(damaged);
    if (!elf) continue;
    uint64_t end = 0;
    const std::vector<Named> stubs = Read(*elf).value_or(std::vector<Named>());
    for (const Named& stub : stubs) {
      EXPECT_GE(stub.begin, end) << at;
      end = stub.begin + stub.size;
      EXPECT_GT(end, stub.begin) << at;
    }
  }
  for (size_t size = 0; size < image.size(); ++size) {
    const std::vector<std::byte> cut(image.begin(), image.begin() + static_cast<long>(size));
    const Result<ElfFile> elf = ElfFile::FromBytes(cut);
    if (!elf) continue;
    EXPECT_LE(Read(*elf).value_or(std::vector<Named>()).size(), 2U) << size;
  }
}

}  // namespace
}  // namespace pyrometer
