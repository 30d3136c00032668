// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pyrometer {

// Why a location has no function name.
enum class Unresolved : uint8_t {
  kUnmapped,    // a user address in no known mapping, of a process without a perf map
  kNoSymbols,   // the object's symbols do not cover the address: stripped, or a gap
  kFileGone,    // the object's file was gone before its symbols were read
  kUnreadable,  // the object's symbols could not be read: no permission, not a valid ELF file
  kJit,         // a user address that the process's perf map does not cover
  kKernel,      // a kernel address outside of all known functions
  kNoRoom,      // the object's symbols take more room than there is for now
  kNotReady,    // symbols are still being read, or their file system does not answer; of a perf map
                // more than may be read in a window
  kOtherKind,   // a frame of a kind without a namer
};
inline constexpr size_t kUnresolvedReasons = 9;

// "unmapped", "no_symbols", ... as in metrics.
std::string_view Name(Unresolved reason);

// What the symbolizer has done since its start. Each location is counted when it is first named,
// and again when its name may have improved.
struct SymbolizerCounts {
  uint64_t locations = 0;
  std::array<uint64_t, kUnresolvedReasons> unresolved{};
  uint64_t tables_read = 0;            // symbol tables, also those read again when dropped
  uint64_t tables_dropped_in_use = 0;  // for want of room; see SymbolTableCache
  uint64_t symbol_table_bytes = 0;     // in memory after the last window
  uint64_t symbol_spilled_bytes = 0;   // in the spill file then
  uint64_t kernel_symbols_read = 0;    // attempts to read the kernel's symbols again
  uint64_t bad_perf_map_lines = 0;
  uint64_t perf_map_functions_forgotten = 0;  // for want of memory, the oldest
  uint64_t perf_map_bytes_left_out = 0;       // of files with more than is kept, at their beginning
  uint64_t bad_jit_dump_records = 0;
  uint64_t jit_dump_functions_forgotten = 0;  // for want of memory, the oldest
  uint64_t jit_dump_lines_lost = 0;           // as they are too many, or made no sense
  uint64_t jit_dumps_unreadable = 0;          // attempts to read one that is none

  void Add(Unresolved reason) { ++unresolved[static_cast<size_t>(reason)]; }
  uint64_t Of(Unresolved reason) const { return unresolved[static_cast<size_t>(reason)]; }
};

}  // namespace pyrometer
