// SPDX-License-Identifier: Apache-2.0
// /proc/PID/stat, statm, task/TID/children: proc(5).
#include "agent/own_cost.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {
namespace {

// utime and stime, counted behind the name, which may contain anything.
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;
constexpr size_t kFields = 17;
constexpr int kMostGenerations = 4;

uint64_t Number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string_view> FieldsBehindName(std::string_view stat) {
  const size_t end = stat.rfind(')');
  if (end == std::string_view::npos || end + 2 > stat.size()) return {};
  return Split(Trim(stat.substr(end + 2)), ' ');
}

std::vector<Pid> ChildrenOf(const Procfs& procfs, Pid pid) {
  std::vector<Pid> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(procfs.Of(pid, "task"), error)) {
    const Result<std::string> list = ReadFile(task.path() / "children");
    if (!list) continue;
    for (const std::string_view child : Split(Trim(*list), ' ')) {
      if (!child.empty()) children.emplace_back(static_cast<uint32_t>(Number(child)));
    }
  }
  return children;
}

void AddProcess(const Procfs& procfs, Pid pid, OwnUse& use) {
  const std::chrono::nanoseconds tick(1'000'000'000 / std::max<long>(::sysconf(_SC_CLK_TCK), 1));
  if (const Result<std::string> stat = ReadFile(procfs.Of(pid, "stat"))) {
    const std::vector<std::string_view> fields = FieldsBehindName(*stat);
    if (fields.size() > kFields) {
      use.cpu += tick * static_cast<int64_t>(Number(fields[kUserTicks]));
      use.cpu += tick * static_cast<int64_t>(Number(fields[kSystemTicks]));
    }
  }
  if (const Result<std::string> statm = ReadFile(procfs.Of(pid, "statm"))) {
    const std::vector<std::string_view> pages = Split(Trim(*statm), ' ');
    if (pages.size() > 1) {
      use.resident_bytes += Number(pages[1]) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    }
  }
}

void AddTree(const Procfs& procfs, Pid pid, int generations, OwnUse& use) {
  AddProcess(procfs, pid, use);
  if (generations == 0) return;
  for (const Pid child : ChildrenOf(procfs, pid)) AddTree(procfs, child, generations - 1, use);
}

// What the kernel charges for BPF objects: the line "memlock:\t4096" in fdinfo.
uint64_t KernelBytes(const Procfs& procfs, Pid pid) {
  constexpr std::string_view kLine = "memlock:";
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(procfs.Of(pid, "fdinfo"), error)) {
    const Result<std::string> facts = ReadFile(entry.path());
    if (!facts) continue;
    for (const std::string_view line : Split(*facts, '\n')) {
      if (line.starts_with(kLine)) bytes += Number(Trim(line.substr(kLine.size())));
    }
  }
  return bytes;
}

uint64_t EntriesOf(const std::string& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(directory, error);
  if (error) return 0;
  return static_cast<uint64_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

OwnUse MeasureOwnUse(const Procfs& procfs, Pid self) {
  OwnUse use;
  AddTree(procfs, self, kMostGenerations, use);
  use.kernel_bytes = KernelBytes(procfs, self);
  use.open_files = EntriesOf(procfs.Of(self, "fd"));
  use.threads = EntriesOf(procfs.Of(self, "task"));
  return use;
}

double CpuShare(const OwnUse& before, const OwnUse& now, std::chrono::nanoseconds passed) {
  if (passed.count() <= 0) return 0;
  constexpr std::chrono::nanoseconds kNone(0);
  const auto used =
      std::max(now.cpu - before.cpu, kNone) + std::max(now.ticks - before.ticks, kNone);
  return static_cast<double>(used.count()) / static_cast<double>(passed.count());
}

}  // namespace pyrometer
