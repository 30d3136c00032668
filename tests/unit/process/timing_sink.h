// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "process/address_space_sink.h"

namespace pyrometer {

// Notes when each pid was first published.
class TimingSink : public AddressSpaceSink {
 public:
  struct Seen {
    ProcessKey process;
    ExecId exec;
    MonotonicTime first;
    ExecPages exec_pages;
    std::vector<PublishedMapping> mappings;
    bool withdrawn = false;
  };

  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> sorted) override {
    const std::lock_guard lock(mutex_);
    Seen& seen = seen_[process.pid];
    if (seen.process != process || seen.exec != exec)
      seen = {process, exec, MonotonicNow(), {}, {}};
    seen.exec_pages = exec_pages;
    seen.mappings.assign(sorted.begin(), sorted.end());
    seen.withdrawn = false;
    return true;
  }
  void Withdraw(Pid pid) override {
    const std::lock_guard lock(mutex_);
    seen_[pid].withdrawn = true;
  }
  void ReleaseWithdrawn() override {}
  void Sweep(std::span<const Pid>) override {}
  std::vector<Pid> TakeMissed() override { return {}; }

  std::vector<Pid> Published() {
    const std::lock_guard lock(mutex_);
    std::vector<Pid> pids;
    for (const auto& [pid, seen] : seen_) {
      if (!seen.withdrawn && !seen.mappings.empty()) pids.push_back(pid);
    }
    return pids;
  }

  // Until it is destroyed, whoever publishes waits.
  std::unique_lock<std::mutex> Block() { return std::unique_lock(mutex_); }

  Seen Of(Pid pid) {
    const std::lock_guard lock(mutex_);
    return seen_[pid];
  }

 private:
  std::mutex mutex_;
  std::map<Pid, Seen> seen_;
};

}  // namespace pyrometer
