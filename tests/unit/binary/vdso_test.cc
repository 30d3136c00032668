// SPDX-License-Identifier: Apache-2.0
#include "binary/vdso.h"

#include <gtest/gtest.h>

#include "binary/notes.h"

namespace pyrometer {
namespace {

TEST(Vdso, IsAnElfFileWithBuildIdAndCode) {
  const Result<ElfFile> vdso = OpenVdso();
  ASSERT_TRUE(vdso.has_value()) << vdso.error().message();
  ASSERT_EQ(vdso->segments().size(), 1U);
  EXPECT_TRUE(vdso->segments()[0].executable);
  EXPECT_FALSE(ReadBuildIds(*vdso).gnu.empty());
}

}  // namespace
}  // namespace pyrometer
