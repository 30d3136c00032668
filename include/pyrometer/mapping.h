// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pyrometer/ids.h"

namespace pyrometer {

// An executable range of a process, in the terms that frames are normalized to. An address `a` in
// it has the object address `a - bias` (modulo 2^64).
struct ObjectMapping {
  Address start;
  Address end;      // exclusive
  ObjectId object;  // ObjectId(0): anonymous memory (JIT code); its frames stay user addresses
  uint64_t bias = 0;

  ElfAddress ToElfAddress(Address a) const { return ElfAddress(a.value() - bias); }
  bool Contains(Address a) const { return start <= a && a < end; }
  bool operator==(const ObjectMapping&) const = default;
};

// A mapping as published to the kernel side.
struct PublishedMapping {
  ObjectMapping mapping;
  // Its content has changed before while the program ran, and may have changed again by now. Only
  // user space can tell what was there at a given moment.
  bool shifting = false;
  bool operator==(const PublishedMapping&) const = default;
};

// mm->exec_vm, the kernel's own count of executable pages, while what is published is all there is.
struct ExecPages {
  uint64_t count = 0;
  // There may be so many more or fewer, as anonymous code comes and goes.
  uint64_t slack = 0;
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

// What is read of an object when it is first seen, from its headers alone (a few preads).
struct ObjectFacts {
  BuildId build_id;               // empty: it has none
  std::vector<Segment> segments;  // PT_LOADs in file order; empty: not an ELF file
  FileHash hash{};                // of an ELF file without a build id
  std::string go_build_id{};      // what `go tool buildid` prints; "": it has none
  bool tells_names = false;       // has more names of functions than it needs to run
  bool may_tell_sources = false;  // may have debug information, or is a Go program
  bool named_by_sources = false;  // and else only the names it needs to run: a Go program, stripped
};

}  // namespace pyrometer
