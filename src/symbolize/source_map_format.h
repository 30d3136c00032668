// SPDX-License-Identifier: Apache-2.0
// The bytes of a SourceMap, little-endian, with nothing between or behind its parts:
//
//   offset  size
//        0     8  magic: "pyrosrc2". Its last character is the version of this format, and goes up
//                 with every change of what follows; no reader knows more than one. (What is kept
//                 on disk is of one build of the program in any case: see
//                 cached_artifact_format.h.)
//        8     8  base: what addresses are relative to
//       16     8  T: bytes of texts
//       24     8  P: number of paths
//       32     8  S: number of scopes
//       40     8  R: bytes of rows
//       48     8  B: number of blocks
//       56     4  1: there was no room for all of it; else 0
//       60     4  how much of the debug information could not be read: units, functions, calls
//       64     T  texts: strings, each ending with a NUL; the first is empty
//             8P  paths, of source files: offsets in the texts of directory and file, 4 bytes each
//            16S  scopes, functions and calls inlined into them, 4 numbers of 4 bytes each: name,
//                 an offset in the texts; the scope it is inlined into, a lower number, or 0: it is
//                 a function; path and line of the call, 0: unknown
//              R  rows: which scope, path and line code belongs to, in blocks of 64, each of which
//                 begins with nothing known. A row is four LEB128 numbers, the difference to the
//                 one before: of the address (unsigned), scope, path and line (signed). It ends
//                 where the next begins.
//             8B  blocks, by address, 4 bytes each: the address of the first row, and where in the
//                 rows it begins
//
// Numbers of scopes and paths count from 1; 0 is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pyrometer {

inline constexpr std::array<char, 8> kSourceMapMagic = {'p', 'y', 'r', 'o', 's', 'r', 'c', '2'};

struct SourceMapHeader {
  std::array<char, 8> magic = kSourceMapMagic;
  uint64_t base = 0;
  uint64_t texts = 0;   // bytes
  uint64_t paths = 0;   // their number
  uint64_t scopes = 0;  // likewise
  uint64_t rows = 0;    // bytes
  uint64_t blocks = 0;  // their number
  uint32_t is_cut = 0;  // 1: there was no room for all of it
  uint32_t lost = 0;    // what could not be read
};
static_assert(sizeof(SourceMapHeader) == 64);

struct SourceMapPath {
  uint32_t directory = 0;  // offset in the texts
  uint32_t file = 0;       // likewise
};
struct SourceMapScope {
  uint32_t name = 0;       // offset in the texts
  uint32_t parent = 0;     // the scope it is inlined into, a lower number; 0: it is a function
  uint32_t call_path = 0;  // of the call
  uint32_t call_line = 0;  // likewise; 0: unknown
};
struct SourceMapBlock {
  uint32_t start = 0;  // address of the first row
  uint32_t at = 0;     // offset in the rows
};

inline constexpr size_t kSourceMapBlockRows = 64;
inline constexpr size_t kSourceMapMaxDepth = 64;  // of inlined calls
// Bytes that four LEB128 numbers of 33 bits take at most.
inline constexpr size_t kSourceMapMaxRow = 20;

}  // namespace pyrometer
