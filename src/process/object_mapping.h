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
};

// The range in terms of `object`'s own address space: a piece for each PT_LOAD it shows, with
// bias = start - offset + p_offset - p_vaddr. Where page rounding makes two segments overlap, the
// executable one wins. What belongs to no segment gets addresses above all of them, the first page
// there standing for the file's start: it has the file's name and takes no symbol's. Without
// segments (not an ELF file) the object's addresses are file offsets.
std::vector<ObjectMapping> ToObjectMappings(const FileMapping& mapping, ObjectId object,
                                            std::span<const Segment> segments, uint64_t page_size);

}  // namespace pyrometer
