// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/hash/hash.h"
#include "sampler/table_upload.h"
#include "tests/unit/sampler/chunk_memory.h"
#include "tests/unit/unwind/table_rules.h"

namespace pyrometer {

inline constexpr ObjectId kLibc(7);
inline constexpr ObjectId kSsl(8);
inline constexpr ObjectId kCopy(9);  // of kLibc
inline constexpr MonotonicTime kNow(5'000'000'000);
inline constexpr MonotonicTime kLater(7'000'000'000);
inline constexpr MonotonicTime kMuchLater(50'000'000'000);

// A table of `pages` pages from page number 4 on, each with `rows_per_page` rows of one rule.
inline UnwindTable Table(uint32_t pages, uint32_t rows_per_page, int32_t offset = 8) {
  UnwindTable table;
  table.first_page = 4;
  table.rules = {pyro_unwind_rule{}, RuleWithOffset(offset)};
  for (uint32_t page = 0; page < pages; ++page) {
    table.pages.push_back({static_cast<uint32_t>(table.rows.size()), rows_per_page});
    for (uint32_t row = 0; row < rows_per_page; ++row) {
      table.rows.push_back({static_cast<uint16_t>(row), 1});
    }
  }
  table.digest = absl::HashOf(pages, rows_per_page, offset);
  return table;
}

// Claims `pages` pages of text, of which the first has a row.
inline UnwindTable Sparse(uint32_t pages) {
  UnwindTable table = Table(1, 1);
  table.pages.resize(pages, {.first_row = 1, .row_count = 0});
  table.digest = pages;
  return table;
}

class TableUploadTest : public testing::Test {
 protected:
  static constexpr size_t kChunks = 2;

  // As the sampling program finds it; nothing if the rows are not there.
  std::optional<pyro_unwind_rule> RuleAt(uint32_t table, uint64_t address) {
    const pyro_object_table& entry = tables_[table];
    if (entry.state != PYRO_TABLE_LOADED) return std::nullopt;
    pyro_table_page& page =
        pages_[entry.first_page + (address >> PYRO_UNWIND_PAGE_SHIFT) - entry.first_text_page];
    page.used = 1;
    if (page.count == 0) return rules_[0];
    if (page.chunk == PYRO_PAGE_EVICTED) return std::nullopt;
    const std::vector<pyro_unwind_row>& rows = chunks_.chunks.at(page.chunk);
    uint32_t at = page.first;
    while (at + 1 < page.first + page.count && rows[at + 1].pc_low <= (address & 0xffff)) ++at;
    return rules_[rows[at].rule];
  }

  std::vector<pyro_object_table> tables_ = std::vector<pyro_object_table>(8);
  std::vector<pyro_table_page> pages_ = std::vector<pyro_table_page>(64);
  std::vector<pyro_unwind_rule> rules_ = std::vector<pyro_unwind_rule>(64);
  VectorChunks chunks_;
  uint32_t generation_ = 0;
  TableUpload upload_{{tables_, pages_, rules_, generation_}, chunks_, kChunks};
};

}  // namespace pyrometer
