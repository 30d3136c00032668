// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "base/spilled_bytes.h"
#include "binary/elf_file.h"
#include "symbolize/source_map.h"
#include "symbolize/source_map_writer.h"
#include "tests/fuzz/fuzz_file.h"

namespace pyrometer {

// Makes the map of what a reader has told of `elf`, and looks some of its code up.
inline void RequireMap(SourceMapWriter writer, const ElfFile& elf) {
  const auto stored =
      std::make_shared<SpilledBytes>(SpilledBytes::Options{.most_in_memory = size_t{256} << 20});
  Require(std::move(writer).Write(*stored));
  const Result<SourceMap> map = SourceMap::From(stored);
  Require(map.has_value());
  for (const Segment& segment : elf.segments()) {
    for (uint64_t i = 0; i < 64; ++i) map->Find(ElfAddress(segment.address.value() + i * 61));
  }
}

}  // namespace pyrometer
