// SPDX-License-Identifier: Apache-2.0
// record_window PID: samples one process for two seconds and prints the window, with all user
// frames as addresses. Used by scripts/record-replay only.
#include <cstdlib>
#include <iostream>
#include <thread>

#include "sampler/sampler.h"
#include "tests/replay/recorded_window.h"

namespace pyrometer {
namespace {

Result<RecordedWindow> Record(Pid pid) {
  Sampler::Options options{.frequency = {499}};
  options.filter.pids = {pid};
  options.sizes.cold_bytes = 4096;  // too little for a sample: none is left for us to unwind
  const Clock clock;
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler, Sampler::Load(options, clock));
  ASSIGN_OR_RETURN(const std::vector<pyro_task_record> tasks, sampler->mappings().ListTasks());
  RETURN_IF_ERROR(sampler->windows().Start());
  std::this_thread::sleep_for(std::chrono::seconds(2));
  sampler->windows().Stop();
  RecordedWindow recorded;
  ASSIGN_OR_RETURN(recorded.window, sampler->windows().Drain());
  // Nobody tells the sampler of mappings here, so it goes by frame pointers, which the program has,
  // and does not vouch for the end. That this is _start is for scripts/record-replay to see.
  for (Stack& stack : recorded.window.stacks) {
    if (stack.end == StackEnd::kNotReady) stack.end = StackEnd::kComplete;
  }
  for (const pyro_task_record& task : tasks) {
    if (task.tid != pid.value()) continue;
    recorded.tasks.push_back({.pid = pid,
                              .tid = Tid(task.tid),
                              .start = StartTime(task.start_boottime_ns / PYRO_CLOCK_TICK_NS),
                              .exec = ExecId(task.exec_id),
                              .read_at = MonotonicTime(task.now_ns)});
  }
  return recorded;
}

}  // namespace
}  // namespace pyrometer

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto pid = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const pyrometer::Result<pyrometer::RecordedWindow> recorded =
      pyrometer::Record(pyrometer::Pid(pid));
  if (!recorded) {
    std::cerr << recorded.error().message() << "\n";
    return 1;
  }
  pyrometer::Write(*recorded, std::cout);
}
