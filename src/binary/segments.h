// SPDX-License-Identifier: Apache-2.0
// Converts between file offsets and addresses of an ELF file.
#pragma once

#include <optional>
#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// The ELF address at which the byte at `offset` of the file is executed. Two segments may hold the
// same byte, since whole pages are mapped: an executable segment is preferred to others, then one
// that contains the byte to one that only shares its page.
std::optional<ElfAddress> ToElfAddress(std::span<const Segment> segments, FileOffset offset);

// Whether this segment loads a byte of the file at `address`.
bool HoldsInFile(const Segment& segment, ElfAddress address);

// The offset in the file of the byte loaded at `address`; nothing beyond file_size (.bss).
std::optional<FileOffset> ToFileOffset(std::span<const Segment> segments, ElfAddress address);

// The executable segment that contains `address`, or null.
const Segment* ExecutableSegmentAt(std::span<const Segment> segments, ElfAddress address);

// Where the code begins: the lowest address of an executable segment; 0 if there is none.
ElfAddress CodeBase(std::span<const Segment> segments);

}  // namespace pyrometer
