// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
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
  std::optional<std::vector<ProcMapping>> mappings;  // nothing: they could not be read now
};

// Errors: kNotFound if it vanished meanwhile or has ended and only waits for its parent; any other:
// it lives and cannot be read now.
Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid);

// Reads every process of `procfs`, ascending, and hands each on while its directory is open.
// Processes that vanish meanwhile are left out. Returns those that live and could not be read.
// Errors: of the listing itself.
using ScanVisitor = std::function<void(ScannedProcess process, const ProcessDirectory& directory)>;
Result<std::vector<Pid>> ScanProcesses(const Procfs& procfs, const ScanVisitor& visit);

}  // namespace pyrometer
