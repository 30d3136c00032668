// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/labels.h"
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

// Is told of processes while they live, to label them. Called without the tracker's lock, on its
// thread or on that of who resolves a window, one call at a time; windows wait for it, and what it
// calls the tracker for may wait for windows.
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
};

}  // namespace pyrometer
