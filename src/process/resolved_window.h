// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <memory>
#include <vector>

#include "process/jit_dump_file.h"
#include "process/object_info.h"
#include "process/perf_map_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/kernel_symbol_event.h"
#include "pyrometer/sample.h"

namespace pyrometer {

struct ObjectRef {
  std::shared_ptr<const ObjectInfo> info;  // never null
  ObjectFile file;                         // null: gone, never opened, or the vDSO
};

struct SampledObject {
  ObjectId id;
  ObjectRef object;  // with a file
};

// A window with object frames and everything needed to name them, so that naming asks nobody,
// however late it runs. Holds files open.
struct ResolvedWindow {
  Window window;
  // Every object that a frame of `window` lies in.
  absl::flat_hash_map<ObjectId, ObjectRef> objects;
  // Of the processes that own stacks of `window` (Stack::process), where known.
  absl::flat_hash_map<ProcessKey, std::shared_ptr<const PerfMapDirectory>> perf_maps;
  // Of these processes those whose code they have too, as they were forked by them, or by whom they
  // were forked by; the nearest first. What is known of their perf maps is above.
  absl::flat_hash_map<ProcessKey, std::vector<ProcessKey>> inherited;
  // Likewise, the latest first.
  absl::flat_hash_map<ProcessKey, std::vector<JitDumpUse>> jit_dumps;
  // Those processes that are known to have ended: their perf maps will not change any more.
  absl::flat_hash_set<ProcessKey> ended;
  // Changes of the kernel's own code since the window before, until the end of this one, in order.
  std::vector<KernelSymbolEvent> kernel_events;
  // Objects that no remembered process has mapped, and whose files have been closed: what others
  // keep for them may go. They may be mapped again.
  std::vector<ObjectId> unused;
};

}  // namespace pyrometer
