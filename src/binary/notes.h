// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "binary/elf_file.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// Finds the GNU build id in `notes`: the bytes of a note segment or section, or of
// /sys/kernel/notes. `alignment` is that of the segment or section; anything but 8 counts as 4.
// Empty if there is none.
BuildId FindBuildId(std::span<const std::byte> notes, uint64_t alignment = 4);

struct BuildIds {
  BuildId gnu;
  std::string go;  // what `go tool buildid` prints
};

// Reads the build ids of a file from its note segments; GNU's else from its note sections. Empty
// where there is none, or none that can be read.
BuildIds ReadBuildIds(const ElfFile& elf);

}  // namespace pyrometer
