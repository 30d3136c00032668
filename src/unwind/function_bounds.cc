// SPDX-License-Identifier: Apache-2.0
#include "unwind/function_bounds.h"

#include <cstddef>
#include <utility>

#include "binary/sections.h"
#include "unwind/cfi_reader.h"
#include "unwind/cfi_sections.h"
#include "unwind/fde_ranges.h"

namespace pyrometer {
namespace {

constexpr size_t kMostFunctions = 2'000'000;  // as many as are unwound

}  // namespace

std::vector<FunctionBounds> ReadFunctionBounds(const ElfFile& elf) {
  std::vector<Fde> fdes;
  {
    const Result<CfiSection> section = ReadEhFrame(elf, SectionTable::Read(elf));
    if (!section) return {};
    CallFrameInfo info;
    ReadCallFrameInfo(*section, kMostFunctions, info);
    fdes = std::move(info.fdes);
  }
  KeepCode(fdes, elf.segments());
  ResolveOverlaps(fdes);
  std::vector<FunctionBounds> bounds;
  bounds.reserve(fdes.size());
  for (const Fde& fde : fdes) bounds.push_back({.begin = fde.from, .end = fde.end});
  return bounds;
}

}  // namespace pyrometer
