// SPDX-License-Identifier: Apache-2.0
// What is made of a stripped Go program, against the .debug_frame of the same program.
#include "unwind/go_frame_info.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "base/unique_fd.h"
#include "binary/segments.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/unwind/printed_rule.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

bool Succeeds(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

class GoFrameInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Succeeds("command -v go >/dev/null")) {
      GTEST_SKIP() << "no go (Debian package golang-go) to build a program with";
    }
    directory_ =
        std::filesystem::path(testing::TempDir()) / ("go_frame_info_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string Build(const std::string& name, const std::string& flags) {
    const std::string program = directory_ / name;
    EXPECT_TRUE(Succeeds("cd " GO_PROGRAMS "/go_frames && HOME=${HOME-/root} GOTOOLCHAIN=local "
                         "GOFLAGS= CGO_ENABLED=0 go build " +
                         flags + " -o " + program));
    return program;
  }
  static UnwindTable TableOf(const std::string& program) {
    const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    return *CompileUnwindTable(*ElfFile::Open(fd.get()));
  }
  static Segment TextOf(const std::string& program) {
    const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    const ElfFile elf = *ElfFile::Open(fd.get());
    return *ExecutableSegmentAt(elf.segments(), CodeBase(elf.segments()));
  }

  std::filesystem::path directory_;
};

TEST_F(GoFrameInfoTest, SaysWhatTheLinkerSaysWhereItIsNotStripped) {
  for (const char* mode : {"", "-buildmode=pie "}) {
    const std::string whole = Build("whole", mode);
    const std::string stripped = Build("stripped", mode + std::string("-ldflags='-s -w'"));
    const Segment text = TextOf(whole);
    ASSERT_EQ(TextOf(stripped).address, text.address);
    const UnwindTable linkers = TableOf(whole);
    const UnwindTable made = TableOf(stripped);
    EXPECT_FALSE(made.sparse);
    uint64_t compared = 0;
    uint64_t different = 0;
    for (uint64_t at = 0; at < text.file_size; ++at) {
      const ElfAddress address(text.address.value() + at);
      const pyro_unwind_rule* const wanted = linkers.RuleAt(address);
      const pyro_unwind_rule* const told = made.RuleAt(address);
      ASSERT_TRUE(wanted != nullptr && told != nullptr);
      if (wanted->kind == PYRO_RULE_NONE) continue;
      ++compared;
      if (std::memcmp(wanted, told, sizeof(*told)) == 0) continue;
      if (++different > 10) continue;
      std::cout << std::hex << address.value() << std::dec << ": " << Print(*told) << " instead of "
                << Print(*wanted) << '\n';
    }
    std::cout << mode << compared << " addresses, " << different << " of them different\n";
    // Functions in assembly without a table of their own, for which the linker assumes no frame.
    EXPECT_GT(compared, text.file_size / 2);
    EXPECT_LE(different, compared / 1000);
  }
}

TEST_F(GoFrameInfoTest, IsNoneOfOtherPrograms) {
  const ElfFile elf = OpenFixture("stripped");
  const Result<CfiSection> made = MakeGoFrameInfo(elf, *SectionTable::Read(elf));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace pyrometer
