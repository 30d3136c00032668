// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "process/process_event.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// An executable line of /proc/PID/maps, and those that continue it: the same file at the addresses
// and offsets that follow.
struct ProcMapping {
  FileMapping range;
  MappedFile file;
  Address line_end;          // of the first line alone, as /proc/PID/map_files names it
  bool is_reported = false;  // by a MappingEvent: a loader may have unmapped the end of it since

  FileMapping first_line() const { return {range.start, line_end, range.offset, range.writable}; }
};

// What one look at a /proc/PID/maps may take. A program of the largest size has some 1,000
// executable mappings; a database may have 100,000 others.
struct ProcMapsLimits {
  size_t files = 4096;      // executable mappings of files
  size_t anonymous = 4096;  // and others
  size_t bytes = size_t{16} << 20;
};

// The executable lines of a /proc/PID/maps: all of them, or as far as the limits allow.
struct ProcMaps {
  std::vector<ProcMapping> mappings;  // ascending
  bool complete = true;               // none was left out
  uint64_t bytes = 0;                 // that were read; 0: it has no memory

  // This was mapped there, just before these were read or since then. Of anonymous memory that they
  // show there they tell more.
  void Map(const FileMapping& range, const MappedFile& file);
};

// Understands a /proc/PID/maps that comes piece by piece. What a process can choose (its paths) is
// hostile and cannot make one field pass for another. Malformed lines and addresses in the kernel's
// half ([vsyscall]) are left out. A path that is too long to open is "//toolong", as the kernel's
// records have it. Thread-compatible.
class ProcMapsParser {
 public:
  explicit ProcMapsParser(const ProcMapsLimits& limits = {}) : limits_(limits) {}

  // The next piece. False: nothing more is wanted, a limit is reached.
  bool Add(std::string_view text);
  // After the last piece.
  ProcMaps Finish() &&;

 private:
  void AddLine(std::string_view line);
  void AddMapping(ProcMapping mapping);

  const ProcMapsLimits limits_;
  ProcMaps maps_;
  std::string begun_;  // of a line whose end has yet to come
  bool stopped_ = false;
  size_t files_ = 0;
  size_t anonymous_ = 0;
};

// Reads a /proc/PID/maps with a buffer of fixed size. Errors: those of read(2).
Result<ProcMaps> ReadProcMaps(int fd, const ProcMapsLimits& limits = {});

}  // namespace pyrometer
