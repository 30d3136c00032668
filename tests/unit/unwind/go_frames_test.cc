// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/unwind/dwarf_bytes.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kText = 0x401000;
constexpr uint64_t kSize = 0x100;  // of each function

// A Go program whose functions follow each other in its text; the code is NOPs.
class Program {
 public:
  explicit Program(std::vector<std::string> names)
      : names_(std::move(names)), code_(names_.size() * kSize, std::byte{0x90}) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == "runtime.goexit") Put(i, 1, {0xe8, 1, 2, 3, 4});
    }
  }

  void Put(size_t function, size_t at, const DwarfBytes& bytes) {
    std::ranges::copy(bytes.bytes(), code_.begin() + static_cast<long>(function * kSize + at));
  }

  std::vector<std::byte> Table(uint32_t magic = 0xfffffff1) const {
    constexpr uint64_t kHeader = 72;
    DwarfBytes names;
    DwarfBytes table;  // of functions: {begin, position} each, the end, and what lies there
    DwarfBytes functions;
    const uint64_t positions = names_.size() * 8 + 4;
    for (size_t i = 0; i < names_.size(); ++i) {
      table.U32(i * kSize).U32(positions + functions.size());
      functions.U32(i * kSize).U32(names.size());
      names.String(names_[i]);
    }
    table.U32(names_.size() * kSize);
    DwarfBytes bytes;
    bytes.U32(magic).U8(0).U8(0).U8(1).U8(8).U64(names_.size()).U64(0).U64(0).U64(kHeader);
    bytes.U64(0).U64(0).U64(0).U64(kHeader + names.size());
    return bytes.Append(names).Append(table).Append(functions).bytes();
  }

  std::vector<GoFrames> Frames(std::span<const std::byte> table, uint64_t entry = kText) const {
    return ReadGoFrames(table, entry, [this](Address address, std::span<std::byte> out) {
      const uint64_t at = address.value() - kText;
      if (at > code_.size() || out.size() > code_.size() - at) return false;
      std::ranges::copy(std::span(code_).subspan(at, out.size()), out.begin());
      return true;
    });
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::byte> code_;
};

GoFrames Function(uint64_t number, uint64_t from = 0) {
  return {.begin = kText + number * kSize + from, .end = kText + (number + 1) * kSize};
}

TEST(GoFrames, AreOutermostWhereThreadsAndGoroutinesBegin) {
  const Program program({"_rt0_amd64_linux", "runtime.rt0_go", "runtime.mstart", "runtime.mstart0",
                         "main.main", "runtime.goexit"});
  for (const uint32_t magic : {0xfffffff0U, 0xfffffff1U}) {
    EXPECT_THAT(program.Frames(program.Table(magic)),
                ElementsAre(Function(1), Function(2), Function(5)));
  }
}

TEST(GoFrames, AreOutermostWhereTheStackHasBeenSwitched) {
  Program program({"_rt0_amd64_linux", "runtime.mcall", "runtime.goexit"});
  EXPECT_THAT(program.Frames(program.Table()), ElementsAre(Function(2)));
  program.Put(1, 0x43, {0x49, 0x8b, 0x66, 0x38});
  EXPECT_THAT(program.Frames(program.Table()), ElementsAre(Function(1, 0x47), Function(2)));
}

TEST(GoFrames, AreNotOutermostWhereCStartsTheThreads) {
  const Program program(
      {"_rt0_amd64_linux", "crosscall2", "runtime.rt0_go", "runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(program.Frames(program.Table()), ElementsAre(Function(4)));
}

TEST(GoFrames, AreASignalsWhereItsHandlerReturnsTo) {
  const Program program({"_rt0_amd64_linux", "runtime.sigreturn__sigaction", "runtime.goexit"});
  const GoFrames restorer = {
      .begin = kText + kSize - 1, .end = kText + 2 * kSize, .kind = GoFrames::Kind::kSignal};
  EXPECT_THAT(program.Frames(program.Table()), ElementsAre(restorer, Function(2)));
}

TEST(GoFrames, AreNotTakenFromATableOfOtherCode) {
  const Program program({"_rt0_amd64_linux", "runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(program.Frames(program.Table(), kText + 1), IsEmpty()) << "another entry point";
  EXPECT_THAT(program.Frames(program.Table(0xfffffffa)), IsEmpty()) << "Go 1.16";
  const Program library({"runtime.mstart", "runtime.goexit"});
  EXPECT_THAT(library.Frames(library.Table()), IsEmpty());
}

TEST(GoFrames, SurviveATableThatIsCutOrDamaged) {
  const Program program({"_rt0_amd64_linux", "runtime.mstart", "runtime.goexit"});
  const std::vector<std::byte> table = program.Table();
  for (size_t size = 0; size < table.size(); ++size) {
    EXPECT_LE(program.Frames(std::span(table).first(size)).size(), 2U);
    std::vector<std::byte> damaged = table;
    damaged[size] ^= std::byte{0xff};
    EXPECT_LE(program.Frames(damaged).size(), 2U);
  }
}

}  // namespace
}  // namespace pyrometer
