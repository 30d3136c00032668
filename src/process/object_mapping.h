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

// What remains of a new mapping if a loader made it to place an object with these segments. The
// kernel and ld.so map the first segment with the length of all, to find room, and then unmap what
// lies beyond it (fs/binfmt_elf.c, elf_load(); glibc, _dl_map_segments()); only the first step is
// reported. Without this correction the kernel's count of executable pages would contradict every
// process that has an object with executable code in its first segment. Any other mapping is
// returned unchanged.
FileMapping WithoutReservation(const FileMapping& mapping, std::span<const Segment> segments,
                               uint64_t page_size);

// The range in terms of `object`'s own address space: a piece for each PT_LOAD it shows, with
// bias = start - offset + p_offset - p_vaddr. Where page rounding makes two segments overlap, the
// executable one wins. What belongs to no segment gets addresses above all of them, where the first
// page stands for the file's start: it has the file's name and no symbol's. Without
// segments (not an ELF file) the object's addresses are file offsets. The pieces are ascending and
// cover the range without gaps. A range that gives too many pieces, or reaches beyond the largest
// file offset, becomes one piece of no object.
std::vector<ObjectMapping> ToObjectMappings(const FileMapping& mapping, ObjectId object,
                                            std::span<const Segment> segments, uint64_t page_size);

}  // namespace pyrometer
