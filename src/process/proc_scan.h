// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/procfs.h"
#include "process/proc_text.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// One process as /proc shows it. Not one moment's picture: each part may be later than `read_at`,
// which is when reading began.
struct ScannedProcess {
  ProcessKey key;
  MonotonicTime read_at;
  std::string comm;
  bool kernel_thread = false;
  std::vector<Tid> threads;
  std::vector<ProcMapping> mappings;
};

// Errors: kNotFound if it vanished meanwhile or has ended and only waits for its parent.
Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid);

// Reads every process of `procfs`, ascending, and hands each on while its directory is open.
// Processes that vanish meanwhile are left out. Errors: kIo, kPermission for the listing itself.
using ScanVisitor = std::function<void(ScannedProcess process, const ProcessDirectory& directory)>;
Result<void> ScanProcesses(const Procfs& procfs, const ScanVisitor& visit);

}  // namespace pyrometer
