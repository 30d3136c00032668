// SPDX-License-Identifier: Apache-2.0
// The part of ProcessHistory that bounds what one program may cost.
#include <fmt/format.h>

#include "base/printable.h"
#include "process/process_history.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxNotices = 16;

}  // namespace

void ProcessHistory::NoteRead(Process& process, const ProcMaps& maps,
                              const std::vector<CodeMapping>& code) {
  if (!maps.complete || code.size() >= kMaxProgramMappings) {
    NoteOverBudget(process);
    return;
  }
  process.program().complete = true;
  process.program().over_budget = false;
}

void ProcessHistory::NoteOverBudget(Process& process) {
  Program& program = process.program();
  program.complete = false;
  if (program.over_budget) return;
  program.over_budget = true;
  changed_.insert(process.key.pid);
  ++counters_.programs_over_budget;
  if (notices_.size() >= kMaxNotices) return;
  notices_.push_back(
      {"keeping up with all that is mapped executable",
       fmt::format("process {} ({}) has more than a program may: its frames stay "
                   "addresses where that is unknown; see /proc/{}/maps",
                   process.key.pid.value(), Printable(program.comm), process.key.pid.value())});
}

// The file is not even looked for, but what was there has gone.
void ProcessHistory::PassOver(Process& process, const MappingEvent& event) {
  ++counters_.mappings_passed_over;
  NoteOverBudget(process);
  const auto& [start, end] = std::pair(event.range.start, event.range.end);
  if (process.program().space.Forget(start, end, event.when)) changed_.insert(event.pid);
}

}  // namespace pyrometer
