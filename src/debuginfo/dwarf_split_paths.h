// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "binary/elf_file.h"

namespace pyrometer {

// Where the compiler put the split units (.dwo) of a file: absolute paths, each once, at most
// `most`. Empty if there are none, and what is malformed says nothing.
std::vector<std::string> ReadSplitPaths(const ElfFile& elf, size_t most);

}  // namespace pyrometer
