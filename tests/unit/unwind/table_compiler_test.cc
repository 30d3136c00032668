// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_compiler.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "binary/sections.h"
#include "binary/vdso.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/unwind/made_object.h"
#include "tests/unit/unwind/printed_rule.h"

namespace pyrometer {
namespace {

constexpr const char* kEntry = "cfa=r7+8 fp=same ra=[cfa-8] rbx=same";

// A function whose CFA is RSP + `offset`, so that it can be told from others.
DwarfBytes Frame(uint64_t offset) {
  return DwarfBytes({DW_CFA_def_cfa_offset}).Uleb(offset);
}
std::string FrameText(uint64_t offset) {
  return "cfa=r7+" + std::to_string(offset) + " fp=same ra=[cfa-8] rbx=same";
}

struct Function {
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t frame = 8;
};

DwarfBytes EhFrame(const std::vector<Function>& functions) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  for (const Function& f : functions) writer.AddFde(cie, f.begin, f.size, Frame(f.frame));
  return writer.bytes();
}

DwarfBytes DebugFrame(const std::vector<Function>& functions) {
  CfiWriter writer(CfiSection::Format::kDebugFrame);
  const uint64_t cie = writer.AddCie({.version = 3, .augmentation = ""});
  for (const Function& f : functions) writer.AddFde(cie, f.begin, f.size, Frame(f.frame));
  return writer.bytes();
}

UnwindTable Compiled(const MadeObject& object) {
  Result<UnwindTable> table = CompileUnwindTable(object.Open());
  EXPECT_TRUE(table.has_value()) << table.error().message();
  return table ? *std::move(table) : UnwindTable();
}

TEST(CompileUnwindTable, CoversFunctionsAndNothingElse) {
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame({{kText + 0x100, 0x40, 16}, {kText, 0x20, 24}})});
  EXPECT_EQ(table.functions, 2U);
  EXPECT_EQ(RuleTextAt(table, kText - 1), "none");
  EXPECT_EQ(RuleTextAt(table, kText), FrameText(24));
  EXPECT_EQ(RuleTextAt(table, kText + 0x1f), FrameText(24));
  EXPECT_EQ(RuleTextAt(table, kText + 0x20), "none");
  EXPECT_EQ(RuleTextAt(table, kText + 0x100), FrameText(16));
  EXPECT_EQ(RuleTextAt(table, kText + 0x140), "none");
}

TEST(CompileUnwindTable, MakesAnEmptyTableWithoutCallFrameInformation) {
  const UnwindTable table = Compiled({});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(RuleTextAt(table, kText), "none");
  EXPECT_TRUE(Compiled({.has_sections = false}).empty());
}

// What becomes of an object whose .eh_frame has a header that `change` has been done to.
ErrorCode ErrorWith(const std::function<void(Elf64_Shdr&)>& change) {
  std::vector<std::byte> image = MadeObject{.eh_frame = EhFrame({{kText, 0x20}})}.Image();
  const auto header = Peek<Elf64_Ehdr>(image, 0);
  auto section = Peek<Elf64_Shdr>(image, header.e_shoff + sizeof(Elf64_Shdr));
  change(section);
  Poke(image, header.e_shoff + sizeof(Elf64_Shdr), section);
  const Result<UnwindTable> table = CompileUnwindTable(*ElfFile::FromBytes(image));
  EXPECT_FALSE(table.has_value());
  return table ? ErrorCode::kInternal : table.error().code();
}

TEST(CompileUnwindTable, FailsWhereNothingCanBeRead) {
  EXPECT_EQ(ErrorWith([](Elf64_Shdr& section) { section.sh_offset = 1 << 20; }),
            ErrorCode::kMalformed);
}

TEST(CompileUnwindTable, ReadsNoSectionThatIsTooLarge) {
  constexpr uint64_t kLargest = uint64_t{64} << 20;
  EXPECT_EQ(ErrorWith([](Elf64_Shdr& section) { section.sh_size = kLargest; }),
            ErrorCode::kMalformed)
      << "it is not that large";
  EXPECT_EQ(ErrorWith([](Elf64_Shdr& section) { section.sh_size = kLargest + 1; }),
            ErrorCode::kExhausted);
}

// .eh_frame_hdr without a search table, and with one whose last FDE is at `last_fde`.
DwarfBytes PlainHeader() {
  return DwarfBytes({1, DW_EH_PE_absptr, DW_EH_PE_omit, DW_EH_PE_omit}).U64(kEhFrame);
}
DwarfBytes SearchableHeader(uint64_t last_fde) {
  DwarfBytes header(
      {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4});
  header.U32(kEhFrame - kEhFrameHeader - 4).U32(2);
  header.U32(kText - kEhFrameHeader).U32(kEhFrame + last_fde - kEhFrameHeader);
  return header.U32(kText + 0x80 - kEhFrameHeader).U32(kEhFrame + 16 - kEhFrameHeader);
}

TEST(CompileUnwindTable, FindsEhFrameByProgramHeader) {
  CfiWriter writer;
  writer.AddFde(writer.AddCie(), kText, 0x20, Frame(16));
  const uint64_t last_fde = writer.bytes().size();
  writer.AddFde(0, kText + 0x40, 0x20, Frame(24));
  writer.bytes().U32(0);
  writer.AddFde(0, kText + 0x60, 0x20, Frame(32));  // of something else
  for (const DwarfBytes& header : {PlainHeader(), SearchableHeader(last_fde)}) {
    const UnwindTable table =
        Compiled({.eh_frame = writer.bytes(), .eh_frame_header = header, .has_sections = false});
    EXPECT_EQ(table.functions, 2U);
    EXPECT_EQ(table.bad_functions, 0U);
    EXPECT_EQ(RuleTextAt(table, kText), FrameText(16));
    EXPECT_EQ(RuleTextAt(table, kText + 0x40), FrameText(24));
    EXPECT_EQ(RuleTextAt(table, kText + 0x60), "none");
  }
}

TEST(CompileUnwindTable, RefusesHeadersThatLeadNowhere) {
  const DwarfBytes headers[] = {
      {1, DW_EH_PE_pcrel},
      DwarfBytes({2, DW_EH_PE_absptr, DW_EH_PE_omit, DW_EH_PE_omit}).U64(kEhFrame),
      DwarfBytes({1, DW_EH_PE_absptr, DW_EH_PE_omit, DW_EH_PE_omit}).U64(0x10),
      DwarfBytes({1, DW_EH_PE_absptr, DW_EH_PE_omit, DW_EH_PE_omit}).U64(~uint64_t{0}),
      DwarfBytes({1, DW_EH_PE_omit, DW_EH_PE_omit, DW_EH_PE_omit}).U64(kEhFrame),
  };
  for (const DwarfBytes& header : headers) {
    const Result<UnwindTable> table = CompileUnwindTable(MadeObject{
        .eh_frame = EhFrame({{kText, 0x20}}), .eh_frame_header = header, .has_sections = false}
                                                             .Open());
    ASSERT_FALSE(table.has_value());
    EXPECT_EQ(table.error().code(), ErrorCode::kMalformed);
  }
}

TEST(CompileUnwindTable, ReadsDebugFrame) {
  const UnwindTable table = Compiled({.debug_frame = DebugFrame({{kText, 0x20, 16}})});
  EXPECT_EQ(table.functions, 1U);
  EXPECT_EQ(RuleTextAt(table, kText), FrameText(16));
}

TEST(CompileUnwindTable, TakesFromDebugFrameWhatEhFrameLacks) {
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame({{kText, 0x20, 16}, {kText + 0x80, 0x20, 24}}),
                .debug_frame = DebugFrame({{0, 0x20, 8},       // left out by the linker
                                           {kText, 0x20, 32},  // covered
                                           {kText + 0x40, 0x20, 40},
                                           {kText + 0x90, 0x30, 48}})});
  EXPECT_EQ(table.functions, 4U);
  EXPECT_EQ(table.bad_functions, 0U);
  EXPECT_EQ(table.overlaps, 0U);
  EXPECT_EQ(RuleTextAt(table, kText), FrameText(16));
  EXPECT_EQ(RuleTextAt(table, kText + 0x40), FrameText(40));
  EXPECT_EQ(RuleTextAt(table, kText + 0x9f), FrameText(24));
  EXPECT_EQ(RuleTextAt(table, kText + 0xa0), FrameText(48));
  EXPECT_EQ(RuleTextAt(table, kText + 0xc0), "none");
}

TEST(CompileUnwindTable, TakesFromTheDebugFileWhatTheFileLacks) {
  const MadeObject object = {.eh_frame = EhFrame({{kText, 0x20, 16}})};
  const MadeObject debug = {.debug_frame =
                                DebugFrame({{kText, 0x20, 32}, {kText + 0x40, 0x20, 40}})};
  const Result<UnwindTable> table = CompileUnwindTable(object.Open(), debug.Open());
  EXPECT_EQ(RuleTextAt(*table, kText), FrameText(16));
  EXPECT_EQ(RuleTextAt(*table, kText + 0x40), FrameText(40));
}

TEST(CompileUnwindTable, StartsAFunctionsInstructionsWhereItBegins) {
  CfiWriter debug_frame(CfiSection::Format::kDebugFrame);
  const uint64_t cie = debug_frame.AddCie({.version = 4, .augmentation = ""});
  const DwarfBytes steps = {DW_CFA_advance_loc | 0x18, DW_CFA_def_cfa_offset, 16,
                            DW_CFA_advance_loc | 0x10, DW_CFA_def_cfa_offset, 24};
  debug_frame.AddFde(cie, kText, 0x40, steps);
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame({{kText, 0x20, 32}}), .debug_frame = debug_frame.bytes()});
  EXPECT_EQ(RuleTextAt(table, kText + 0x1f), FrameText(32));
  EXPECT_EQ(RuleTextAt(table, kText + 0x20), FrameText(16));
  EXPECT_EQ(RuleTextAt(table, kText + 0x28), FrameText(24));
}

TEST(CompileUnwindTable, CountsOverlaps) {
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame(
                    {{kText, 0x40, 16}, {kText + 0x20, 0x20, 24}, {kText + 0x20, 0x40, 32}})});
  EXPECT_EQ(table.overlaps, 2U);
  EXPECT_EQ(table.functions, 2U);
  EXPECT_EQ(RuleTextAt(table, kText + 0x1f), FrameText(16));
  EXPECT_EQ(RuleTextAt(table, kText + 0x20), FrameText(24));
}

TEST(CompileUnwindTable, CountsBadFunctionsAndKeepsTheOthers) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  writer.AddFde(cie, kText, 0x20, {DW_CFA_restore_state});
  writer.AddFde(cie, kText + 0x20, 0x20, Frame(16));
  writer.AddFde(cie + 1, kText + 0x40, 0x20);
  const UnwindTable table = Compiled({.eh_frame = writer.bytes()});
  EXPECT_EQ(table.functions, 1U);
  EXPECT_EQ(table.bad_functions, 2U);
  EXPECT_EQ(RuleTextAt(table, kText), "none");
  EXPECT_EQ(RuleTextAt(table, kText + 0x20), FrameText(16));
}

TEST(CompileUnwindTable, TakesTheEntryPointForTheOutermostFrame) {
  const UnwindTable table = Compiled(
      {.eh_frame = EhFrame({{kText, 0x20, 16}, {kText + 0x100, 0x20, 24}}), .entry = kText + 0x40});
  EXPECT_EQ(RuleTextAt(table, kText + 0x3f), "none");
  EXPECT_EQ(RuleTextAt(table, kText + 0x40), "end");
  EXPECT_EQ(RuleTextAt(table, kText + 0x7f), "end");
  EXPECT_EQ(RuleTextAt(table, kText + 0x80), "none");
  EXPECT_EQ(table.functions, 2U);
}

TEST(CompileUnwindTable, EndsTheEntryCodeAtTheNextFunction) {
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame({{kText + 0x10, 0x20, 16}}), .entry = kText});
  EXPECT_EQ(RuleTextAt(table, kText + 0xf), "end");
  EXPECT_EQ(RuleTextAt(table, kText + 0x10), FrameText(16));
}

TEST(CompileUnwindTable, BelievesWhatIsSaidOfTheEntryPoint) {
  const UnwindTable table =
      Compiled({.eh_frame = EhFrame({{kText, 0x20, 16}}), .entry = kText + 0x10});
  EXPECT_EQ(RuleTextAt(table, kText + 0x10), FrameText(16));
}

TEST(CompileUnwindTable, LeavesOutAnEntryPointFarFromAllFunctions) {
  constexpr uint64_t kFar = uint64_t{12} << 30;
  const struct {
    uint64_t entry = 0;
    uint64_t function = 0;
  } cases[] = {{kText, kText + kFar}, {kText + kFar, kText}};
  for (const auto& [entry, function] : cases) {
    const UnwindTable table = Compiled(
        {.eh_frame = EhFrame({{function, 0x20, 16}}), .entry = entry, .text_size = kFar + 0x1000});
    EXPECT_EQ(table.pages.size(), 1U);
    EXPECT_EQ(RuleTextAt(table, function), FrameText(16));
    EXPECT_EQ(RuleTextAt(table, entry), "none");
  }
}

TEST(CompileUnwindTable, EndsTheEntryCodeWithTheAddresses) {
  constexpr uint64_t kLastPage = ~uint64_t{0xfff};
  const UnwindTable table = Compiled({.eh_frame = EhFrame({{kLastPage, 0x20, 16}}),
                                      .entry = kLastPage + 0xfe0,
                                      .text = kLastPage,
                                      .text_size = 0xfff});
  EXPECT_EQ(RuleTextAt(table, kLastPage), FrameText(16));
  EXPECT_EQ(RuleTextAt(table, kLastPage + 0xfdf), "none");
  EXPECT_EQ(RuleTextAt(table, kLastPage + 0xfe0), "end");
}

TEST(CompileUnwindTable, LeavesOutWhatNeedsTooManyRules) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  DwarfBytes frames;
  for (uint64_t i = 1; i <= 70'000; ++i) frames.U8(DW_CFA_advance_loc | 1).Append(Frame(8 * i));
  writer.AddFde(cie, kText, 0x20, Frame(8));
  writer.AddFde(cie, kText + 0x20, 80'000, frames);
  writer.AddFde(cie, kText + 0x20 + 80'000, 0x20, Frame(8));
  const UnwindTable table = Compiled({.eh_frame = writer.bytes()});
  EXPECT_EQ(table.functions, 2U);
  EXPECT_EQ(table.bad_functions, 1U);
  EXPECT_EQ(table.rules.size(), 4096U);
  EXPECT_EQ(RuleTextAt(table, kText + 0x20 + 80'000), FrameText(8));
}

TEST(CompileUnwindTable, LeavesOutWhatNeedsTooManyExoticRules) {
  DwarfBytes frames({DW_CFA_register, 6, 11});
  for (uint64_t i = 1; i <= 5'000; ++i) frames.U8(DW_CFA_advance_loc | 1).Append(Frame(8 * i));
  const UnwindTable table = Compiled(OneFunction(frames, 6'000));
  EXPECT_EQ(table.functions, 0U);
  EXPECT_EQ(table.bad_functions, 1U);
  EXPECT_LE(table.exotic.size(), 4096U);
}

TEST(CompileUnwindTable, LeavesOutWhatNeedsTooManyRowsInAPage) {
  // Another row at each byte.
  const auto function = [](uint64_t size) {
    DwarfBytes rows;
    for (uint64_t i = 0; i < size; ++i) {
      rows.Append(Frame(i % 2 == 0 ? 16 : 24)).U8(DW_CFA_advance_loc | 1);
    }
    return rows;
  };
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  writer.AddFde(cie, kText, 0x8000, function(0x8000));
  writer.AddFde(cie, kText + 0x8000, 0x8000, function(0x8000));
  writer.AddFde(cie, kText + 0x10000, 0x20000, function(0x20000));
  writer.AddFde(cie, kText + 0x30000, 0x20, Frame(32));
  const UnwindTable table = Compiled({.eh_frame = writer.bytes()});
  EXPECT_EQ(table.functions, 2U);
  EXPECT_EQ(table.bad_functions, 2U);
  EXPECT_EQ(RuleTextAt(table, kText + 0x7fff), FrameText(24));
  EXPECT_EQ(RuleTextAt(table, kText + 0x8000), "none");
  EXPECT_EQ(RuleTextAt(table, kText + 0x10000), "none");
  EXPECT_EQ(RuleTextAt(table, kText + 0x30000), FrameText(32));
}

constexpr uint64_t kPage = uint64_t{1} << PYRO_UNWIND_PAGE_SHIFT;
constexpr uint64_t kMostPages = UnwindTable::kMostPages;

TEST(CompileUnwindTable, LeavesOutWhatLiesOnTooManyPages) {
  const std::vector<Function> functions = {{kText, 0x20, 16},
                                           {kText + kMostPages * kPage - 0x20, 0x20, 24},
                                           {kText + kMostPages * kPage, 0x20, 32}};
  const uint64_t size = (kMostPages + 1000) * kPage;
  const UnwindTable table = Compiled({.eh_frame = EhFrame(functions), .text_size = size});
  EXPECT_EQ(table.pages.size(), kMostPages);
  EXPECT_EQ(table.bad_functions, 1U);
  EXPECT_EQ(RuleTextAt(table, kText + kMostPages * kPage - 0x20), FrameText(24));

  const UnwindTable with_entry = Compiled({.eh_frame = EhFrame(functions),
                                           .entry = kText - 2 * kPage,
                                           .text = kText - 2 * kPage,
                                           .text_size = size});
  EXPECT_EQ(with_entry.bad_functions, 2U) << "its pages begin earlier";
  EXPECT_EQ(RuleTextAt(with_entry, kText - 2 * kPage), "end");
}

TEST(CompileUnwindTable, LeavesOutAbsurdExpressions) {
  DwarfBytes expression;
  for (int i = 0; i < 200; ++i) expression.U8(DW_OP_nop);
  const UnwindTable table =
      Compiled(OneFunction(DwarfBytes({DW_CFA_def_cfa_expression}).Block(expression)));
  EXPECT_EQ(table.bad_functions, 1U);
}

void ExpectFrames(const ElfFile& elf, const std::string& fixture) {
  const UnwindTable table = *CompileUnwindTable(elf);
  EXPECT_EQ(table.bad_functions, 0U) << fixture;
  const NmSymbol frame = NmSymbolOf(fixture, "fixture_frame");
  EXPECT_EQ(RuleTextAt(table, frame.address), kEntry) << fixture;
  bool has_frame = false;
  for (uint64_t i = 0; i < frame.size; ++i) {
    has_frame |= table.RuleAt(ElfAddress(frame.address + i))->cfa_offset >= 200;
  }
  EXPECT_TRUE(has_frame) << fixture;
}

TEST(CompileUnwindTable, ReadsWhatTheCompilerMakes) {
  for (const char* fixture : {"unwound", "unwound_debug_frame", "unwound_compressed"}) {
    ExpectFrames(OpenFixture(fixture), fixture);
  }
  std::vector<std::byte> image = FixtureBytes("unwound");
  RemoveSectionHeaders(image);
  ExpectFrames(*ElfFile::FromBytes(image), "unwound");
}

TEST(CompileUnwindTable, ReadsTheVdso) {
  const Result<ElfFile> vdso = OpenVdso();
  if (!vdso) GTEST_SKIP() << vdso.error().message();
  const UnwindTable table = *CompileUnwindTable(*vdso);
  EXPECT_GT(table.functions, 0U);
  EXPECT_EQ(table.bad_functions, 0U);
}

TEST(CompileUnwindTable, ReadsASeparateDebugFile) {
  const uint64_t begin = NmSymbolOf("unwound_debug_frame", "fixture_frame").address;
  const ElfFile bare = OpenFixture("unwound_bare");
  EXPECT_EQ(RuleTextAt(*CompileUnwindTable(bare), begin), "none");
  EXPECT_EQ(RuleTextAt(*CompileUnwindTable(bare, OpenFixture("unwound_debug_frame")), begin),
            kEntry);
}

TEST(CompileUnwindTable, SaysHowMuchOfTheTextItCovers) {
  const UnwindTable bare = *CompileUnwindTable(OpenFixture("unwound_bare"));
  const UnwindTable with_debug_file =
      *CompileUnwindTable(OpenFixture("unwound_bare"), OpenFixture("unwound_debug_frame"));
  EXPECT_EQ(with_debug_file.text, bare.text);
  EXPECT_LT(bare.covered_text, with_debug_file.covered_text);
  EXPECT_LE(with_debug_file.covered_text, with_debug_file.text);
}

TEST(CompileUnwindTable, CoversNothingByFunctionsThatItLeavesOut) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  writer.AddFde(cie, kText, 0x20, Frame(16));
  writer.AddFde(cie, kText + 0x20, 0xfe0, {DW_CFA_restore_state});
  const UnwindTable table = Compiled({.eh_frame = writer.bytes(), .text_size = 0x1000});
  EXPECT_EQ(table.text, 0x1000U);
  EXPECT_EQ(table.covered_text, 0x20U);
  EXPECT_TRUE(table.sparse);
}

// Whatever is done to a file, compiling it ends, with a sound table or an error.
void ExpectSound(const std::vector<std::byte>& image, const std::string& what) {
  const Result<ElfFile> elf = ElfFile::FromBytes(image);
  if (!elf) return;
  const Result<UnwindTable> table = CompileUnwindTable(*elf);
  if (!table) {
    EXPECT_NE(table.error().code(), ErrorCode::kInternal) << what;
    return;
  }
  EXPECT_LE(table->functions, image.size() / 12) << what;
  for (const pyro_unwind_row& row : table->rows) {
    ASSERT_LT(row.rule, table->rules.size()) << what;
  }
  for (const pyro_unwind_rule& rule : table->rules) {
    ASSERT_LT(rule.kind, PYRO_RULE_KINDS) << what;
    if (rule.kind != PYRO_RULE_EXOTIC) continue;
    ASSERT_LT(static_cast<size_t>(rule.cfa_offset), table->exotic.size()) << what;
  }
}

TEST(CompileUnwindTable, SurvivesAnyChangedByte) {
  for (const char* fixture : {"unwound_small.so", "unwound_small_debug_frame.so"}) {
    const std::vector<std::byte> image = FixtureBytes(fixture);
    const ElfFile elf = *ElfFile::FromBytes(image);
    const SectionTable sections = *SectionTable::Read(elf);
    for (const Section& section : sections.all()) {
      if (!section.name.starts_with(".eh_frame") && section.name != ".debug_frame") continue;
      for (uint64_t i = 0; i < section.header.sh_size; ++i) {
        for (const int flip : {0xff, 0x80, 0x01}) {
          std::vector<std::byte> damaged = image;
          damaged[section.header.sh_offset + i] ^= static_cast<std::byte>(flip);
          const std::string what =
              std::string(fixture) + section.name + " byte " + std::to_string(i);
          ExpectSound(damaged, what);
          RemoveSectionHeaders(damaged);
          ExpectSound(damaged, what + " without sections");
        }
      }
    }
  }
}

TEST(CompileUnwindTable, SurvivesAnyCut) {
  std::vector<std::byte> image = FixtureBytes("unwound_small.so");
  RemoveSectionHeaders(image);
  for (size_t size = 0; size < image.size(); size += 61) {
    ExpectSound({image.begin(), image.begin() + static_cast<ptrdiff_t>(size)},
                "cut to " + std::to_string(size));
  }
}

TEST(CompileUnwindTable, FailsWhenItIsToStop) {
  std::stop_source stop;
  stop.request_stop();
  const Result<UnwindTable> table = CompileUnwindTable(
      OneFunction({}, 0x100, {.instructions = {}}).Open(), {.stop = stop.get_token()});
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code(), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace pyrometer
