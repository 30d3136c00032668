// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// An executable range of a process, in the terms in which frames are normalized.
// An address `a` in it has the object address `a - bias` (modulo 2^64).
struct ObjectMapping {
  Address start;
  Address end;      // exclusive
  ObjectId object;  // ObjectId(0): anonymous memory (JIT code); its frames stay user addresses
  uint64_t bias = 0;

  ElfAddress ToElfAddress(Address a) const { return ElfAddress(a.value() - bias); }
  bool Contains(Address a) const { return start <= a && a < end; }
  bool operator==(const ObjectMapping&) const = default;
};

// A mapping as the kernel side is told of it.
struct PublishedMapping {
  ObjectMapping mapping;
  // Its content changed before while the program ran, and may have changed again by now: what is
  // there at a moment only user space can say.
  bool shifting = false;
  bool operator==(const PublishedMapping&) const = default;
};

// One PT_LOAD of an ELF file.
struct Segment {
  FileOffset offset;
  ElfAddress address;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  bool executable = false;
  bool operator==(const Segment&) const = default;
};

// What is learnt of an object at first sight, from its headers alone (cheap: some preads).
struct ObjectFacts {
  BuildId build_id;               // empty: it has none
  std::vector<Segment> segments;  // PT_LOADs in file order; empty: not an ELF file
};

}  // namespace pyrometer
