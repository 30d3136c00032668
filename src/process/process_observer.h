// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "process/object_info.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// A process at first sight of what it runs.
struct SeenProcess {
  ProcessKey key;
  std::string_view comm;
  // Where its cgroup and environment can be read while it lives; null: gone or unreadable already.
  const ProcessDirectory* directory = nullptr;
  // Its labels so far: at first its parent's at the fork, null also if the parent is not known.
  LabelSet inherited;
};

// Who wants to know of processes and of what they map while they live: where their labels come
// from, or which runtime they have. Called with the tracker's lock held, on its thread or on that
// of whoever asks it, one call at a time: must not wait for anything but a file of /proc, nor call
// the tracker back.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;

  // Once for each program of a process, before a sample of it is resolved; parents before their
  // children. A process that execs right after its fork is usually seen only as what it has become.
  // The labels returned are on all its samples from then on, also after its end, until it is seen
  // again or ProcessTracker::SetLabels() replaces them.
  virtual LabelSet OnProcess(const SeenProcess& process) = 0;

  // A living process has `object` mapped executable for the first time since its fork or exec.
  // `mapping` is the part of it at the lowest address; what came and went within milliseconds may
  // be left out. After OnProcess().
  virtual void OnMapping(const ProcessKey& process, const ObjectMapping& mapping,
                         const ObjectInfo& object) = 0;
};

}  // namespace pyrometer
