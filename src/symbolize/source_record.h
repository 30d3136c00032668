// SPDX-License-Identifier: Apache-2.0
// What a symbol table keeps of the source of a function: which lines its code is of, and which
// calls were inlined there. A record is flat bytes:
//   the number of bytes that follow
//   the line on which the function begins; 0: not known
//   the number of inlined calls, and each of them: the name of what was called (a text), 1 + the
//     number of the call that it was inlined into (0: none), from which file (1 + a text; 0: not
//     known) and line it was called, the line on which what was called begins
//   rows up to the end, each for the code behind the one before: 4 * its size + 2 if the innermost
//     call is another + 1 if the file is another; then 1 + that call (0: none); then that file, as
//     above; then how much its line is greater, in zigzag
// All numbers are LEB128. Texts are numbered by the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pyrometer {

struct SourceRecord {
  struct Place {
    std::optional<uint32_t> file;  // a text
    uint32_t line = 0;             // 0: not known

    bool operator==(const Place&) const = default;
  };
  struct Call {
    uint32_t name = 0;  // a text
    std::optional<uint32_t> within;
    Place from;
    uint32_t start_line = 0;

    bool operator==(const Call&) const = default;
  };
  struct Row {
    uint64_t size = 0;  // bytes of code
    std::optional<uint32_t> call;
    Place place;

    bool operator==(const Row&) const = default;
  };

  uint32_t start_line = 0;
  std::vector<Call> calls;
  std::vector<Row> rows;

  bool operator==(const SourceRecord&) const = default;
};

// Larger records are not kept, and not believed.
inline constexpr size_t kMostOfSourceRecord = size_t{128} << 10;
// Beyond so many calls within each other, those of the outer ones are left out.
inline constexpr size_t kMostInlined = 64;
// So much says how large a record is.
inline constexpr size_t kHeadOfSourceRecord = 10;

std::vector<std::byte> Encode(const SourceRecord& record);

// How many bytes a record has in all, whose first ones are `head`. Nothing: it is none.
std::optional<size_t> SizeOfSourceRecord(std::span<const std::byte> head);

// What is known of the code at `offset` from the beginning of the function: where in its source
// each function is there, innermost first; the last one is the function itself.
struct SourcePlace {
  std::optional<uint32_t> name;  // a text, of an inlined function
  SourceRecord::Place place;
  uint32_t start_line = 0;
};
// Empty if nothing is known, or if `record` is none. Whatever it is, this does no harm.
std::vector<SourcePlace> PlacesAt(std::span<const std::byte> record, uint64_t offset);

}  // namespace pyrometer
