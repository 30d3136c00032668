// SPDX-License-Identifier: Apache-2.0
#include "process/proc_text.h"

#include "process/text_fields.h"

namespace pyrometer {
namespace {

constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h

}  // namespace

Result<ProcStat> ParseProcStat(std::string_view stat) {
  // The name is whatever the process likes, parentheses and newlines included; no field after it
  // can hold a parenthesis.
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 > stat.size()) {
    return Fail(ErrorCode::kMalformed, "not a stat file of a process");
  }
  ProcStat result;
  result.comm = stat.substr(open + 1, close - open - 1);
  TextFields fields(stat.substr(close + 2));
  const std::string_view state = fields.Next();  // field 3
  if (!state.empty()) result.state = state[0];
  for (int skipped = 4; skipped < 9; ++skipped) fields.Next();
  uint64_t flags = 0;
  bool ok = ParseNumber(fields.Next(), flags);
  for (int skipped = 10; skipped < 22; ++skipped) fields.Next();
  uint64_t start = 0;
  ok = ok && ParseNumber(fields.Next(), start);
  if (!ok) return Fail(ErrorCode::kMalformed, "no start time in the stat file of a process");
  result.kernel_thread = flags & kKernelThread;
  result.start = StartTime(start);
  for (int skipped = 23; skipped < 26; ++skipped) fields.Next();
  uint64_t code = 0;
  if (ParseNumber(fields.Next(), code)) result.code = Address(code);
  return result;
}

Result<ProcStatus> ParseProcStatus(std::string_view status) {
  ProcStatus result;
  bool has_pid = false;
  bool has_owner = false;
  TextFields lines(status);
  while (!lines.rest().empty()) {
    const std::string_view line = lines.Next('\n');
    // "NSpid:" lists a pid for each namespace, outermost first; "Uid:" has the real, effective,
    // saved and file system user id. Name: comes before them, with newlines escaped.
    const std::string_view last = line.substr(line.find_last_of("\t ") + 1);
    uint32_t value = 0;
    if (line.starts_with("NSpid:") && ParseNumber(last, value)) {
      result.namespace_pid = Pid(value);
      has_pid = true;
    } else if (line.starts_with("Uid:") && ParseNumber(last, value)) {
      result.owner = value;
      TextFields users(line.substr(line.find('\t') + 1));
      has_owner = ParseNumber(users.Next('\t'), result.user);
    }
  }
  if (!has_pid || !has_owner) return Fail(ErrorCode::kMalformed, "not the status of a process");
  return result;
}

}  // namespace pyrometer
