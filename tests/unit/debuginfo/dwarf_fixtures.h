// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "debuginfo/dwarf_program.h"
#include "tests/unit/binary/elf_fixtures.h"
#include "tests/unit/debuginfo/collected_source.h"

namespace pyrometer {

// "leaf inlined.c:8 < middle inlined.c:14"; of directories only the file's name.
inline std::string Told(const std::vector<CollectedSource::Frame>& frames) {
  std::string text;
  for (const CollectedSource::Frame& frame : frames) {
    if (!text.empty()) text += " < ";
    text += frame.function + " " + frame.file.substr(frame.file.rfind('/') + 1) + ":" +
            std::to_string(frame.line);
  }
  return text;
}

// What is in fixtures/inlined.c at the symbol in_leaf.
inline constexpr const char* kInLeaf =
    "leaf inlined.c:8 < middle inlined.c:14 < outer inlined.c:19";

}  // namespace pyrometer
