// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_builder.h"

#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/hash/hash.h"

namespace pyrometer {
namespace {

constexpr uint16_t kNoRow = 0;

uint64_t StartOf(uint64_t page) {
  return page << PYRO_UNWIND_PAGE_SHIFT;
}

}  // namespace

bool TableBuilder::HasRoomFor(size_t rows) const {
  // A page may have one more where it begins, behind the function before, and behind this one.
  constexpr size_t kMore = 3;
  const size_t last = pages_.empty() ? 0 : pages_.back().row_count;
  return last + rows + kMore <= UnwindTable::kMostRowsOfPage &&
         row_count() + rows + UnwindTable::kMostPages <= UnwindTable::kMostRows;
}

void TableBuilder::Cover(uint64_t begin, uint64_t end, uint16_t rule) {
  if (pages_.empty()) {
    first_page_ = PageOf(begin);
    end_ = begin;
  }
  const bool padding = begin - end_ < kAlignment && begin % kAlignment == 0;
  if (begin != end_ && !padding) SwitchTo(end_, kNoRow);
  SwitchTo(begin, rule);
  end_ = end;
}

// What held until `address` goes on to hold at the start of each page between.
void TableBuilder::SwitchTo(uint64_t address, uint16_t rule) {
  if (rule == rule_) return;
  const uint64_t page = PageOf(address);
  while (first_page_ + pages_.size() < page + (address != StartOf(page) ? 1 : 0)) {
    const uint64_t next = first_page_ + pages_.size();
    pages_.push_back({.first_row = static_cast<uint32_t>(row_count()), .row_count = 0});
    if (rule_ != kNoRow || next == page) Append(StartOf(next), rule_);
  }
  rule_ = rule;
  if (address != StartOf(page)) {
    Append(address, rule);
  } else if (rule != kNoRow) {
    pages_.push_back({.first_row = static_cast<uint32_t>(row_count()), .row_count = 0});
    Append(address, rule);
  }
}

void TableBuilder::Append(uint64_t address, uint16_t rule) {
  rows_.push_back({.pc_low = static_cast<uint16_t>(address), .rule = rule});
  ++pages_.back().row_count;
  if (rows_.size() - digested_ == kBlockRows) EndBlock();
}

void TableBuilder::EndBlock() {
  if (rows_.size() == digested_) return;
  const auto block = std::span(rows_).subspan(digested_);
  static_assert(std::has_unique_object_representations_v<pyro_unwind_row>);
  const std::string_view bytes(reinterpret_cast<const char*>(block.data()), block.size_bytes());
  digest_ = absl::HashOf(digest_, bytes);
  digested_ = rows_.size();
  if (sink_ == nullptr) return;
  sink_->Put(rows_);
  begun_ += rows_.size();
  rows_.clear();
  digested_ = 0;
}

void TableBuilder::Finish(UnwindTable& table) && {
  SwitchTo(end_, kNoRow);
  EndBlock();
  rows_.shrink_to_fit();
  const std::string_view pages(reinterpret_cast<const char*>(pages_.data()),
                               pages_.size() * sizeof(UnwindTable::Page));
  table.digest = absl::HashOf(digest_, first_page_, pages);
  table.first_page = first_page_;
  table.pages = std::move(pages_);
  table.rows = std::move(rows_);
}

}  // namespace pyrometer
