// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/unique_fd.h"
#include "process/object_info.h"
#include "process/perf_map_directory.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/sample.h"

namespace pyrometer {

struct ObjectRef {
  std::shared_ptr<const ObjectInfo> info;
  std::shared_ptr<const UniqueFd> file;  // null: gone
};

struct ResolvedWindow {
  Window window;
  absl::flat_hash_map<ObjectId, ObjectRef> objects;
  absl::flat_hash_map<ProcessKey, std::shared_ptr<const PerfMapDirectory>> perf_maps;
  std::vector<KernelSymbolEvent> kernel_events;
};

}  // namespace pyrometer
