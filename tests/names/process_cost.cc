// SPDX-License-Identifier: Apache-2.0
#include "tests/names/process_cost.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace pyrometer {
namespace {

std::string Proc(const std::string& process, const std::string& name) {
  return "/proc/" + process + "/" + name;
}

// "VmHWM:     1234 kB"
uint64_t BytesIn(const std::string& status, const std::string& field) {
  const size_t at = status.find(field + ":");
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + field.size() + 1)) * 1024;
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

// Nanoseconds of its threads, which must not end meanwhile.
uint64_t CpuTimeOf(const std::string& process) {
  uint64_t all = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(Proc(process, "task"), error)) {
    uint64_t cpu = 0;
    std::istringstream(TextOf(thread.path() / "schedstat")) >> cpu;
    all += cpu;
  }
  return all;
}

ProcessCost CostOf(const std::string& process) {
  const std::string status = TextOf(Proc(process, "status"));
  return {.resident = BytesIn(status, "VmRSS"),
          .peak = BytesIn(status, "VmHWM"),
          .cpu = CpuTimeOf(process)};
}

std::vector<std::string> ChildrenOf(const std::string& process) {
  std::istringstream text(TextOf(Proc(process, "task/" + process + "/children")));
  std::vector<std::string> children;
  for (std::string child; text >> child;) children.push_back(child);
  return children;
}

}  // namespace

ProcessCost CostOfThisProcess() {
  return CostOf("self");
}

void ForgetPeakOfThisProcess() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

ProcessCost CostOfReaders() {
  ProcessCost most;
  for (const std::string& nursery : ChildrenOf(std::to_string(::getpid()))) {
    for (const std::string& reader : ChildrenOf(nursery)) {
      const ProcessCost cost = CostOf(reader);
      most = {.resident = std::max(most.resident, cost.resident),
              .peak = std::max(most.peak, cost.peak),
              .cpu = std::max(most.cpu, cost.cpu)};
    }
  }
  return most;
}

}  // namespace pyrometer
