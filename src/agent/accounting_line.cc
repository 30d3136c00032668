// SPDX-License-Identifier: Apache-2.0
#include "agent/accounting_line.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace pyrometer {
namespace {

std::string LostReasons(const Accounting& accounting) {
  std::string reasons;
  for (size_t i = 0; i < accounting.lost.size(); ++i) {
    if (accounting.lost[i] == 0) continue;
    fmt::format_to(std::back_inserter(reasons), "{}{}={}", reasons.empty() ? " (" : " ",
                   Name(static_cast<Accounting::Lost>(i)), accounting.lost[i]);
  }
  return reasons.empty() ? reasons : reasons + ")";
}

}  // namespace

std::string AccountingLine(const Accounting& accounting, const Profile& profile) {
  absl::flat_hash_set<ProcessKey> processes;
  absl::flat_hash_set<std::pair<std::vector<uint32_t>, StackEnd>> stacks;
  uint64_t truncated = 0;
  for (const ProfileSample& sample : profile.samples) {
    processes.insert(sample.process);
    stacks.emplace(sample.stack, sample.end);
    if (IsCut(sample.end)) truncated += sample.count;
  }
  return fmt::format(
      "samples={} idle={} filtered={} lost={}{} undelivered={} processes={} stacks={} truncated={}",
      accounting.exported, accounting.idle, accounting.filtered, accounting.TotalLost(),
      LostReasons(accounting), accounting.undelivered, processes.size(), stacks.size(), truncated);
}

}  // namespace pyrometer
