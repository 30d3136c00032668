// SPDX-License-Identifier: Apache-2.0
// Between the file and the address space of an ELF file.
#pragma once

#include <optional>
#include <span>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Where byte `offset` of the file is found in the ELF's own address space, when it is executed.
// Two segments may hold the same byte, since whole pages are mapped: an executable one is
// preferred to others, and one that contains the byte to one that only shares its page.
std::optional<ElfAddress> ToElfAddress(std::span<const Segment> segments, FileOffset offset);

// Whether what is loaded at `address` is a byte of the file, in this segment.
bool HoldsInFile(const Segment& segment, ElfAddress address);

// The byte of the file that is loaded at `address`; nothing beyond file_size (.bss).
std::optional<FileOffset> ToFileOffset(std::span<const Segment> segments, ElfAddress address);

// The executable segment that holds `address`, or null.
const Segment* ExecutableSegmentAt(std::span<const Segment> segments, ElfAddress address);

}  // namespace pyrometer
