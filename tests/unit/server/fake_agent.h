// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "server/agent_view.h"
#include "tests/shared/eventually.h"

namespace pyrometer {

// An agent whose answers the test chooses. A profile takes until the test or its stop ends it.
class FakeAgent : public AgentView {
 public:
  std::vector<Metric> Metrics() override { return metrics; }
  AgentStatus Status() override { return status; }
  std::vector<std::string> WhyNotHealthy() override { return not_healthy; }
  std::vector<std::string> WhyNotReady() override { return not_ready; }
  Result<std::string> FlameGraph(const ProfileQuery& query) override {
    return "<!DOCTYPE html><title>flames of " + std::to_string(query.duration.count()) + " s of " +
           InWords(query) + "</title>";
  }
  Result<std::string> Explain(Pid pid) override {
    if (pid.value() == 404) return Fail(ErrorCode::kNotFound, "there is no process 404");
    if (pid.value() == 503) return Fail(ErrorCode::kExhausted, "too many ask");
    return "process " + std::to_string(pid.value()) + "\n  pod \"<b>\"\n";
  }

  Result<std::string> CollectProfile(const ProfileQuery& query,
                                     const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    queries_.push_back(query);
    changed_.notify_all();
    changed_.wait(lock, stop, [this] { return !held_; });
    ++(stop.stop_requested() ? stopped_ : finished_);
    changed_.notify_all();
    if (fail_profiles) return Fail(ErrorCode::kExhausted, "no room for this profile");
    return profile;
  }

  // Profiles wait until Release().
  void HoldProfiles() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  // Wait for that many in all; false after a minute.
  bool AwaitStarted(size_t count) {
    return Await([this, count] { return queries_.size() >= count; });
  }
  bool AwaitStopped(size_t count) {
    return Await([this, count] { return stopped_ >= count; });
  }

  std::vector<ProfileQuery> queries() {
    const std::lock_guard lock(mutex_);
    return queries_;
  }

  // Set before anything is asked.
  std::vector<Metric> metrics;
  AgentStatus status;
  std::vector<std::string> not_healthy;
  std::vector<std::string> not_ready;
  bool fail_profiles = false;
  std::string profile{"\x1f\x8b made up \0 bytes", 17};

 private:
  template <typename Condition>
  bool Await(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestPatience, condition);
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool held_ = false;
  std::vector<ProfileQuery> queries_;
  size_t stopped_ = 0;
  size_t finished_ = 0;
};

}  // namespace pyrometer
