// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "binary/elf_file.h"
#include "pyrometer/ids.h"

namespace pyrometer {

// The GNU build id among `notes`, the bytes of a note segment or section, or of
// /sys/kernel/notes. `alignment` is that of the segment or section: 8, or 4 for everything else.
// Empty if there is none.
BuildId FindBuildId(std::span<const std::byte> notes, uint64_t alignment = 4);

// The build id of a file, from its note segments or else its note sections. Empty if there is
// none, or none that can be read.
BuildId ReadBuildId(const ElfFile& elf);

}  // namespace pyrometer
