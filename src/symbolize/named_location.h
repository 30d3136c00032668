// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pyrometer/profile.h"

namespace pyrometer {

// A line of a function whose name is the same in source and symbol table.
inline Line SameName(const std::string& name) {
  return {.function = name, .system_name = name, .file = {}};
}

// `lines` are not empty, and begin with the innermost.
inline LocationRef MakeLocation(CodeOrigin origin, std::shared_ptr<const CodeObject> object,
                                uint64_t address, std::vector<Line> lines,
                                NameQuality quality = NameQuality::kSymbol) {
  auto location = std::make_shared<Location>();
  location->origin = origin;
  location->object = std::move(object);
  location->address = address;
  location->lines = std::move(lines);
  location->quality = quality;
  return location;
}

inline LocationRef MakeLocation(CodeOrigin origin, std::shared_ptr<const CodeObject> object,
                                uint64_t address, const Line& line,
                                NameQuality quality = NameQuality::kSymbol) {
  return MakeLocation(origin, std::move(object), address, std::vector<Line>{line}, quality);
}

// For an address whose function is not known.
inline LocationRef MadeUpLocation(CodeOrigin origin, std::shared_ptr<const CodeObject> object,
                                  uint64_t address, const std::string& name) {
  return MakeLocation(origin, std::move(object), address, SameName(name), NameQuality::kMadeUp);
}

// For an address about which nothing is known.
inline LocationRef UnknownLocation(uint64_t address) {
  return MadeUpLocation(CodeOrigin::kUnknown, nullptr, address, "[unknown]");
}

}  // namespace pyrometer
