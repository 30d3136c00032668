// SPDX-License-Identifier: Apache-2.0
#include "process/object_mapping.h"

#include <algorithm>
#include <limits>

namespace pyrometer {
namespace {

// A hostile file may have 65,535 segments and cut a mapping into as many pieces; no linker makes
// an executable mapping span more than two or three.
constexpr size_t kMaxPieces = 64;

struct FileRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

FileRange RangeOf(const Segment& segment, uint64_t page_size, bool rounded) {
  FileRange range{segment.offset.value(), SaturatingAdd(segment.offset.value(), segment.file_size)};
  if (rounded) {
    range.start &= ~(page_size - 1);
    range.end = SaturatingAdd(range.end, page_size - 1) & ~(page_size - 1);
  }
  return range;
}

// Splits a mapping among segments; each claim takes what is still free.
class Splitter {
 public:
  // REQUIRES: the mapping's last file offset fits into 64 bits.
  Splitter(const FileMapping& mapping, ObjectId object)
      : base_(mapping.start.value() - mapping.offset.value()), object_(object) {
    free_.push_back({mapping.offset.value(),
                     mapping.offset.value() + (mapping.end.value() - mapping.start.value())});
  }

  bool done() const { return free_.empty() || pieces_.size() > kMaxPieces; }

  void Claim(const FileRange& range, const Segment& segment) {
    const uint64_t bias = base_ + segment.offset.value() - segment.address.value();
    std::vector<FileRange> rest;
    for (const FileRange& f : free_) {
      const FileRange common{std::max(f.start, range.start), std::min(f.end, range.end)};
      if (common.start >= common.end) {
        rest.push_back(f);
        continue;
      }
      Add(common, object_, bias);
      if (f.start < common.start) rest.push_back({f.start, common.start});
      if (common.end < f.end) rest.push_back({common.end, f.end});
    }
    free_ = std::move(rest);
  }

  // `beyond`: an address above all segments, where what belongs to none of them is counted from.
  std::vector<ObjectMapping> Finish(uint64_t beyond) && {
    for (const FileRange& f : free_) Add(f, object_, base_ - beyond);
    std::sort(pieces_.begin(), pieces_.end(),
              [](const ObjectMapping& a, const ObjectMapping& b) { return a.start < b.start; });
    std::vector<ObjectMapping> merged;
    for (const ObjectMapping& piece : pieces_) {
      if (!merged.empty() && merged.back().end == piece.start &&
          merged.back().object == piece.object && merged.back().bias == piece.bias) {
        merged.back().end = piece.end;
      } else {
        merged.push_back(piece);
      }
    }
    return merged;
  }

 private:
  void Add(const FileRange& range, ObjectId object, uint64_t bias) {
    pieces_.push_back({Address(base_ + range.start), Address(base_ + range.end), object, bias});
  }

  const uint64_t base_;  // run-time address of file offset 0
  const ObjectId object_;
  std::vector<FileRange> free_;
  std::vector<ObjectMapping> pieces_;
};

// The first page above all segments.
uint64_t EndOf(std::span<const Segment> segments, uint64_t page_size) {
  uint64_t end = 0;
  for (const Segment& segment : segments) {
    end = std::max(end, SaturatingAdd(segment.address.value(), segment.memory_size));
  }
  return SaturatingAdd(end, page_size - 1) & ~(page_size - 1);
}

}  // namespace

FileMapping WithoutReservation(const FileMapping& mapping, std::span<const Segment> segments,
                               uint64_t page_size) {
  if (segments.empty()) return mapping;
  const Segment& first = segments.front();
  const FileRange shown = RangeOf(first, page_size, true);
  const uint64_t before = first.offset.value() - shown.start;  // on the first page
  const uint64_t length = mapping.end.value() - mapping.start.value();
  const uint64_t all = EndOf(segments, page_size) - (first.address.value() - before);
  const uint64_t kept = shown.end - shown.start;
  if (mapping.offset.value() != shown.start || length != all || kept == 0 || kept >= length) {
    return mapping;
  }
  FileMapping left = mapping;
  left.end = Address(mapping.start.value() + kept);
  return left;
}

std::vector<ObjectMapping> ToObjectMappings(const FileMapping& mapping, ObjectId object,
                                            std::span<const Segment> segments, uint64_t page_size) {
  if (mapping.end <= mapping.start) return {};
  const ObjectMapping anonymous{mapping.start, mapping.end, ObjectId(0), 0};
  const uint64_t length = mapping.end.value() - mapping.start.value();
  if (mapping.offset.value() > std::numeric_limits<uint64_t>::max() - length) return {anonymous};
  if (segments.empty()) {
    const uint64_t bias = mapping.start.value() - mapping.offset.value();
    return {{mapping.start, mapping.end, object, bias}};
  }
  Splitter splitter(mapping, object);
  for (const bool executable : {true, false}) {
    for (const bool rounded : {false, true}) {
      for (const Segment& segment : segments) {
        if (splitter.done()) break;
        if (segment.executable != executable || segment.file_size == 0) continue;
        splitter.Claim(RangeOf(segment, page_size, rounded), segment);
      }
    }
  }
  std::vector<ObjectMapping> pieces = std::move(splitter).Finish(EndOf(segments, page_size));
  if (pieces.size() > kMaxPieces) return {anonymous};
  return pieces;
}

}  // namespace pyrometer
