// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/unwind/made_object.h"

namespace pyrometer {
namespace {

using Format = CfiSection::Format;

CallFrameInfo Read(const CfiSection& section, size_t most = 1000) {
  CallFrameInfo info;
  ReadCallFrameInfo(section, most, info);
  return info;
}

CfiSection SectionOf(const DwarfBytes& bytes, Format format = Format::kEhFrame) {
  return {.format = format,
          .ends_at_terminator = false,
          .address = format == Format::kEhFrame ? kEhFrame : 0,
          .bytes = bytes.bytes()};
}

void ExpectOneFunction(const CfiSection& section, const std::string& what) {
  const CallFrameInfo info = Read(section);
  EXPECT_EQ(info.bad_fdes, 0U) << what;
  ASSERT_EQ(info.fdes.size(), 1U) << what;
  EXPECT_EQ(info.fdes[0].begin, kText) << what;
  EXPECT_EQ(info.fdes[0].end, kText + 0x40) << what;
  EXPECT_EQ(info.cies.at(0).initial.cfa.offset, 8) << what;
}

TEST(CfiReader, ReadsAllVersionsAndWidths) {
  for (const Format format : {Format::kEhFrame, Format::kDebugFrame}) {
    for (const int version : {1, 3, 4}) {
      for (const bool wide : {false, true}) {
        const bool eh = format == Format::kEhFrame;
        CfiWriter writer(format, wide);
        writer.bytes().U32(4).U32(eh ? 0 : 0xffffffff);  // no record is at position 0
        const uint64_t cie = writer.AddCie({.version = version, .augmentation = eh ? "zR" : ""});
        writer.AddFde(cie, kText, 0x40);
        ExpectOneFunction(SectionOf(writer.bytes(), format),
                          fmt::format("eh_frame {} version {} wide {}", eh, version, wide));
      }
    }
  }
}

TEST(CfiReader, ReadsAllAugmentations) {
  constexpr int kAbsolute = DW_EH_PE_absptr;
  const struct {
    const char* letters;
    DwarfBytes additions;
  } cases[] = {
      {"zR", {kAbsolute}},
      {"zRS", {kAbsolute}},
      {"zLR", {DW_EH_PE_udata4, kAbsolute}},
      {"zPLR", {0x9b, 1, 2, 3, 4, kAbsolute, kAbsolute}},
      {"zPR", {DW_EH_PE_absptr, 1, 2, 3, 4, 5, 6, 7, 8, kAbsolute}},
      {"zRB", {kAbsolute}},
      {"zRGS", {kAbsolute}},
      {"zR", {kAbsolute, 0, 0, 0}},
  };
  for (const auto& c : cases) {
    CfiWriter writer;
    const uint64_t cie = writer.AddCie({.augmentation = c.letters, .additions = c.additions});
    writer.AddFde(cie, kText, 0x40);
    ExpectOneFunction(SectionOf(writer.bytes()), c.letters);
    EXPECT_EQ(Read(SectionOf(writer.bytes())).cies[0].signal_frame,
              std::string(c.letters).find('S') != std::string::npos);
  }
}

TEST(CfiReader, ReadsAllPointerEncodings) {
  const uint64_t low = 0x1234;  // an address that fits into 16 bits
  const struct {
    int encoding;
    DwarfBytes pointers;
  } cases[] = {
      {DW_EH_PE_absptr, DwarfBytes().U64(low).U64(0x40)},
      {DW_EH_PE_udata2, DwarfBytes().U16(low).U16(0x40)},
      {DW_EH_PE_udata4, DwarfBytes().U32(low).U32(0x40)},
      {DW_EH_PE_udata8, DwarfBytes().U64(low).U64(0x40)},
      {DW_EH_PE_uleb128, DwarfBytes().Uleb(low).Uleb(0x40)},
      {DW_EH_PE_sleb128, DwarfBytes().Sleb(int64_t{low}).Sleb(0x40)},
      {DW_EH_PE_sdata2, DwarfBytes().U16(low).U16(0x40)},
      {DW_EH_PE_sdata4, DwarfBytes().U32(low).U32(0x40)},
      {DW_EH_PE_sdata8, DwarfBytes().U64(low).U64(0x40)},
      {DW_EH_PE_signed, DwarfBytes().U64(low).U64(0x40)},
  };
  for (const auto& c : cases) {
    for (const bool relative : {false, true}) {
      if (relative && c.encoding == DW_EH_PE_uleb128) continue;  // cannot point backwards
      CfiWriter writer;
      const int encoding = c.encoding | (relative ? DW_EH_PE_pcrel : 0);
      const uint64_t cie = writer.AddCie({.additions = {encoding}});
      const uint64_t position = writer.bytes().size() + 8;
      writer.AddRawFde(cie, DwarfBytes(c.pointers).Uleb(0));
      const CallFrameInfo info = Read(SectionOf(writer.bytes()));
      ASSERT_EQ(info.fdes.size(), 1U) << c.encoding;
      const uint64_t base = relative ? kEhFrame + position : 0;
      EXPECT_EQ(info.fdes[0].begin, base + low) << c.encoding;
      EXPECT_EQ(info.fdes[0].end, base + low + 0x40) << c.encoding;
    }
  }
}

TEST(CfiReader, RefusesPointersThatLeadSomewhereUnknown) {
  for (const int encoding : {0x80 | DW_EH_PE_pcrel | DW_EH_PE_sdata4,  // indirect
                             DW_EH_PE_datarel | DW_EH_PE_sdata4, DW_EH_PE_textrel | DW_EH_PE_sdata4,
                             DW_EH_PE_funcrel | DW_EH_PE_sdata4, int{DW_EH_PE_aligned},
                             int{DW_EH_PE_omit}, 0x05, 0x0d}) {
    CfiWriter writer;
    writer.AddFde(writer.AddCie({.additions = {encoding}}), kText, 0x40);
    const CallFrameInfo info = Read(SectionOf(writer.bytes()));
    EXPECT_EQ(info.bad_fdes, 1U) << encoding;
    EXPECT_TRUE(info.fdes.empty()) << encoding;
  }
}

TEST(CfiReader, SkipsTerminatorsUnlessOnlyTheyTellTheEnd) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  writer.AddFde(cie, kText, 0x40);
  writer.bytes().U32(0);
  writer.AddFde(cie, kText + 0x40, 0x40);
  CfiSection section = SectionOf(writer.bytes());
  EXPECT_EQ(Read(section).fdes.size(), 2U);
  section.ends_at_terminator = true;
  EXPECT_EQ(Read(section).fdes.size(), 1U);
}

TEST(CfiReader, DropsFunctionsWithoutCode) {
  CfiWriter writer;
  writer.AddFde(writer.AddCie(), kText, 0);
  const CallFrameInfo info = Read(SectionOf(writer.bytes()));
  EXPECT_TRUE(info.fdes.empty());
  EXPECT_EQ(info.bad_fdes, 0U);
}

// A bad CIE, and a good function behind the one that uses it.
void ExpectOnlyTheGoodFunction(CfiWriter& writer, uint64_t bad_cie, const std::string& what) {
  writer.AddFde(bad_cie, kText, 0x40);
  writer.AddFde(writer.AddCie(), kText + 0x100, 0x40);
  const CallFrameInfo info = Read(SectionOf(writer.bytes()));
  EXPECT_EQ(info.bad_fdes, 1U) << what;
  ASSERT_EQ(info.fdes.size(), 1U) << what;
  EXPECT_EQ(info.fdes[0].begin, kText + 0x100) << what;
}

TEST(CfiReader, LosesTheFunctionsOfABadCieOnly) {
  DwarfBytes endless;
  for (int i = 0; i < 1000; ++i) endless.U8(DW_CFA_nop);
  const struct {
    const char* name;
    CieSpec spec;
  } cases[] = {
      {"version 2", {.version = 2}},
      {"version 5", {.version = 5}},
      {"unknown letter", {.augmentation = "zQR"}},
      {"letters without sizes", {.augmentation = "eh"}},
      {"augmentation data cut", {.augmentation = "zRLP"}},
      {"return address in a vector register", {.version = 3, .return_address = 70}},
      {"unknown instruction", {.instructions = {0x3e}}},
      {"restore in a CIE", {.instructions = {DW_CFA_restore | 6}}},
      {"advance in a CIE", {.instructions = {DW_CFA_advance_loc | 1}}},
      {"a thousand instructions", {.instructions = endless}},
      {"endless augmentation", {.augmentation = "zRRRRRRRRRRRRRRRRRRRRRRRR"}},
      {"instruction cut", {.instructions = {DW_CFA_def_cfa, 7}}},
  };
  for (const auto& c : cases) {
    CfiWriter writer;
    ExpectOnlyTheGoodFunction(writer, writer.AddCie(c.spec), c.name);
  }
}

TEST(CfiReader, LosesTheFunctionsOfACutCieOnly) {
  const DwarfBytes cuts[] = {
      {},                                                  // no id
      {0, 0, 0, 0},                                        // nothing but the id
      {0, 0, 0, 0, 1, 'z', 'R'},                           // unterminated augmentation
      {0, 0, 0, 0, 1, 'z', 'R', 0},                        // no alignments
      {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16},           // no augmentation size
      {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 9, 0x1b},  // it is beyond the end
      {0, 0, 0, 0, 4, 0, 4, 0, 1, 0x78, 16},               // addresses of 4 bytes
      {0, 0, 0, 0, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 1, 16},
  };
  for (const DwarfBytes& cut : cuts) {
    CfiWriter writer;
    writer.AddRecord(cut);
    ExpectOnlyTheGoodFunction(writer, 0, fmt::format("{} bytes", cut.size()));
  }
}

TEST(CfiReader, LosesFunctionsWhoseCieIsNone) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  const uint64_t itself = writer.bytes().size();
  writer.AddFde(itself, kText, 0x40);
  const uint64_t another = writer.bytes().size();
  writer.AddFde(cie, kText, 0x40);
  writer.AddFde(another, kText, 0x40);
  writer.AddFde(cie + 2, kText, 0x40);
  writer.AddFde(uint64_t{1} << 30, kText, 0x40);  // beyond the end
  const CallFrameInfo info = Read(SectionOf(writer.bytes()));
  EXPECT_EQ(info.fdes.size(), 1U);
  EXPECT_EQ(info.bad_fdes, 4U);
}

TEST(CfiReader, LosesMalformedFunctionsOnly) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  writer.AddRawFde(cie, {});
  writer.AddRawFde(cie, DwarfBytes().U64(kText));
  writer.AddRawFde(cie, DwarfBytes().U64(kText).U64(~uint64_t{0}).Uleb(0));  // wraps
  writer.AddRawFde(cie, DwarfBytes().U64(kText).U64(0x40).Uleb(100));        // augmentation cut
  writer.AddRawFde(cie, DwarfBytes().U64(kText).U64(0x40).Uleb(0));
  const CallFrameInfo info = Read(SectionOf(writer.bytes()));
  EXPECT_EQ(info.fdes.size(), 1U);
  EXPECT_EQ(info.bad_fdes, 4U);
}

TEST(CfiReader, CountsFunctionsThatAreTooManyAsBad) {
  CfiWriter writer;
  const uint64_t cie = writer.AddCie();
  for (uint64_t i = 0; i < 5; ++i) writer.AddFde(cie, kText + i * 0x40, 0x40);
  const CallFrameInfo info = Read(SectionOf(writer.bytes()), 3);
  EXPECT_EQ(info.fdes.size(), 3U);
  EXPECT_EQ(info.bad_fdes, 2U);
}

TEST(CfiReader, TriesNoMoreCiesThanItMayHave) {
  // All are bad; a good one comes last.
  CfiWriter writer;
  writer.bytes().U32(4).U32(0);
  for (uint64_t i = 0; i < 70'000; ++i) writer.AddFde(i * 4 + 1, kText, 0x40);
  writer.AddFde(writer.AddCie(), kText, 0x40);
  const CallFrameInfo info = Read(SectionOf(writer.bytes()));
  EXPECT_TRUE(info.fdes.empty());
  EXPECT_EQ(info.bad_fdes, 70'001U);
}

TEST(CfiReader, EndsAtAnImpossibleLength) {
  for (const DwarfBytes& tail :
       {DwarfBytes().U32(0x100), DwarfBytes().U16(7), DwarfBytes().U32(0xffffffff),
        DwarfBytes().U32(0xffffffff).U64(~uint64_t{0}), DwarfBytes().U32(0xfffffffe)}) {
    CfiWriter writer;
    writer.AddFde(writer.AddCie(), kText, 0x40);
    writer.bytes().Append(tail);
    const CallFrameInfo info = Read(SectionOf(writer.bytes()));
    EXPECT_EQ(info.fdes.size(), 1U);
    EXPECT_EQ(info.bad_fdes, 1U);
  }
}

TEST(CfiReader, IsCutAnywhereWithoutHarm) {
  CfiWriter writer;
  const uint64_t cie =
      writer.AddCie({.augmentation = "zPLR", .additions = {0x9b, 1, 2, 3, 4, 0, 0}});
  writer.AddFde(cie, kText, 0x40, {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16});
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    CfiSection section = SectionOf(writer.bytes());
    section.bytes.resize(size);
    EXPECT_TRUE(Read(section).fdes.empty()) << size;
  }
}

}  // namespace
}  // namespace pyrometer
