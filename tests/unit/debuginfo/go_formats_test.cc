// SPDX-License-Identifier: Apache-2.0
// Tables of functions in each format that Go has had. The Go that is at hand writes only the last
// one, so these are made by tests/fuzz/make-go-corpus; Go's own debug/gosym reads them the same.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "debuginfo/go_program.h"
#include "tests/unit/debuginfo/collected_source.h"

namespace pyrometer {
namespace {

using Frame = CollectedSource::Frame;

class GoFormats : public testing::TestWithParam<std::string_view> {};

TEST_P(GoFormats, TellFunctionsAndLines) {
  const Result<UniqueFd> file = Open(GO_TABLES "/" + std::string(GetParam()), O_RDONLY);
  ASSERT_TRUE(file);
  const Result<ElfFile> elf = ElfFile::Open(file->get());
  ASSERT_TRUE(elf);
  CollectedSource source;
  const Result<GoCounts> counts = ReadGoProgram(*elf, *SectionTable::Read(*elf), source);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->functions, 3U);
  EXPECT_TRUE(source.is_sound());
  // As the runtime of its time shows it: since there are type arguments, brackets are left out.
  const bool has_brackets = GetParam() == "go12" || GetParam() == "go116";
  const std::string array = has_brackets ? "type..eq.[2]int" : "type..eq.[...]int";
  const std::array names = {std::string("_rt0_amd64_linux"), array, std::string("main.main")};
  constexpr uint64_t kText = 0x401000;
  constexpr uint64_t kSize = 0x40;
  // Only the first format's tables cannot do without an inlined call, see make-go-corpus.
  const bool has_call = GetParam() == "go12";
  EXPECT_EQ(counts->inlined_calls, has_call ? 1U : 0U);
  for (size_t i = 0; i < names.size(); ++i) {
    for (const auto& [offset, line] : {std::pair(0, 10U), {15, 10U}, {16, 12U}, {63, 12U}}) {
      std::vector<Frame> frames = {{names[i], "/src/a.go", line}};
      if (has_call && i == 2 && offset == 16) {
        frames = {{array, "/src/a.go", 12}, {"main.main", "/src/a.go", 10}};
      }
      EXPECT_EQ(source.At(kText + i * kSize + offset), frames) << offset;
    }
  }
  EXPECT_TRUE(source.At(kText - 1).empty());
  EXPECT_TRUE(source.At(kText + names.size() * kSize).empty());
}

INSTANTIATE_TEST_SUITE_P(, GoFormats, testing::Values("go12", "go116", "go118", "go120"),
                         [](const auto& format) { return std::string(format.param); });

}  // namespace
}  // namespace pyrometer
