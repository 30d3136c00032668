// SPDX-License-Identifier: Apache-2.0
#include "unwind/fde_ranges.h"

#include <algorithm>
#include <cstddef>

#include "binary/segments.h"

namespace pyrometer {
namespace {

// To each the instructions of the whole FDE are executed.
constexpr size_t kMostParts = 8;

bool BeginsBefore(const Fde& a, const Fde& b) {
  return a.from < b.from;
}

}  // namespace

void KeepCode(std::vector<Fde>& fdes, std::span<const Segment> segments) {
  const Segment* text = nullptr;
  std::erase_if(fdes, [&](Fde& fde) {
    const ElfAddress begin(fde.begin);
    if (text == nullptr || !HoldsInFile(*text, begin)) {
      text = ExecutableSegmentAt(segments, begin);
      if (text == nullptr || !HoldsInFile(*text, begin)) return true;
    }
    fde.end = std::min(fde.end, text->address.value() + text->file_size);
    return false;
  });
}

uint32_t ResolveOverlaps(std::vector<Fde>& fdes) {
  if (!std::ranges::is_sorted(fdes, BeginsBefore)) std::ranges::stable_sort(fdes, BeginsBefore);
  uint32_t overlaps = 0;
  size_t kept = 0;
  for (const Fde& fde : fdes) {
    if (kept > 0) {
      Fde& before = fdes[kept - 1];
      if (before.end > fde.from) ++overlaps;
      if (before.from == fde.from) continue;
      before.end = std::min(before.end, fde.from);
    }
    fdes[kept++] = fde;
  }
  fdes.resize(kept);
  return overlaps;
}

std::vector<Fde> Uncovered(std::span<const Fde> fdes, std::span<const Fde> covered) {
  std::vector<Fde> rest;
  auto next = covered.begin();  // the first that ends behind the FDE's beginning
  for (const Fde& fde : fdes) {
    while (next != covered.end() && next->end <= fde.from) ++next;
    Fde part = fde;
    const size_t most = rest.size() + kMostParts;
    for (auto c = next; c != covered.end() && c->from < fde.end && rest.size() < most; ++c) {
      part.end = c->from;
      if (part.from < part.end) rest.push_back(part);
      part.from = c->end;
    }
    part.end = fde.end;
    if (part.from < part.end && rest.size() < most) rest.push_back(part);
  }
  return rest;
}

}  // namespace pyrometer
