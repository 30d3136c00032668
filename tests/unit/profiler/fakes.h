// SPDX-License-Identifier: Apache-2.0
// A machine made of values, for tests of the engine: nothing of it waits or needs privileges.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "process/process_knowledge.h"
#include "profiler/cold_view.h"
#include "profiler/window_consumer.h"
#include "sampler/faces.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"

namespace pyrometer {

// One sample of `count` ticks with one frame.
inline Window WindowOf(uint64_t count) {
  Window window;
  window.frequency = Hertz{99};
  if (count == 0) return window;
  window.frames = {Frame::Kernel(KernelAddress(0xffffffff81000000))};
  window.stacks = {
      {.first_frame = 0, .kernel_frames = 1, .user_frames = 0, .end = StackEnd::kNoUserStack}};
  window.samples.push_back({.process = {Pid(7), StartTime(1)},
                            .exec = ExecId(1),
                            .comm = "busy",
                            .thread = "busy",
                            .stack = 0,
                            .count = count,
                            .first_seen = MonotonicTime(1),
                            .last_seen = MonotonicTime(1)});
  window.accounting.exported = count;
  return window;
}

inline uint64_t SamplesOf(const Window& window) {
  uint64_t samples = 0;
  for (const Sample& sample : window.samples) samples += sample.count;
  return samples;
}

// Hands out what was ticked since the last time. Thread-safe.
class FakeWindows : public WindowSource {
 public:
  void Tick(uint64_t count) {
    const std::lock_guard lock(mutex_);
    waiting_ += count;
    total_ += count;
  }

  Result<void> Start() override { return {}; }
  Result<void> FollowCpus() override {
    ++cpu_looks;
    if (fail_cpu_looks > 0) {
      --fail_cpu_looks;
      return Fail(ErrorCode::kIo, "no list of CPUs");
    }
    return {};
  }
  void Stop() override { stopped = true; }
  bool NearlyFull() const override { return nearly_full; }
  std::chrono::nanoseconds TimeUntilNearlyFull() const override { return until_full; }
  Result<void> Prepare(const SamplingChange& change) override {
    if (refuse_changes) return Fail(ErrorCode::kUnsupported, "the kernel refuses");
    prepared = change;
    return {};
  }
  Result<Window> Drain() override {
    const std::lock_guard lock(mutex_);
    ++drains;
    if (fail_drains > 0) {
      --fail_drains;
      if (on_failed_drain) on_failed_drain();
      return Fail(ErrorCode::kIo, "no memory");
    }
    Window window = WindowOf(std::exchange(waiting_, 0));
    window.frequency = frequency;
    window.begin = MonotonicTime(static_cast<uint64_t>(drains));  // later than what was before
    window.end = MonotonicTime(UINT64_MAX);
    if (prepared.frequency) frequency = *prepared.frequency;
    prepared = {};
    nearly_full = leftover = false;
    return window;
  }
  bool HasLeftover() const override { return leftover; }
  Result<void> Deny(uint64_t cgroup) override {
    denied.push_back(cgroup);
    return {};
  }
  void Allow(uint64_t cgroup) override { std::erase(denied, cgroup); }
  bool AnyWantedPid() const override { return true; }
  void ForgetWantedPid(Pid /*pid*/) override {}
  Result<void> WantCgroup(uint64_t /*cgroup*/) override { return {}; }
  Accounting accounting() const override {
    const std::lock_guard lock(mutex_);
    Accounting all;
    all.exported = total_;
    return all;
  }

  int drains = 0;
  int cpu_looks = 0;
  int fail_drains = 0;
  int fail_cpu_looks = 0;
  bool stopped = false;
  bool nearly_full = false;
  bool refuse_changes = false;
  bool leftover = false;
  std::chrono::nanoseconds until_full{std::chrono::hours(1)};
  Hertz frequency{99};
  SamplingChange prepared;
  std::function<void()> on_failed_drain;
  std::vector<uint64_t> denied;

 private:
  mutable std::mutex mutex_;
  uint64_t waiting_ = 0;
  uint64_t total_ = 0;
};

class FakeTableTarget : public TableTarget {
 public:
  std::vector<ObjectId> TakeWanted() override { return std::exchange(wanted, {}); }
  bool Load(ObjectId object, const UnwindTable& /*table*/) override {
    loaded.push_back(object);
    if (on_load) on_load(object);
    return is_needed;
  }
  void Need(ObjectId object, ElfAddress address) override { needed.emplace(object, address); }
  // Until woken, however long that takes.
  void Wait(std::chrono::milliseconds /*most*/) override {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return woken_; });
    woken_ = false;
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = was_woken_ = true;
    changed_.notify_all();
  }
  void AwaitWaiting() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_; });
  }
  bool was_woken() {
    const std::lock_guard lock(mutex_);
    return was_woken_;
  }

  std::vector<ObjectId> wanted;
  std::vector<ObjectId> loaded;
  bool is_needed = true;
  std::set<std::pair<ObjectId, ElfAddress>> needed;  // of a thread that has ended
  std::function<void(ObjectId)> on_load;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;
  bool woken_ = false;
  bool was_woken_ = false;
};

class FakeCold : public ColdSource {
 public:
  void Ship(ColdSample sample) {
    const std::lock_guard lock(mutex_);
    shipped_.push_back(std::move(sample));
    changed_.notify_all();
  }
  std::vector<ColdSample> Take() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(shipped_, {});
  }
  void Wait(std::chrono::milliseconds most) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most,
                      [this] { return std::exchange(woken_, false) || !shipped_.empty(); });
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return shipped_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ColdSample> shipped_;
  bool woken_ = false;
};

// Knows the mappings it was given, of whatever process.
class FakeProcesses : public ProcessKnowledge {
 public:
  ResolvedWindow Resolve(Window window) override {
    if (on_resolve) on_resolve();
    ResolvedWindow resolved;
    resolved.window = std::move(window);
    resolved.kernel_events = std::exchange(kernel_events, {});
    return resolved;
  }
  std::optional<ProgramMappings> MappingsAt(const ProcessKey& /*process*/, ExecId /*exec*/,
                                            MonotonicTime /*when*/) override {
    return program;
  }
  void Recheck(const ProcessKey& /*process*/) override {
    ++rechecks;
    if (on_recheck) on_recheck();
  }
  std::optional<ObjectInfo> Object(ObjectId /*id*/) const override { return std::nullopt; }
  Result<UniqueFd> OpenObject(ObjectId /*id*/) override {
    return Fail(ErrorCode::kNotFound, "no files here");
  }
  std::vector<SampledObject> TakeSampled() override { return std::exchange(sampled, {}); }
  Result<UniqueFd> OpenRootOf(ObjectId /*id*/) override {
    return Fail(ErrorCode::kNotFound, "no files here");
  }
  void ShowAgain() override { ++shown_again; }
  void ReplaceLabels(const ProcessKey& /*process*/, const LabelSet& /*of*/,
                     LabelSet /*by*/) override {}
  ProcessCounters counters() const override { return {}; }

  int shown_again = 0;
  std::optional<ProgramMappings> program;
  std::vector<KernelSymbolEvent> kernel_events;
  std::vector<SampledObject> sampled;
  int rechecks = 0;
  std::function<void()> on_recheck;
  std::function<void()> on_resolve;
};

// Empty tables; `on_make` may take its time. No table while it is `pending`.
class FakeTables : public UnwindTableSource {
 public:
  std::shared_ptr<const UnwindTable> Of(ObjectId object) override {
    ++asked;
    if (pending.contains(object)) return nullptr;
    if (on_make) on_make(object);
    at_hand.insert(object);
    auto table = std::make_shared<UnwindTable>();
    table->unread = failing.contains(object);
    return table;
  }
  bool Has(ObjectId object) const override { return at_hand.contains(object); }
  bool IsPending(ObjectId object) const override { return pending.contains(object); }
  Code ReadCode(ObjectId /*object*/, ElfAddress /*address*/, std::span<std::byte>) override {
    return Code::kNone;
  }
  void CloseFile() override {}

  int asked = 0;
  std::set<ObjectId> at_hand;
  std::set<ObjectId> pending;
  std::set<ObjectId> failing;
  std::function<void(ObjectId)> on_make;
};

// Keeps what it gets, and can be held up.
class FakeConsumer : public WindowConsumer {
 public:
  struct Got {
    uint64_t samples = 0;
    uint64_t missed = 0;
    uint32_t frequency = 0;
    bool ends_period = false;
    bool operator==(const Got&) const = default;
  };

  void Consume(const Delivery& delivery) override {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    got_.push_back({.samples = SamplesOf(delivery.window->window),
                    .missed = delivery.missed.lost[Accounting::kWindowDropped],
                    .frequency = delivery.window->window.frequency.value,
                    .ends_period = delivery.ends_period});
    changed_.notify_all();
  }

  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // What has come; waits until it is `count` windows, or too long.
  std::vector<Got> Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTestPatience, [&] { return got_.size() >= count; });
    return got_;
  }
  // Until it is at its `count`th window, perhaps held up there.
  bool AwaitBegun(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestPatience, [&] { return begun_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Got> got_;
  size_t begun_ = 0;
  bool held_ = false;
};

}  // namespace pyrometer
