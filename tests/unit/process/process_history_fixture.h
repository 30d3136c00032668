// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "process/process_history.h"
#include "process/process_showing.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/process/fake_machine.h"
#include "tests/unit/process/one_frame_window.h"

namespace pyrometer {

// A machine with one process: pid 100, which has /lib/a mapped at kStart, file offset 0x1000.
class ProcessHistoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kStart = 0x7f00'0000'0000;
  static constexpr ProcessKey kKey{Pid(100), StartTime(5)};

  explicit ProcessHistoryTest(ProcessObserver* observer = nullptr,
                              const UserShares::Limits& remembered = {})
      : shown_to_(observer),
        history_({.clock = clock_,
                  .procfs = machine_.procfs(),
                  .remembered = remembered,
                  .observer = observer,
                  .inspections = kPatient,
                  .reader = kPatientReader},
                 inspector_, sink_) {
    machine_.WriteFile(machine_.root() + "/lib/a", "ELF a");
    machine_.WriteFile(machine_.root() + "/lib/b", "ELF b");
    machine_.AddProcess(
        100, 5, "7f0000000000-7f0000002000 r-xp 00001000 " + machine_.MapsTail("/lib/a") + "\n");
  }

  void Scan() {
    const TaskRecord task{Pid(100), Tid(100), StartTime(5), ExecId(3), clock_.Now()};
    ASSERT_TRUE(history_.Scan(std::span(&task, 1)).has_value());
    ShowAll();
  }
  // As the tracker does whenever it lets go of its lock.
  void ShowAll() {
    if (shown_to_ == nullptr) return;
    ShowUnseen(*shown_to_, UINT64_MAX, SIZE_MAX,
               [this](const auto& action) { return action(history_); });
  }

  // Events happen in this order, after everything before, and no time passes but for them.
  MonotonicTime Now() {
    clock_.Advance(std::chrono::nanoseconds(1));
    last_ = clock_.Now();
    clock_.Advance(std::chrono::nanoseconds(1));
    return last_;
  }
  void Apply(ProcessEvent event) {
    history_.Apply(std::span(&event, 1));
    ShowAll();
  }
  void Fork(uint32_t parent, uint32_t pid) {
    Apply(ForkEvent{Now(), Pid(pid), Tid(pid), Pid(parent)});
  }
  void Exec(uint32_t pid) { Apply(CommEvent{Now(), Pid(pid), Tid(pid), true, "new"}); }
  void Exit(uint32_t pid) { Apply(ExitEvent{Now(), Pid(pid), Tid(pid)}); }
  MappingEvent Mapping(uint32_t pid, const std::string& path, char build_id) {
    MappingEvent event;
    event.when = Now();
    event.pid = Pid(pid);
    event.range = {Address(kStart), Address(kStart + 0x2000), FileOffset(0x1000)};
    event.file.path = path;
    if (build_id != 0) event.file.build_id = FakeBuildId(build_id);
    return event;
  }
  static MappingEvent At(MappingEvent event, uint64_t start, uint64_t end) {
    event.range.start = Address(start);
    event.range.end = Address(end);
    return event;
  }
  // A child that lives on, with its /proc directory.
  void ForkLiving(uint32_t parent, uint32_t pid) {
    const ForkEvent fork{Now(), Pid(pid), Tid(pid), Pid(parent)};
    machine_.AddProcess(pid, BootClock::Now().ToStartTime(fork.when).value(), "");
    Apply(fork);
  }

  Frame FrameAt(uint32_t pid, uint64_t start, uint32_t exec, uint64_t address) {
    const ProcessKey process{Pid(pid), StartTime(start)};
    return Resolved(process, ExecId(exec), Frame::User(Address(address)), Now());
  }
  Frame Resolved(const ProcessKey& process, ExecId exec, Frame frame, MonotonicTime when) {
    return OnlyFrameOf(history_.Resolve(OneFrameWindow(process, exec, frame, when)).window);
  }
  // What comes with a window that has a tick of pid 100 at `address`.
  ResolvedWindow ResolvedAt(uint64_t address) {
    return history_.Resolve(OneFrameWindow(kKey, ExecId(3), Frame::User(Address(address)), Now()));
  }
  std::string PathAt(uint32_t pid, uint64_t start, uint32_t exec, uint64_t address) {
    const Frame frame = FrameAt(pid, start, exec, address);
    if (frame.kind() != Frame::Kind::kObject) return "address";
    return fmt::format("{}+{:#x}", history_.Object(frame.object())->path, frame.offset().value());
  }

  static std::vector<uint64_t> StartsOf(const RecordingSink::Published& published) {
    std::vector<uint64_t> starts;
    for (const PublishedMapping& p : published.mappings) starts.push_back(p.mapping.start.value());
    return starts;
  }
  std::vector<uint64_t> ShiftingOf(uint32_t pid) {
    std::vector<uint64_t> starts;
    for (const auto& [mapping, shifting] : sink_.by_pid[Pid(pid)].mappings) {
      if (shifting) starts.push_back(mapping.start.value());
    }
    return starts;
  }

  FakeClock clock_;
  FakeMachine machine_;
  std::shared_ptr<FakeInspector> inspector_ = std::make_shared<FakeInspector>();
  RecordingSink sink_;
  ProcessObserver* const shown_to_;  // null: nobody
  ProcessHistory history_;
  MonotonicTime last_;
};

}  // namespace pyrometer
