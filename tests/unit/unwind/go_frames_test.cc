// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/made_go_program.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Format = GoFunctionTable::Format;

MadeGoProgram Program(std::vector<std::string> names) {
  MadeGoProgram program{.names = std::move(names)};
  for (size_t i = 0; i < program.names.size(); ++i) {
    if (program.names[i] != "runtime.goexit") continue;
    program.code.emplace_back(i * MadeGoProgram::kSize + 1, DwarfBytes{0xe8, 1, 2, 3, 4});
  }
  return program;
}

std::vector<GoFrames> Frames(const MadeGoProgram& program) {
  const ElfFile elf = program.Open();
  return FindGoFrames(elf, *SectionTable::Read(elf));
}

GoFrames Function(uint64_t number, uint64_t from = 0) {
  const uint64_t begin = MadeGoProgram::kText + number * MadeGoProgram::kSize;
  return {.begin = begin + from, .end = begin + MadeGoProgram::kSize};
}

TEST(GoFrames, AreOutermostWhereThreadsAndGoroutinesBegin) {
  MadeGoProgram program = Program({"_rt0_amd64_linux", "runtime.rt0_go", "runtime.mstart",
                                   "runtime.mstart0", "main.main", "runtime.goexit"});
  for (const Format format : {Format::k1_18, Format::k1_20}) {
    program.format = format;
    EXPECT_THAT(Frames(program), ElementsAre(Function(1), Function(2), Function(5)));
  }
}

TEST(GoFrames, AreOutermostWhereTheStackHasBeenSwitched) {
  MadeGoProgram program = Program({"_rt0_amd64_linux", "runtime.mcall", "runtime.goexit"});
  EXPECT_THAT(Frames(program), ElementsAre(Function(2)));
  program.code.emplace_back(MadeGoProgram::kSize + 0x43, DwarfBytes{0x49, 0x8b, 0x66, 0x38});
  EXPECT_THAT(Frames(program), ElementsAre(Function(1, 0x47), Function(2)));
}

TEST(GoFrames, AreNotOutermostWhereCStartsTheThreads) {
  const MadeGoProgram program = Program(
      {"_rt0_amd64_linux", "crosscall2", "runtime.rt0_go", "runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(Frames(program), ElementsAre(Function(4)));
}

TEST(GoFrames, AreASignalsWhereItsHandlerReturnsTo) {
  const MadeGoProgram program =
      Program({"_rt0_amd64_linux", "runtime.sigreturn__sigaction", "runtime.goexit"});
  GoFrames restorer = Function(1);
  --restorer.begin;
  restorer.kind = GoFrames::Kind::kSignal;
  EXPECT_THAT(Frames(program), ElementsAre(restorer, Function(2)));
}

// Calls on the thread's own stack: PUSHQ BP; MOVQ SP, BP; ...; MOVQ n(DX), SP; CALL; MOVQ n(AX),
// SP.
TEST(GoFrames, LieOnTheStackOfTheirCallersBetweenTheSwitches) {
  const DwarfBytes switches = DwarfBytes{0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x62,
                                         0x38, 0xff, 0xd7, 0x48, 0x8b, 0x60, 0x38};
  MadeGoProgram program = Program({"runtime.systemstack", "runtime.goexit"});
  program.code.emplace_back(0, switches);
  GoFrames switched = Function(0, 8);
  switched.end = MadeGoProgram::kText + 14;
  switched.kind = GoFrames::Kind::kSwitched;
  EXPECT_THAT(Frames(program), ElementsAre(switched, Function(1)));
  program.code.back().second = DwarfBytes{0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7};
  EXPECT_THAT(Frames(program), ElementsAre(Function(1))) << "before Go 1.21: no frame pointer";
}

TEST(GoFrames, LeadNowhereWhereStacksGrow) {
  MadeGoProgram program = Program({"runtime.morestack", "runtime.goexit"});
  program.code.emplace_back(0x20, DwarfBytes{0x48, 0x8b, 0x63, 0x38, 0x48, 0xc7, 0xc5, 0, 0, 0, 0});
  GoFrames switched = Function(0, 0x24);
  switched.kind = GoFrames::Kind::kSwitched;
  EXPECT_THAT(Frames(program), ElementsAre(switched, Function(1)));
  program.code.back().second = DwarfBytes{0x48, 0x8b, 0x63, 0x38};
  EXPECT_THAT(Frames(program), ElementsAre(Function(1))) << "the frame pointer is another's";
}

TEST(GoFrames, AreNotTakenFromATableOfOtherCode) {
  MadeGoProgram program = Program({"_rt0_amd64_linux", "runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(Frames(program), ElementsAre(Function(1), Function(2)));
  program.format = Format::k1_16;
  EXPECT_THAT(Frames(program), IsEmpty()) << "Go 1.16";
  program.format = Format::k1_20;
  program.code.clear();
  EXPECT_THAT(Frames(program), IsEmpty()) << "goexit does not call anything";
}

TEST(GoFrames, AreThereWhereCBeginsTheProgram) {
  MadeGoProgram program = Program({"crosscall2", "runtime.mstart", "runtime.goexit"});
  program.entry = MadeGoProgram::kText + program.TextSize();
  EXPECT_THAT(Frames(program), ElementsAre(Function(2)));
}

TEST(GoFrames, SurviveATableThatIsCutOrDamaged) {
  const std::vector<std::byte> image =
      Program({"_rt0_amd64_linux", "runtime.sigreturn", "runtime.goexit"}).Image();
  for (size_t at = 0; at < image.size(); ++at) {
    std::vector<std::byte> damaged = image;
    damaged[at] ^= std::byte{0xff};
    const auto elf = ElfFile::FromBytes(std::move(damaged));
    if (!elf) continue;
    if (const auto sections = SectionTable::Read(*elf)) {
      EXPECT_LE(FindGoFrames(*elf, *sections).size(), 2U);
    }
  }
}

}  // namespace
}  // namespace pyrometer
