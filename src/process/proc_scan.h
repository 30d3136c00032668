// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/procfs.h"
#include "process/proc_maps.h"
#include "process/proc_reader.h"
#include "process/process_directory.h"
#include "process/user_share.h"
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
  UserId user = kUnknownUser;
  std::optional<RootIdentity> root;  // nothing: it could not be read
  std::vector<Tid> threads;
  std::optional<ProcMaps> maps;  // nothing: unreadable now
  bool is_awaited = false;       // or they come later, see ProcReader
};

// Errors: kNotFound if it vanished meanwhile or is a zombie; any other: it lives and cannot be read
// now.
Result<ScannedProcess> ScanProcess(const ProcessDirectory& directory, Pid pid, ProcReader& reader,
                                   const Clock& clock);

// Every process of `procfs`, ascending. Errors: those of the listing.
Result<std::vector<Pid>> ListProcesses(const Procfs& procfs);

}  // namespace pyrometer
