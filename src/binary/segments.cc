// SPDX-License-Identifier: Apache-2.0
#include "binary/segments.h"

namespace pyrometer {
namespace {

// The smallest page there is; arm64 kernels with larger ones map larger borders, which nobody
// executes.
constexpr uint64_t kPage = 4096;

bool Contains(const Segment& s, FileOffset offset) {
  return offset >= s.offset && offset.value() - s.offset.value() < s.file_size;
}

bool SharesPage(const Segment& s, FileOffset offset) {
  if (s.file_size == 0) return false;
  const uint64_t page = offset.value() / kPage;
  return page >= s.offset.value() / kPage && page <= (s.offset.value() + (s.file_size - 1)) / kPage;
}

}  // namespace

std::optional<ElfAddress> ToElfAddress(std::span<const Segment> segments, FileOffset offset) {
  for (const bool executable : {true, false}) {
    for (const auto matches : {&Contains, &SharesPage}) {
      for (const Segment& s : segments) {
        if (s.executable != executable || !matches(s, offset)) continue;
        return ElfAddress(offset.value() - s.offset.value() + s.address.value());
      }
    }
  }
  return std::nullopt;
}

bool HoldsInFile(const Segment& segment, ElfAddress address) {
  return address >= segment.address &&
         address.value() - segment.address.value() < segment.file_size;
}

std::optional<FileOffset> ToFileOffset(std::span<const Segment> segments, ElfAddress address) {
  for (const Segment& s : segments) {
    if (!HoldsInFile(s, address)) continue;
    return FileOffset(address.value() - s.address.value() + s.offset.value());
  }
  return std::nullopt;
}

const Segment* ExecutableSegmentAt(std::span<const Segment> segments, ElfAddress address) {
  for (const Segment& s : segments) {
    if (s.executable && address >= s.address &&
        address.value() - s.address.value() < s.memory_size) {
      return &s;
    }
  }
  return nullptr;
}

ElfAddress CodeBase(std::span<const Segment> segments) {
  ElfAddress base(0);
  bool any = false;
  for (const Segment& segment : segments) {
    if (!segment.executable || (any && base <= segment.address)) continue;
    base = segment.address;
    any = true;
  }
  return base;
}

}  // namespace pyrometer
