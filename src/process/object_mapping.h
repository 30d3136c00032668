// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// An executable range of a process that shows a file from `offset` on.
struct FileMapping {
  Address start;
  Address end;  // exclusive
  FileOffset offset;
  bool writable = false;  // as well as executable
};

// What is left of a mapping that was just made, if a loader made it to place an object with these
// segments. The kernel and ld.so map the first segment with the length of all, to find room, and
// take away what lies beyond it (fs/binfmt_elf.c, elf_load(); glibc, _dl_map_segments()); only the
// first step is reported. Without it the kernel's count of executable pages would contradict every
// process that has such an object with executable code in its first segment. Any other mapping
// stays what it is.
FileMapping WithoutReservation(const FileMapping& mapping, std::span<const Segment> segments,
                               uint64_t page_size);

// The range in terms of `object`'s own address space: a piece for each PT_LOAD it shows, with
// bias = start - offset + p_offset - p_vaddr. Where page rounding makes two segments overlap, the
// executable one wins. What belongs to no segment gets addresses above all of them, the first page
// there standing for the file's start: it has the file's name and takes no symbol's. Without
// segments (not an ELF file) the object's addresses are file offsets. The pieces are ascending and
// cover the range without gaps; what is cut into too many, or reaches beyond the end of all file
// offsets, comes as one piece of no object.
std::vector<ObjectMapping> ToObjectMappings(const FileMapping& mapping, ObjectId object,
                                            std::span<const Segment> segments, uint64_t page_size);

}  // namespace pyrometer
