// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "debuginfo/dwarf_file.h"
#include "debuginfo/source_sink.h"

namespace pyrometer {

// Names of functions. A function that was inlined or copied, and a member function, has its name
// where it was declared, maybe in another unit or file; what is referred to is looked up once.
class DwarfNames {
 public:
  // All must outlive this.
  DwarfNames(DwarfFile& file, SourceSink& sink);

  // The name of the function that `die` of `unit` is about: that of its symbol if the compiler
  // tells it, else that in the source. `bytes`: of the unit.
  SourceSink::Text Of(const DwarfUnit& unit, std::span<const std::byte> bytes, const DwarfDie& die);

 private:
  struct Name {
    SourceSink::Text text = SourceSink::kUnknown;
    bool is_of_symbol = false;
  };
  struct Place {
    const DwarfUnit& unit;
    std::span<const std::byte> bytes;  // of the unit; empty: to be read entry by entry
  };

  Name NameOf(const Place& place, const DwarfDie& die, int depth);
  Name NameAt(const Place& place, const DwarfValue& reference, int depth);
  Name NameIn(const Place& place, uint64_t offset, int depth);
  Name OfSupplement(uint64_t offset, int depth);
  Name Read(const Place& place, uint64_t offset, int depth);

  DwarfFile& file_;
  SourceSink& sink_;
  std::unique_ptr<DwarfNames> supplement_;     // names of file_'s supplement
  absl::flat_hash_map<uint64_t, Name> known_;  // by the offset of the entry
};

}  // namespace pyrometer
