// SPDX-License-Identifier: Apache-2.0
#include "process/proc_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace pyrometer {
namespace {

constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h

// Takes fields off the front of a line that are parted by one delimiter each.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  std::string_view Next(char delimiter = ' ') {
    const size_t end = std::min(rest_.find(delimiter), rest_.size());
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return field;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

template <typename T>
bool ParseNumber(std::string_view text, T& value, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && next == end;
}

// The kernel escapes the newline in paths, and only that.
std::string UnescapeNewlines(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string plain;
  while (!path.empty()) {
    const size_t escape = std::min(path.find(kNewline), path.size());
    plain += path.substr(0, escape);
    path.remove_prefix(escape);
    if (path.empty()) break;
    plain += '\n';
    path.remove_prefix(kNewline.size());
  }
  return plain;
}

// "start-end perms offset major:minor inode      path"
std::optional<ProcMapping> ParseMapsLine(std::string_view line) {
  Fields fields(line);
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  ProcMapping mapping;
  bool ok = ParseNumber(fields.Next('-'), start, 16) && ParseNumber(fields.Next(), end, 16);
  const std::string_view permissions = fields.Next();
  ok = ok && ParseNumber(fields.Next(), offset, 16) &&
       ParseNumber(fields.Next(':'), mapping.file.major, 16) &&
       ParseNumber(fields.Next(), mapping.file.minor, 16) &&
       ParseNumber(fields.Next(), mapping.file.inode);
  if (!ok || end <= start || permissions.size() < 3 || permissions[2] != 'x') return std::nullopt;
  if (start >> 63) return std::nullopt;
  const size_t path = std::min(fields.rest().find_first_not_of(' '), fields.rest().size());
  mapping.file.path = UnescapeNewlines(fields.rest().substr(path));
  mapping.range = {Address(start), Address(end), FileOffset(offset), permissions[1] == 'w'};
  return mapping;
}

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
  Fields fields(stat.substr(close + 2));
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

std::vector<ProcMapping> ParseProcMaps(std::string_view maps) {
  std::vector<ProcMapping> mappings;
  Fields lines(maps);
  while (!lines.rest().empty()) {
    if (std::optional<ProcMapping> mapping = ParseMapsLine(lines.Next('\n'))) {
      mappings.push_back(*std::move(mapping));
    }
  }
  return mappings;
}

Result<ProcStatus> ParseProcStatus(std::string_view status) {
  ProcStatus result;
  bool has_pid = false;
  bool has_owner = false;
  Fields lines(status);
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
      has_owner = true;
    }
  }
  if (!has_pid || !has_owner) return Fail(ErrorCode::kMalformed, "not the status of a process");
  return result;
}

}  // namespace pyrometer
