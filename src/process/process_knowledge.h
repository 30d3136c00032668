// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/unique_fd.h"
#include "process/object_info.h"
#include "process/process_counters.h"
#include "process/program_mappings.h"
#include "process/resolved_window.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

class ProcessKnowledge {
 public:
  virtual ~ProcessKnowledge() = default;
  virtual ResolvedWindow Resolve(Window window) = 0;
  virtual std::optional<ProgramMappings> MappingsAt(const ProcessKey& process, ExecId exec,
                                                    MonotonicTime when) = 0;
  virtual void Recheck(const ProcessKey& process) = 0;
  virtual std::optional<ObjectInfo> Object(ObjectId id) const = 0;
  virtual Result<UniqueFd> OpenObject(ObjectId id) = 0;
  virtual Result<UniqueFd> OpenRootOf(ObjectId id) = 0;
  virtual ProcessCounters counters() const = 0;
};

}  // namespace pyrometer
