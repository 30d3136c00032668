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
  for (const Format format : {Format::kGo2, Format::kGo16, Format::kGo18, Format::kGo20}) {
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

GoFrames Part(uint64_t number, uint64_t from, uint64_t to, GoFrames::Kind kind) {
  const uint64_t begin = MadeGoProgram::kText + number * MadeGoProgram::kSize;
  return {.begin = begin + from, .end = begin + to, .kind = kind};
}

// What lies in front of the next function is looked up where a return address is its beginning.
TEST(GoFrames, AreNotOutermostInPadding) {
  MadeGoProgram program = Program({"runtime.mcall", "systemstack_switch", "runtime.goexit"});
  program.code.emplace_back(0x43, DwarfBytes{0x49, 0x8b, 0x66, 0x38});
  program.code.emplace_back(0xf8, DwarfBytes{0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc});
  EXPECT_THAT(Frames(program),
              ElementsAre(Part(0, 0x47, 0xf8, GoFrames::Kind::kOutermost),
                          Part(0, 0xf8, 0x100, GoFrames::Kind::kBeginning), Function(2)));
}

TEST(GoFrames, FollowTheFramePointerWhereThereIsOne) {
  constexpr auto kSwitched = GoFrames::Kind::kSwitched;
  MadeGoProgram program = Program({"runtime.systemstack", "runtime.nanotime1", "runtime.goexit"});
  // PUSHQ BP; MOVQ SP, BP; then POPQ BP; RET and POPQ BP; JMP DI
  program.code.emplace_back(0, DwarfBytes{0x55, 0x48, 0x89, 0xe5});
  program.code.emplace_back(0x20, DwarfBytes{0x5d, 0xc3});
  program.code.emplace_back(0x30, DwarfBytes{0x5d, 0xff, 0xe7});
  // SUBQ $24, SP; MOVQ BP, 16(SP); LEAQ 16(SP), BP; then MOVQ 16(SP), BP; ADDQ $24, SP; RET
  program.code.emplace_back(MadeGoProgram::kSize, DwarfBytes{0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x6c,
                                                             0x24, 16, 0x48, 0x8d, 0x6c, 0x24, 16});
  program.code.emplace_back(MadeGoProgram::kSize + 0x20,
                            DwarfBytes{0x48, 0x8b, 0x6c, 0x24, 16, 0x48, 0x83, 0xc4, 24, 0xc3});
  EXPECT_THAT(Frames(program),
              ElementsAre(Part(0, 4, 0x21, kSwitched), Part(0, 0x22, 0x31, kSwitched),
                          Part(0, 0x33, 0x100, kSwitched), Part(1, 14, 0x25, kSwitched),
                          Part(1, 0x2a, 0x100, kSwitched), Function(2)));
}

// Go 1.15 has MOVQ SP, BP behind LEAQ 16(SP), BP.
TEST(GoFrames, AreLostWhereTheFramePointerIsUsedOtherwise) {
  MadeGoProgram program = Program({"runtime.nanotime1", "runtime.goexit"});
  program.code.emplace_back(0, DwarfBytes{0x48, 0x83, 0xec, 24, 0x48, 0x89, 0x6c, 0x24, 16, 0x48,
                                          0x8d, 0x6c, 0x24, 16, 0x48, 0x89, 0xe5});
  program.code.emplace_back(0x30, DwarfBytes{0x48, 0x8b, 0x62, 0x38});
  EXPECT_THAT(Frames(program),
              ElementsAre(Part(0, 0x34, 0x100, GoFrames::Kind::kLost), Function(1)));
}

// MOVQ BX, SP, in a function that makes no frame of the frame pointer, and MOVQ n(BX), SP where
// stacks grow.
TEST(GoFrames, AreLostOnAnotherStackWhereNothingLeadsBack) {
  MadeGoProgram program = Program({"runtime.systemstack", "runtime.morestack", "runtime.goexit"});
  program.code.emplace_back(0x20, DwarfBytes{0x48, 0x89, 0xdc, 0x48, 0x8b, 0x60, 0x38});
  program.code.emplace_back(MadeGoProgram::kSize, DwarfBytes{0x55, 0x48, 0x89, 0xe5});
  program.code.emplace_back(MadeGoProgram::kSize + 0x30, DwarfBytes{0x48, 0x8b, 0x63, 0x38});
  EXPECT_THAT(Frames(program),
              ElementsAre(Part(0, 0x23, 0x100, GoFrames::Kind::kLost),
                          Part(1, 0x34, 0x100, GoFrames::Kind::kLost), Function(2)));
}

TEST(GoFrames, AreNotTakenFromATableOfOtherCode) {
  MadeGoProgram program = Program({"_rt0_amd64_linux", "runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(Frames(program), ElementsAre(Function(1), Function(2)));
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
      EXPECT_LE(FindGoFrames(*elf, *sections).size(), 2U) << at;
    }
  }
}

}  // namespace
}  // namespace pyrometer
