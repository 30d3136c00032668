// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/dwarf_ranges.h"

#include <dwarf.h>
#include <elf.h>

#include <cstring>
#include <optional>

#include "binary/segments.h"

namespace pyrometer {
namespace {

// Of one entry. gcc's largest functions have some hundred.
constexpr size_t kMostRanges = 65536;
constexpr size_t kMostOfRange = 32;  // the longest item of a list

void Add(uint64_t begin, uint64_t end, std::vector<SourceSink::Range>& out) {
  if (begin < end) out.push_back({.begin = begin, .end = end});
}

bool ReadOldRanges(DwarfFile& file, const DwarfUnit& unit, uint64_t at,
                   std::vector<SourceSink::Range>& out) {
  DwarfFile& holder = file.others().skeletons != nullptr ? *file.others().skeletons : file;
  uint64_t base = unit.low_pc;
  struct {
    uint64_t begin;
    uint64_t end;
  } pair;
  for (size_t i = 0; i < kMostRanges; ++i, at += sizeof(pair)) {
    const auto bytes = holder.ranges().At(at, sizeof(pair));
    if (!bytes || bytes->size() < sizeof(pair)) return false;
    std::memcpy(&pair, bytes->data(), sizeof(pair));
    if (pair.begin == 0 && pair.end == 0) return true;
    if (pair.begin == ~uint64_t{0}) {
      base = pair.end;
    } else {
      Add(base + pair.begin, base + pair.end, out);
    }
  }
  return false;
}

// The items of one list of .debug_rnglists.
class RangeList {
 public:
  RangeList(DwarfFile& file, const DwarfUnit& unit, std::vector<SourceSink::Range>& out)
      : file_(file), unit_(unit), out_(out), base_(unit.low_pc) {}

  bool Read(uint64_t at) {
    for (size_t i = 0; i < kMostRanges && !is_at_end_; ++i) {
      const auto bytes = file_.range_lists().At(at, kMostOfRange);
      if (!bytes) return false;
      DwarfCursor in(*bytes);
      if (!ReadItem(in) || !in.ok()) return false;
      at += in.position();
    }
    return is_at_end_;
  }

 private:
  bool ReadItem(DwarfCursor& in) {
    switch (in.Fixed<uint8_t>()) {
      case DW_RLE_end_of_list:
        is_at_end_ = true;
        return true;
      case DW_RLE_base_addressx:
        return SetBase(Indexed(in));
      case DW_RLE_base_address:
        return SetBase(in.Fixed<uint64_t>());
      case DW_RLE_startx_endx: {
        const auto begin = Indexed(in);
        const auto end = Indexed(in);
        return begin && end && Put(*begin, *end);
      }
      case DW_RLE_startx_length: {
        const auto begin = Indexed(in);
        const uint64_t size = in.Uleb();
        return begin && Put(*begin, *begin + size);
      }
      case DW_RLE_offset_pair: {
        const uint64_t begin = in.Uleb();
        const uint64_t end = in.Uleb();
        return Put(base_ + begin, base_ + end);
      }
      case DW_RLE_start_end: {
        const auto begin = in.Fixed<uint64_t>();
        const auto end = in.Fixed<uint64_t>();
        return Put(begin, end);
      }
      case DW_RLE_start_length: {
        const auto begin = in.Fixed<uint64_t>();
        return Put(begin, begin + in.Uleb());
      }
      default:
        return false;
    }
  }

  std::optional<uint64_t> Indexed(DwarfCursor& in) {
    return file_.AddressAt(unit_.addresses, in.Uleb());
  }
  bool SetBase(std::optional<uint64_t> base) {
    base_ = base.value_or(0);
    return base.has_value();
  }
  bool Put(uint64_t begin, uint64_t end) {
    Add(begin, end, out_);
    return true;
  }

  DwarfFile& file_;
  const DwarfUnit& unit_;
  std::vector<SourceSink::Range>& out_;
  uint64_t base_;
  bool is_at_end_ = false;
};

bool IsAddress(uint16_t form) {
  switch (form) {
    case DW_FORM_addr:
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ReadDwarfRanges(DwarfFile& file, const DwarfUnit& unit, const DwarfDie& die,
                     std::vector<SourceSink::Range>& out) {
  if (const DwarfValue* list = die.Find(DwarfAttribute::kRanges)) {
    if (unit.header.format.version < 5) {
      // The base is that of split units only, though their skeletons have it.
      const uint64_t base = file.others().skeletons == nullptr ? 0 : unit.ranges;
      return ReadOldRanges(file, unit, base + list->number, out);
    }
    const std::optional<uint64_t> at = file.RangeList(unit, *list);
    return at && RangeList(file, unit, out).Read(*at);
  }
  const DwarfValue* const low = die.Find(DwarfAttribute::kLowPc);
  const DwarfValue* const high = die.Find(DwarfAttribute::kHighPc);
  if (low == nullptr || high == nullptr) return true;
  const std::optional<uint64_t> begin = file.Address(unit, *low);
  if (!begin) return false;
  const std::optional<uint64_t> end =
      IsAddress(high->form) ? file.Address(unit, *high) : std::optional(*begin + high->number);
  if (!end) return false;
  Add(*begin, *end, out);
  return true;
}

bool MayBeCode(std::span<const Segment> segments, ElfAddress address) {
  const Segment* const segment = ExecutableSegmentAt(segments, address);
  if (segment == nullptr) return false;
  const std::optional<FileOffset> offset = ToFileOffset({segment, 1}, address);
  return !offset || offset->value() >= sizeof(Elf64_Ehdr);
}

}  // namespace pyrometer
