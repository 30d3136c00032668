// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/life.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace pyrometer::scale {
namespace {

constexpr size_t kMapped = 6;  // files of a process that does not live long
constexpr size_t kFrames = 8;
constexpr uint32_t kSlices = 10;  // of a window: so often the engine takes events
constexpr uint64_t kDay = 86'400;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr Pid kInit(1);
constexpr uint64_t kCode = 0x10'0000'0000;  // where programs make code
constexpr uint64_t kKernelCode = 0xffffffffc0000000;
constexpr uint32_t kLongAgo = 1000;  // the newest release of each image at the start

}  // namespace

Life::Life(const Scale& scale, Fleet& fleet, Engine& engine, SimulatedClock& clock)
    : scale_(scale),
      fleet_(fleet),
      engine_(engine),
      clock_(clock),
      now_(clock.Now()),
      releases_(scale.containers / Fleet::kSharing + 1, kLongAgo) {}

void Life::Begin() {
  const TaskRecord init{kInit, Tid(1), StartTime(1), ExecId(1), MonotonicNow()};
  engine_.Scan(std::span(&init, 1));
  for (uint32_t i = 0; i < scale_.containers; ++i) {
    containers_.push_back(StartContainer(i, releases_[i / Fleet::kSharing] - Outdated()));
    engine_.Pump(Tick());
  }
}

uint32_t Life::Outdated() {
  uint32_t releases = 0;
  while (releases < kLongAgo && Draw(Fleet::kSharing) != 0) releases += Draw(2);
  return releases;
}

void Life::RunDay(const std::function<void()>& look) {
  LoseRecords();
  for (uint64_t second = 0; second < kDay; second += scale_.window_seconds) {
    RunWindow(After(clock_.Now(), std::chrono::seconds(scale_.window_seconds)));
    look();
  }
}

void Life::RunWindow(MonotonicTime end) {
  const MonotonicTime begin = clock_.Now();
  const uint64_t slice = (end.value() - begin.value()) / kSlices;
  for (uint32_t i = 1; i <= kSlices; ++i) {
    Happen(i == kSlices ? end : MonotonicTime(begin.value() + i * slice));
  }
  const auto named = engine_.Name(MakeWindow(begin, end));
  Judge(*named);
  ended_.clear();
}

void Life::Happen(MonotonicTime until) {
  now_ = std::max(now_, clock_.Now());
  for (uint32_t n = Due(scale_.containers / 10.0, owed_containers_); n > 0; --n) {
    const uint32_t number = Draw(scale_.containers);
    StopContainer(*containers_[number]);
    uint32_t& newest = releases_[number / Fleet::kSharing];
    if (Draw(2) == 0) ++newest;
    containers_[number] = StartContainer(number, newest);
  }
  for (uint32_t n = Due(scale_.processes_per_day, owed_processes_); n > 0; --n) StartProcess();
  ReplaceThread();
  MakeCode();
  LoadKernelCode();
  while (!running_.empty() && running_.begin()->first <= until) {
    End(running_.begin(), running_.begin()->first);
  }
  engine_.Pump(until);
}

uint32_t Life::Due(double per_day, double& owed) {
  owed += per_day * scale_.window_seconds / kSlices / kDay;
  const auto due = static_cast<uint32_t>(owed);
  owed -= due;
  return due;
}

void Life::Add(ProcessEvent event) {
  ++tally_.events;
  engine_.Add(std::move(event));
}

// Ids are reused when all have been used.
uint32_t Life::NextId() {
  const uint32_t ids = std::max(32'768U, 4 * scale_.threads);
  do {
    last_id_ = last_id_ % ids + 1;
  } while (!ids_.insert(last_id_).second);
  return last_id_;
}

ProcessKey Life::Fork(Pid parent) {
  const Pid pid(NextId());
  const MonotonicTime when = Tick();
  Add(ForkEvent{when, pid, Tid(pid.value()), parent});
  Add(CommEvent{Tick(), pid, Tid(pid.value()), true, "program"});
  return {pid, boot_.ToStartTime(when)};
}

void Life::Map(Pid pid, uint64_t base, const Container& container, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    Add(MappingEvent{Tick(), pid, RangeOf(base, i), container.files[i].named});
  }
}

std::shared_ptr<Container> Life::StartContainer(uint32_t number, uint32_t release) {
  ++tally_.containers;
  auto container = std::make_shared<Container>(fleet_.Deploy(number, release));
  const ProcessKey main = Fork(kInit);
  container->main = main.pid;
  container->start = main.start_time;
  container->exec = ExecId(2);
  container->base = 0x7f00'0000'0000 + (uint64_t{Draw(1 << 16)} << 24);
  fleet_.ShowMain(*container);
  Map(main.pid, container->base, *container, 0, container->files.size());
  for (uint32_t i = 1; i < scale_.threads / scale_.containers; ++i) {
    container->threads.push_back(Tid(NextId()));
    Add(ForkEvent{Tick(), main.pid, container->threads.back(), main.pid});
  }
  container->began = Tick();
  return container;
}

void Life::StopContainer(const Container& container) {
  for (auto process = running_.begin(); process != running_.end();) {
    const bool inside = process->second.container.get() == &container;
    process = inside ? End(process, Tick()) : std::next(process);
  }
  for (const Tid thread : container.threads) {
    Add(ExitEvent{Tick(), container.main, thread});
    ids_.erase(thread.value());
  }
  Add(ExitEvent{Tick(), container.main, Tid(container.main.value())});
  ids_.erase(container.main.value());
  fleet_.Remove(container);
}

void Life::StartProcess() {
  ++tally_.processes;
  const auto& container = containers_[Draw(containers_.size())];
  const size_t files = std::min(kMapped, container->files.size());
  Process process{.container = container,
                  .key = Fork(container->main),
                  .exec = ExecId(3),
                  .base = 0x7f00'0000'0000 + (uint64_t{Draw(1 << 16)} << 24),
                  .first_file = Draw(container->files.size() - files + 1),
                  .files = files,
                  .begin = {},
                  .end = {}};
  Map(process.key.pid, process.base, *container, process.first_file, files);
  process.begin = Tick();
  const uint64_t life = kSecond / 100 + random_() % (2 * kSecond * scale_.window_seconds);
  process.end = MonotonicTime(process.begin.value() + life);
  running_.emplace(process.end, std::move(process));
}

Life::Running::iterator Life::End(Running::iterator process, MonotonicTime when) {
  Process ended = std::move(process->second);
  ended.end = when;
  Add(ExitEvent{when, ended.key.pid, Tid(ended.key.pid.value())});
  ids_.erase(ended.key.pid.value());
  ended_.push_back(std::move(ended));
  return running_.erase(process);
}

void Life::ReplaceThread() {
  Container& container = *containers_[Draw(containers_.size())];
  if (container.threads.empty()) return;
  Tid& thread = container.threads[Draw(container.threads.size())];
  Add(ExitEvent{Tick(), container.main, thread});
  ids_.erase(thread.value());
  thread = Tid(NextId());
  Add(ForkEvent{Tick(), container.main, thread, container.main});
}

void Life::MakeCode() {
  const uint64_t start = kCode + Draw(64) * uint64_t{0x1000};
  MappingEvent event;
  event.when = Tick();
  event.pid = containers_[Draw(containers_.size())]->main;
  event.range = {Address(start), Address(start + (1 + Draw(4)) * uint64_t{0x1000}), FileOffset(0)};
  event.file.path = "//anon";
  Add(std::move(event));
}

void Life::LoadKernelCode() {
  const KernelSymbolEvent code{.address = KernelAddress(kKernelCode + Draw(100) * uint64_t{0x1000}),
                               .size = 0x100,
                               .removed = Draw(2) == 0,
                               .name = fmt::format("bpf_prog_{}", Draw(1000))};
  Add(SymbolEvent{Tick(), code});
}

void Life::LoseRecords() {
  Add(LostEvent{Tick(), 1});
  engine_.Pump(Tick());
  std::vector<TaskRecord> tasks;
  for (const auto& container : containers_) {
    tasks.push_back({container->main, Tid(container->main.value()), container->start,
                     container->exec, MonotonicNow()});
  }
  engine_.Scan(tasks);
}

// Some eight for each CPU; what is at work is so at random.
Window Life::MakeWindow(MonotonicTime begin, MonotonicTime end) {
  Window window;
  window.begin = begin;
  window.end = end;
  window.frequency = Hertz{99};
  for (uint32_t i = 0; i < 8 * scale_.cpus; ++i) {
    Process process = AnyProcess();
    process.begin = std::max(process.begin, begin);
    process.end = std::min(process.end, end);
    if (process.begin < process.end) AddSample(process, window);
  }
  window.accounting.exported = window.samples.size();
  return window;
}

Life::Process Life::AnyProcess() {
  const uint32_t which = Draw(3);
  if (which == 0 && !ended_.empty()) return ended_[Draw(ended_.size())];
  if (which == 1 && !running_.empty()) {
    return std::next(running_.begin(), Draw(std::min<size_t>(running_.size(), 100)))->second;
  }
  const auto& container = containers_[Draw(containers_.size())];
  return {.container = container,
          .key = {container->main, container->start},
          .exec = container->exec,
          .base = container->base,
          .files = container->files.size(),
          .begin = container->began,
          .end = kForever};
}

// `comm` is the text of the file that the leaf lies in, `thread` what the others' begin with.
void Life::AddSample(const Process& process, Window& window) {
  const uint64_t time = process.end.value() - process.begin.value();
  const MonotonicTime when(process.begin.value() + random_() % time);
  const size_t leaf = process.first_file + Draw(process.files);
  window.samples.push_back({.process = process.key,
                            .exec = process.exec,
                            .comm = process.container->files[leaf].text,
                            .thread = process.container->image,
                            .stack = static_cast<uint32_t>(window.stacks.size()),
                            .count = 1,
                            .first_seen = when,
                            .last_seen = when});
  window.stacks.push_back({.first_frame = static_cast<uint32_t>(window.frames.size()),
                           .kernel_frames = 0,
                           .user_frames = kFrames,
                           .end = StackEnd::kComplete});
  window.frames.push_back(FrameIn(process, leaf));
  for (size_t i = 1; i < kFrames; ++i) {
    window.frames.push_back(FrameIn(process, process.first_file + Draw(process.files)));
  }
}

// As the kernel side would have it, or as an address if it did not unwind the sample.
Frame Life::FrameIn(const Process& process, size_t file) {
  const uint64_t function = Draw(Layout::kFunctions) * Layout::kFunctionBytes;
  const Address address(RangeOf(process.base, file).start.value() + function + 16);
  const auto mapping = engine_.kernel().Find(process.key.pid, address);
  if (!mapping || mapping->object == ObjectId(0) || Draw(4) == 0) return Frame::User(address);
  return Frame::Object(mapping->object, mapping->ToElfAddress(address));
}

void Life::Judge(const NamedWindow& named) {
  for (const Sample& sample : named.window.samples) {
    const Stack& stack = named.window.stacks[sample.stack];
    for (uint32_t i = 0; i < stack.user_frames; ++i) {
      JudgeFrame(sample, *named.locations[stack.first_frame + i], i == 0);
    }
  }
}

void Life::JudgeFrame(const Sample& sample, const Location& location, bool is_leaf) {
  const std::string_view name = location.lines.at(0).function;
  const auto lies_in = [name](std::string_view text) {
    return name.starts_with(text) && name.substr(text.size()).starts_with('.');
  };
  if (location.quality == NameQuality::kMadeUp) {
    ++tally_.unnamed;
  } else if (is_leaf ? lies_in(sample.comm) : lies_in(sample.thread) || lies_in(kBase)) {
    ++tally_.right;
  } else {
    ++tally_.wrong;
  }
}

}  // namespace pyrometer::scale
