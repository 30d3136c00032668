// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "process/proc_maps.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// One process as /proc shows it. Not a snapshot: reading began at `read_at`, and each part may be
// later.
struct ScannedProcess {
  ProcessKey key;
  MonotonicTime read_at;
  std::string comm;
  bool kernel_thread = false;
  std::vector<Tid> threads;
  std::optional<ProcMaps> maps;  // nothing: unreadable now
};

// Errors: kNotFound if it vanished meanwhile or is a zombie; any other: it lives and cannot be read
// now.
Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid);

// Reads every process of `procfs`, ascending, and passes each to `visit` while its directory is
// open. Processes that vanish meanwhile are left out. Returns those that live but could not be
// read. Errors: those of the listing itself.
using ScanVisitor = std::function<void(ScannedProcess process, const ProcessDirectory& directory)>;
Result<std::vector<Pid>> ScanProcesses(const Procfs& procfs, const ScanVisitor& visit);

}  // namespace pyrometer
