// SPDX-License-Identifier: Apache-2.0
// A busy machine's window, made up: distinct stacks of a few processes, with the functions that
// their frames lie in. The same in every run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "process/process_table.h"
#include "pyrometer/profile.h"
#include "pyrometer/sample.h"
#include "symbolize/symbol_table.h"

namespace pyrometer::bench {

struct MadeUp {
  static constexpr uint32_t kProcesses = 50;
  static constexpr uint32_t kObjects = 20;       // each process has them all mapped
  static constexpr uint32_t kFunctions = 2'000;  // in each object
  static constexpr uint32_t kUserFrames = 25;
  static constexpr uint32_t kKernelFrames = 5;  // in every fourth stack
};

// Of shop::Service7::Handle123(std::string const&), say.
std::string MangledName(uint32_t object, uint32_t function);

// The functions of each object.
SymbolTable MakeSymbolTable(ObjectId object);

// The processes and where they have the objects mapped.
ProcessTable MakeProcesses();

enum class UserFrames { kAddresses, kNormalized };

// `stacks` distinct stacks, one sample each. `seed`: another one, other stacks.
Window MakeWindow(size_t stacks, UserFrames frames, uint32_t seed);

// The same with a location for each frame, as the symbolizer hands it on. `locations` as
// MakeLocations returns them.
std::vector<LocationRef> MakeLocations();
NamedWindow MakeNamedWindow(size_t stacks, const std::vector<LocationRef>& locations,
                            uint32_t seed);

}  // namespace pyrometer::bench
