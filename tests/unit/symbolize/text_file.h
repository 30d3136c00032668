// SPDX-License-Identifier: Apache-2.0
// A file of text that a test writes, in memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "base/file.h"
#include "base/unique_fd.h"

namespace pyrometer {

inline UniqueFd TextFile(std::string_view text) {
  UniqueFd fd(::memfd_create("text", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), text).has_value());
  return fd;
}

}  // namespace pyrometer
