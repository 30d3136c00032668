// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "process/object_info.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
#include "pyrometer/mapping.h"
#include "pyrometer/sample.h"

namespace pyrometer {

// A process when first seen as what it runs.
struct SeenProcess {
  ProcessKey key;
  std::string_view comm;
  // Where its cgroup and environment can be read while it lives; null if already gone or
  // unreadable.
  const ProcessDirectory* directory = nullptr;
  // Its labels so far: at first its parent's at the fork; null also if the parent is unknown.
  LabelSet inherited;
};

// Is told of processes and what they map while they live, for example to label them or to find
// their runtime. Called with the tracker's lock held, on its thread or a caller's, one call at a
// time: it must not wait for anything but files of /proc, nor call the tracker back.
class ProcessObserver {
 public:
  virtual ~ProcessObserver() = default;

  // Called once for each program of a process, before a sample of it is resolved; for parents
  // before their children. A process that execs right after its fork is usually seen after the
  // exec. The labels returned are on all its samples from then on, also after its end, until it is
  // seen again or ProcessKnowledge::ReplaceLabels() does.
  virtual LabelSet OnProcess(const SeenProcess& process) = 0;

  // The labels of a sample whose process is not known: of the idle task, pid 0, which is
  // interrupted on an idle CPU, or of a process that is tracked no further. `comm` is what the
  // kernel said.
  virtual LabelSet OfUnknown(Pid /*pid*/, std::string_view /*comm*/) { return nullptr; }

  // Called once for each window, when all its samples have the labels of their processes: may give
  // them others, and remove samples, which then count as filtered in the window's accounting.
  virtual void OnSamples(std::vector<Sample>& /*samples*/) {}

  // Called when a living process has `object` mapped executable for the first time since its fork
  // or exec, after OnProcess(). `mapping` is the part at the lowest address. Mappings that existed
  // for less than 0.1 s may be left out.
  virtual void OnMapping(const ProcessKey& process, const ObjectMapping& mapping,
                         const ObjectInfo& object) = 0;
};

}  // namespace pyrometer
