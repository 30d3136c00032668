// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/bounded_queue.h"
#include "base/cpu_list.h"
#include "base/file.h"
#include "base/stop_signals.h"
#include "profile/profile_builder.h"
#include "profiler/pipeline.h"
#include "record/accounting_line.h"
#include "record/child_command.h"
#include "record/outputs.h"
#include "record/progress_line.h"
#include "record/record_target.h"
#include "sampler/sample_rate.h"

namespace pyrometer {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough to aggregate, short enough that files and maps of ended processes are still at hand.
constexpr std::chrono::seconds kWindow{5};
// How often we look, at the most and at the least: whether a window map fills up or a wanted
// process is left; and, once a second, whether a CPU has come, for which a file is read.
constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(250);
constexpr std::chrono::nanoseconds kLookForCpus = std::chrono::seconds(1);

// Object files of ended processes are held open; the usual soft limit of 1024 is low for that.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

struct CloseQueue {
  void operator()(BoundedQueue<ResolvedWindow>* queue) const { queue->Close(); }
};

// Windows that wait to be named. Beyond that the kernel's maps have to hold the samples, and what
// they cannot hold is counted as lost.
constexpr size_t kWaitingWindows = 16;

// Samples on the caller's thread; names and adds up on a thread of its own, see Pipeline.
class Recording {
 public:
  static Result<std::unique_ptr<Recording>> Prepare(const RecordConfig& config,
                                                    std::optional<ChildCommand>& command);

  // Samples until something ends it.
  Result<void> Run(const StopSignals& signals, std::optional<ChildCommand>& command);

  Accounting accounting() const { return sampler_->accounting(); }
  uint64_t missed_children() const { return sampler_->missed_children(); }
  // REQUIRES: Run has returned.
  Profile Finish() &&;

 private:
  explicit Recording(const RecordConfig& config)
      : config_(config), builder_({.labels = config.labels}) {}

  Result<void> Loop(const StopSignals& signals, const std::optional<ChildCommand>& command);
  std::chrono::nanoseconds TimeToLook() const;
  Result<void> Look();
  Result<void> TakeWindow(bool last);
  void NameWindows();
  bool NobodyLeft() const;
  std::optional<std::chrono::nanoseconds> TimeLeft() const;

  const RecordConfig& config_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pipeline> pipeline_;
  BoundedQueue<ResolvedWindow> taken_{kWaitingWindows};
  ProfileBuilder builder_;  // of the naming thread, while Run
  bool only_pids_ = false;
  bool interrupted_ = false;  // by a signal
  Clock::time_point started_;
  Clock::time_point window_began_;
  Clock::time_point look_for_cpus_;
  std::chrono::system_clock::time_point window_began_at_;
  Accounting accounting_;  // of the windows taken
};

Result<std::unique_ptr<Recording>> Recording::Prepare(const RecordConfig& config,
                                                      std::optional<ChildCommand>& command) {
  const Procfs procfs;
  RETURN_IF_ERROR(CheckSampleRate(procfs, config.frequency));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> cpus, OnlineCpus(procfs));
  Sampler::Options options{
      .frequency = config.frequency,
      .kernel_stacks = config.kernel_stacks,
      .filter = {},
      .procfs = procfs,
      .sizes = MapSizes::For(config.frequency, static_cast<uint32_t>(cpus.size()), kWindow),
      .table_budget = config.unwind_memory};
  ASSIGN_OR_RETURN(options.filter, FindTargets(procfs, config));
  if (command) options.filter.pids.push_back(command->pid());

  std::unique_ptr<Recording> recording(new Recording(config));
  ASSIGN_OR_RETURN(recording->sampler_, Sampler::Load(options));
  for (const Pid pid : config.pids) {
    // Gone between the check and the moment from which exits are seen.
    if (!IsAlive(procfs, pid)) recording->sampler_->ForgetWantedPid(pid);
  }
  const SampleFilter& filter = options.filter;
  recording->only_pids_ =
      !filter.pids.empty() && filter.comms.empty() && filter.cgroups.empty() && !command;
  ASSIGN_OR_RETURN(recording->pipeline_,
                   Pipeline::Start(*recording->sampler_, procfs, 2 * kWindow));
  return recording;
}

Result<void> Recording::Run(const StopSignals& signals, std::optional<ChildCommand>& command) {
  const std::jthread naming([this] { NameWindows(); });
  // Before the thread is waited for, whichever way this function is left.
  const std::unique_ptr<BoundedQueue<ResolvedWindow>, CloseQueue> close(&taken_);
  started_ = window_began_ = Clock::now();
  window_began_at_ = std::chrono::system_clock::now();
  RETURN_IF_ERROR(sampler_->Start());
  if (command) RETURN_IF_ERROR(command->Release());
  RETURN_IF_ERROR(Loop(signals, command));
  sampler_->Stop();
  // What ends us ends the command; on a terminal it got the same signal.
  if (interrupted_ && command) command->Terminate();
  if (interrupted_) signals.Take();
  return TakeWindow(true);
}

Result<void> Recording::Loop(const StopSignals& signals,
                             const std::optional<ChildCommand>& command) {
  ProgressLine progress(!config_.quiet);
  pollfd waits[] = {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                    {.fd = command ? command->ended_fd() : -1, .events = POLLIN, .revents = 0}};
  while (true) {
    const std::optional<std::chrono::nanoseconds> left = TimeLeft();
    if (left && left->count() <= 0) return {};
    const std::chrono::nanoseconds wait = std::min(progress.shown() ? kLook : TimeToLook(),
                                                   left.value_or(std::chrono::nanoseconds::max()));
    const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(wait);
    if (::poll(waits, std::size(waits), static_cast<int>(timeout.count())) > 0) {
      interrupted_ = waits[0].revents != 0;
      return {};
    }
    RETURN_IF_ERROR(Look());
    if (NobodyLeft()) return {};
    if (progress.shown()) {
      progress.Update(Clock::now() - started_, config_.duration, sampler_->accounting());
    }
  }
}

// Until there may be something to do: a look costs 100 us where nothing else runs.
std::chrono::nanoseconds Recording::TimeToLook() const {
  if (only_pids_) return kLook;  // they may end
  const std::chrono::nanoseconds until_full = sampler_->TimeUntilNearlyFull();
  const std::chrono::nanoseconds until_next = window_began_ + kWindow - Clock::now();
  return std::clamp(std::min(until_full, until_next), kLook, kLookForCpus);
}

Result<void> Recording::Look() {
  if (Clock::now() >= look_for_cpus_) {
    RETURN_IF_ERROR(sampler_->FollowCpus());
    look_for_cpus_ = Clock::now() + kLookForCpus;
  }
  if (Clock::now() - window_began_ < kWindow && !sampler_->NearlyFull()) return {};
  if (!taken_.HasRoom()) return {};
  window_began_ = Clock::now();
  return TakeWindow(false);
}

Result<void> Recording::TakeWindow(bool last) {
  ASSIGN_OR_RETURN(ResolvedWindow taken, pipeline_->TakeWindow(last));
  Window& window = taken.window;
  const Accounting now = sampler_->accounting();
  window.accounting = now - std::exchange(accounting_, now);
  window.frequency = config_.frequency;
  window.wall_begin = std::exchange(window_began_at_, std::chrono::system_clock::now());
  window.wall_end = window_began_at_;
  taken_.Push(std::move(taken));
  return {};
}

void Recording::NameWindows() {
  while (std::optional<ResolvedWindow> window = taken_.Pop()) {
    builder_.Add(pipeline_->Name(*std::move(window)));
  }
}

bool Recording::NobodyLeft() const {
  return only_pids_ && !sampler_->AnyWantedPid();
}

std::optional<std::chrono::nanoseconds> Recording::TimeLeft() const {
  if (!config_.duration) return std::nullopt;
  return *config_.duration - (Clock::now() - started_);
}

Profile Recording::Finish() && {
  return std::move(builder_).Finish();
}

// What the numbers in the accounting line mean for the reader, when they are not what was hoped.
void PrintNotes(const Accounting& accounting, uint64_t missed_children) {
  if (accounting.exported == 0) {
    WriteMessage(STDERR_FILENO,
                 "pyrometer: no samples: no tick found what was asked for on a CPU\n");
  }
  if (missed_children > 0) {
    WriteMessage(
        STDERR_FILENO,
        fmt::format("pyrometer: {} child processes were not followed: too many at a time\n",
                    missed_children));
  }
}

Result<void> RecordAndWrite(const RecordConfig& config, const StopSignals& signals,
                            std::optional<ChildCommand>& command) {
  ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config.outputs));
  ASSIGN_OR_RETURN(const std::unique_ptr<Recording> recording, Recording::Prepare(config, command));
  RETURN_IF_ERROR(recording->Run(signals, command));
  const Accounting accounting = recording->accounting();
  const uint64_t missed_children = recording->missed_children();
  const Profile profile = std::move(*recording).Finish();
  Result<void> written = outputs.Write(profile);
  WriteMessage(STDERR_FILENO, AccountingLine(accounting, profile) + "\n");
  PrintNotes(accounting, missed_children);
  return written;
}

// Waits for the command, which may outlive the recording (--duration). A signal to us meanwhile is
// handed on, each time it comes.
void AwaitEnd(const StopSignals& signals, ChildCommand& command) {
  pollfd waits[] = {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                    {.fd = command.ended_fd(), .events = POLLIN, .revents = 0}};
  while (waits[1].revents == 0) {
    if (::poll(waits, std::size(waits), -1) > 0 && waits[0].revents != 0) {
      signals.Take();
      command.Terminate();
    }
  }
}

}  // namespace

Result<int> Record(const RecordConfig& config) {
  ASSIGN_OR_RETURN(const StopSignals signals, StopSignals::Block());
  std::optional<ChildCommand> command;
  if (!config.command.empty()) {
    ASSIGN_OR_RETURN(ChildCommand child, ChildCommand::Start(config.command));
    command.emplace(std::move(child));
  }
  RaiseFileLimit();  // ours, not the command's
  RETURN_IF_ERROR(RecordAndWrite(config, signals, command));
  if (!command) return 0;
  AwaitEnd(signals, *command);
  return command->Wait();
}

}  // namespace pyrometer
