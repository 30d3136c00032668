// SPDX-License-Identifier: Apache-2.0
// Line number programs: DWARF 5, section 6.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "binary/dwarf/entry.h"
#include "binary/dwarf/section.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Which lines code is of. Rows are sorted: each is for the code from its address to that of the
// next.
class DwarfLineTable {
 public:
  static constexpr uint32_t kNoFile = ~uint32_t{0};

  struct Row {
    uint64_t address = 0;
    uint32_t file = kNoFile;  // a number as the unit's entries have them; kNoFile: nothing is known
    uint32_t line = 0;        // 0: not known
  };

  // Where a text lies.
  struct Text {
    DwarfSection* section = nullptr;  // null: nobody knows
    uint64_t offset = 0;
  };

  // The program at `offset`, of a unit which was compiled in `directory`. Only code counts.
  // Errors: kMalformed; kExhausted; kUnsupported for versions that nobody knows.
  static Result<DwarfLineTable> Read(DwarfSections& sections, uint64_t offset, Text directory,
                                     const std::function<bool(ElfAddress)>& is_code);

  const std::vector<Row>& rows() const { return rows_; }

  // The path of a file, absolute if the compiler said enough; "" if there is none of that number.
  std::string PathOf(uint32_t file) const;

 private:
  struct File {
    Text name;
    uint64_t directory = 0;
  };
  struct Head;
  class Program;

  static Result<Head> ReadHead(DwarfSections& sections, uint64_t offset);
  Result<void> ReadNames(DwarfSections& sections, DwarfCursor& cursor, const Head& head);
  Result<void> ReadOldNames(DwarfSections& sections, DwarfCursor& cursor, const Head& head);
  void Sort();
  static std::string StringOf(Text text);

  Text directory_;
  std::vector<Text> directories_;
  std::vector<File> files_;
  std::vector<Row> rows_;
  std::vector<size_t> ends_;  // of sequences of rows, one after the other
};

}  // namespace pyrometer
