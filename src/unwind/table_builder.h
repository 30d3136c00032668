// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pyrometer/unwind_table.h"

namespace pyrometer {

// The number of the page that holds an ELF address.
constexpr uint64_t PageOf(uint64_t address) {
  return address >> PYRO_UNWIND_PAGE_SHIFT;
}

// Lays out the rows of an UnwindTable and its pages.
class TableBuilder {
 public:
  // Fewer bytes than this between the end of a function and the aligned beginning of the next count
  // as padding. It is never executed, so it gets no row and keeps the rule before it.
  static constexpr uint64_t kAlignment = 16;

  // Rows that a sink gets at a time, but for the last ones.
  static constexpr size_t kBlockRows = size_t{1} << 16;

  // `sink` gets the rows, or else the table does.
  explicit TableBuilder(RowSink* sink = nullptr) : sink_(sink) {}

  // True if there is room for `rows` that come next, of one function, whichever pages they lie on.
  bool HasRoomFor(size_t rows) const;

  // `rule` holds for the ELF addresses [begin, end), which is not empty.
  // REQUIRES: `begin` is not before an earlier call's `end`.
  void Cover(uint64_t begin, uint64_t end, uint16_t rule);

  // Fills in pages, the rest of the rows and the digest, but for the rules.
  void Finish(UnwindTable& table) &&;

 private:
  void SwitchTo(uint64_t address, uint16_t rule);
  void Append(uint64_t address, uint16_t rule);
  size_t row_count() const { return begun_ + rows_.size(); }
  void EndBlock();

  RowSink* const sink_;
  uint64_t first_page_ = 0;
  std::vector<UnwindTable::Page> pages_;
  std::vector<pyro_unwind_row> rows_;  // that no sink has got
  size_t begun_ = 0;                   // rows before these
  size_t digested_ = 0;                // of these
  uint64_t digest_ = 0;
  uint16_t rule_ = 0;  // from the last switch on
  uint64_t end_ = 0;   // of what is covered
};

}  // namespace pyrometer
