// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "binary/dwarf/entry.h"
#include "binary/dwarf/unit_source.h"
#include "binary/dwarf_functions.h"

namespace pyrometer {

// Tells in which scopes an entry of any unit is. No entry says it: this goes through those before
// it in its unit, and on from there if the next one asked for lies behind. Holds the scopes that it
// is in and no bytes of the unit. One thread.
class DwarfScopeWalk {
 public:
  struct Found {
    DwarfName name{};                  // the entry's own
    std::vector<DwarfScope> around{};  // innermost first
  };

  // `units` must outlive this.
  explicit DwarfScopeWalk(DwarfUnits& units) : units_(units) {}

  // In ascending order it costs least. Nothing if no entry begins there, or what lies before it is
  // damaged.
  std::optional<Found> Find(uint64_t entry);

 private:
  bool GoTo(uint64_t entry);
  bool Step(uint64_t towards);

  DwarfUnits& units_;
  std::shared_ptr<const DwarfUnitContext> context_;
  // All entries before `last_` were passed, and none begins between it and `next_`.
  uint64_t last_ = 0;
  uint64_t next_ = 0;
  std::vector<std::optional<DwarfScope>> open_;  // entries around `next_`, and what scopes they are
};

}  // namespace pyrometer
