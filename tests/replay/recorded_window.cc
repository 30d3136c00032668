// SPDX-License-Identifier: Apache-2.0
#include "tests/replay/recorded_window.h"

#include <fmt/ostream.h>

#include <sstream>
#include <string>

namespace pyrometer {
namespace {

template <typename Strong, typename Number = uint64_t>
Strong Next(std::istringstream& words) {
  Number value = 0;
  words >> value;
  return Strong(static_cast<decltype(Strong().value())>(value));
}

Stack ReadStack(std::istringstream& words, std::vector<Frame>& frames) {
  Stack stack;
  unsigned end = 0;
  words >> stack.kernel_frames >> stack.user_frames >> end >> std::hex;
  stack.end = static_cast<StackEnd>(end);
  stack.first_frame = static_cast<uint32_t>(frames.size());
  for (uint64_t bits = 0; words >> bits;) frames.emplace_back(bits);
  return stack;
}

Sample ReadSample(std::istringstream& words) {
  Sample sample;
  sample.process = {.pid = Next<Pid>(words), .start_time = Next<StartTime>(words)};
  sample.exec = Next<ExecId>(words);
  words >> sample.stack >> sample.count;
  sample.first_seen = Next<MonotonicTime>(words);
  sample.last_seen = Next<MonotonicTime>(words);
  words >> sample.comm >> sample.thread;
  return sample;
}

}  // namespace

void Write(const RecordedWindow& recorded, std::ostream& out) {
  for (const TaskRecord& task : recorded.tasks) {
    fmt::print(out, "task {} {} {} {}\n", task.pid.value(), task.start.value(), task.exec.value(),
               task.read_at.value());
  }
  const Window& window = recorded.window;
  fmt::print(out, "window {} {}\n", window.begin.value(), window.end.value());
  for (const Stack& stack : window.stacks) {
    fmt::print(out, "stack {} {} {}", stack.kernel_frames, stack.user_frames,
               static_cast<unsigned>(stack.end));
    for (const Frame frame : window.FramesOf(stack)) fmt::print(out, " {:x}", frame.bits());
    fmt::print(out, "\n");
  }
  for (const Sample& s : window.samples) {
    fmt::print(out, "sample {} {} {} {} {} {} {} {} {}\n", s.process.pid.value(),
               s.process.start_time.value(), s.exec.value(), s.stack, s.count, s.first_seen.value(),
               s.last_seen.value(), s.comm, s.thread);
  }
}

RecordedWindow ReadRecordedWindow(std::istream& in) {
  RecordedWindow recorded;
  Window& window = recorded.window;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "task") {
      TaskRecord task;
      task.pid = Next<Pid>(words);
      task.tid = Tid(task.pid.value());
      task.start = Next<StartTime>(words);
      task.exec = Next<ExecId>(words);
      task.read_at = Next<MonotonicTime>(words);
      recorded.tasks.push_back(task);
    } else if (kind == "window") {
      window.begin = Next<MonotonicTime>(words);
      window.end = Next<MonotonicTime>(words);
    } else if (kind == "stack") {
      window.stacks.push_back(ReadStack(words, window.frames));
    } else if (kind == "sample") {
      window.samples.push_back(ReadSample(words));
    }
  }
  return recorded;
}

}  // namespace pyrometer
