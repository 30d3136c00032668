// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/pid_namespace.h"
#include "base/stop_signals.h"
#include "config/environment.h"
#include "export/grpc_client.h"
#include "foreign/opener_pool.h"
#include "foreign/reader_pool.h"
#include "profile/profile_builder.h"
#include "profiler/profiler.h"
#include "record/accounting_line.h"
#include "record/child_command.h"
#include "record/container_follower.h"
#include "record/container_naming.h"
#include "record/container_runtime.h"
#include "record/outputs.h"
#include "record/progress_line.h"
#include "record/record_target.h"
#include "record/stats_report.h"
#include "sampler/sample_rate.h"

namespace pyrometer {
namespace {

// Long enough to aggregate, short enough that files and maps of ended processes are still there.
constexpr std::chrono::seconds kWindow{5};
// How often to check whether a wanted process is left, and to update the progress line.
constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(250);
// How long after the last tick unwinding and naming may take; the rest goes into the profile as is.
constexpr std::chrono::seconds kTimeToFinish{10};
// How long after that names of containers that have just begun are waited for.
constexpr std::chrono::seconds kTimeToNameContainers{2};

// Adds the windows up to one profile.
class ProfileAdder : public WindowConsumer {
 public:
  explicit ProfileAdder(const RecordConfig& config) : builder_({.labels = config.labels}) {}

  void Consume(const Delivery& delivery) override {
    builder_.Add(*delivery.window);
    missed_ += delivery.missed;
  }

  // REQUIRES: the profiler is gone.
  Profile Finish() && {
    Profile profile = std::move(builder_).Finish();
    profile.accounting += missed_;
    return profile;
  }

 private:
  ProfileBuilder builder_;
  Accounting missed_;
};

// What a recording leaves behind.
struct Recorded {
  Profile profile;
  ProfilerStats stats;
  bool complete = true;              // all was unwound and named in time
  std::optional<Error> following{};  // of containers by name, which failed
};

// From the first tick to the last: what begins a recording, and what ends it.
class Recording {
 public:
  static Result<std::unique_ptr<Recording>> Prepare(const RecordConfig& config,
                                                    std::optional<ChildCommand>& command);

  // Samples until something ends it.
  Result<void> Run(const StopSignals& signals, std::optional<ChildCommand>& command);

  // REQUIRES: Run has returned.
  Recorded Finish() &&;

 private:
  explicit Recording(const RecordConfig& config) : config_(config), adder_(config) {}

  std::unique_ptr<ContainerSource> Containers() const {
    return LocalContainerRuntime(ProcessEnvironment(), clock_);
  }
  Result<std::shared_ptr<ReaderPool>> StartReaders() const;
  Result<SampleFilter> FindFilter(const Procfs& procfs);
  void FollowContainers();
  void Wait(const StopSignals& signals, const std::optional<ChildCommand>& command);
  std::optional<std::chrono::nanoseconds> TimeLeft() const;

  const RecordConfig& config_;
  const Clock clock_;
  // These outlive the profiler, which uses them.
  ProfileAdder adder_;
  ContainerNaming naming_{[this] { return Containers(); }, clock_};
  std::unique_ptr<Profiler> profiler_;
  SampleFilter filter_;
  std::unique_ptr<ContainerFollower> follower_;  // null: nobody is to be followed by name
  bool only_pids_ = false;
  bool interrupted_ = false;  // by a signal
  bool complete_ = true;      // all was unwound and named in time
  std::optional<Error> following_;
  MonotonicTime started_;
};

Result<std::unique_ptr<Recording>> Recording::Prepare(const RecordConfig& config,
                                                      std::optional<ChildCommand>& command) {
  const Procfs procfs;
  if (!config.event.counted()) RETURN_IF_ERROR(CheckSampleRate(procfs, config.frequency));
  // First: where this fails a process may have neither threads nor children.
  RETURN_IF_ERROR(CheckPidNamespace(procfs));
  std::unique_ptr<Recording> recording(new Recording(config));
  // While there is one thread.
  ASSIGN_OR_RETURN(std::shared_ptr<ForeignFiles> files,
                   OpenerPool::Start({.clock = std::make_shared<const Clock>()}));
  ASSIGN_OR_RETURN(std::shared_ptr<ReaderPool> readers, recording->StartReaders());
  GrpcClient::ConfigureLibrary();  // which changes the environment
  ASSIGN_OR_RETURN(SampleFilter filter, recording->FindFilter(procfs));
  recording->only_pids_ =
      !filter.pids.empty() && filter.comms.empty() && filter.cgroups.empty() && !command;
  if (command) filter.pids.push_back(command->pid());
  ASSIGN_OR_RETURN(recording->profiler_, Profiler::Open({.clock = recording->clock_,
                                                         .procfs = procfs,
                                                         .event = config.event,
                                                         .frequency = config.frequency,
                                                         .kernel_stacks = config.kernel_stacks,
                                                         .inlines = config.inlines,
                                                         .dwarf = config.dwarf,
                                                         .demangling = config.demangling,
                                                         .name_again = true,
                                                         .filter = std::move(filter),
                                                         .table_budget = config.unwind_memory,
                                                         .longest_window = kWindow,
                                                         .observer = &recording->naming_,
                                                         .files = std::move(files),
                                                         .readers = std::move(readers)}));
  for (const Pid pid : config.pids) {
    // Gone between the check and the moment from which exits are seen.
    if (!IsAlive(procfs, pid)) recording->profiler_->ForgetWantedPid(pid);
  }
  recording->profiler_->Attach(recording->adder_, {.length = kWindow});
  return recording;
}

// Null if none are wanted.
Result<std::shared_ptr<ReaderPool>> Recording::StartReaders() const {
  if (!config_.sandbox) {
    WriteMessage(STDERR_FILENO,
                 "pyrometer: sandbox off: this process itself reads files of the programs that it "
                 "profiles\n");
    return std::shared_ptr<ReaderPool>();
  }
  Result<std::unique_ptr<ReaderPool>> readers =
      ReaderPool::Start({.clock = std::make_shared<Clock>()});
  if (!readers) {
    return Fail(readers.error().code(),
                "{}; with --no-sandbox files of profiled programs are read without a sandbox",
                readers.error().message());
  }
  return std::shared_ptr<ReaderPool>(*std::move(readers));
}

Result<SampleFilter> Recording::FindFilter(const Procfs& procfs) {
  std::vector<CgroupTarget> named;
  if (!config_.container_names.empty()) {
    follower_ = std::make_unique<ContainerFollower>(procfs, config_.container_names, Containers());
    ASSIGN_OR_RETURN(named, follower_->Find());
  }
  ASSIGN_OR_RETURN(filter_, FindTargets(procfs, config_, named));
  return filter_;
}

// Of cgroups of another hierarchy the kernel side would take the wrong ones.
void Recording::FollowContainers() {
  if (follower_ == nullptr) return;
  follower_->Start([this](const CgroupTarget& cgroup) -> Result<void> {
    SampleFilter same = filter_;
    RETURN_IF_ERROR(AddCgroup(cgroup, same));
    return profiler_->WantCgroup(cgroup.id);
  });
}

Result<void> Recording::Run(const StopSignals& signals, std::optional<ChildCommand>& command) {
  started_ = clock_.Now();
  RETURN_IF_ERROR(profiler_->Start());
  if (command) RETURN_IF_ERROR(command->Release());
  FollowContainers();
  Wait(signals, command);
  if (follower_ != nullptr) following_ = follower_->End();
  // A signal that ends the recording ends the command; from a terminal it got the same signal.
  if (interrupted_ && command) command->Terminate();
  if (interrupted_) signals.Take();
  complete_ = profiler_->Stop(After(clock_.Now(), kTimeToFinish));
  return {};
}

// Until the first of: a signal, the command's end, the duration, the exit of all wanted processes.
void Recording::Wait(const StopSignals& signals, const std::optional<ChildCommand>& command) {
  ProgressLine progress(!config_.quiet);
  pollfd waits[] = {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                    {.fd = command ? command->ended_fd() : -1, .events = POLLIN, .revents = 0}};
  const auto most = progress.shown() || only_pids_ ? kLook : std::chrono::nanoseconds::max();
  while (true) {
    const std::chrono::nanoseconds left = TimeLeft().value_or(std::chrono::nanoseconds::max());
    if (left.count() <= 0) return;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::min<std::chrono::nanoseconds>({left, most, std::chrono::hours(24)}));
    if (::poll(waits, std::size(waits), static_cast<int>(wait.count())) > 0) {
      interrupted_ = waits[0].revents != 0;
      return;
    }
    if (only_pids_ && !profiler_->AnyWantedPid()) return;
    if (progress.shown()) {
      progress.Update(Between(started_, clock_.Now()), config_.duration, profiler_->accounting());
    }
  }
}

std::optional<std::chrono::nanoseconds> Recording::TimeLeft() const {
  if (!config_.duration) return std::nullopt;
  return *config_.duration - Between(started_, clock_.Now());
}

Recorded Recording::Finish() && {
  const ProfilerStats stats = profiler_->stats();
  profiler_.reset();  // and with it the thread on which windows are added up
  const bool complete = complete_ && stats.cold.given_up == 0;
  Profile profile = std::move(adder_).Finish();
  naming_.Name(profile, kTimeToNameContainers);
  return {.profile = std::move(profile),
          .stats = stats,
          .complete = complete,
          .following = std::move(following_)};
}

// Explains disappointing numbers in the accounting line.
void PrintNotes(const RecordConfig& config, const Accounting& accounting,
                uint64_t missed_children) {
  const bool has_none = accounting.exported == 0 && accounting.TotalLost() == 0;
  if (has_none && config.event.counted()) {
    const std::string why = config.event.period == 1
                                ? ""
                                : fmt::format(
                                      ", or none was every {}th of a CPU; ask for more with "
                                      "a smaller --period",
                                      config.event.period);
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: no samples: what was asked for had no {}{}\n",
                             FactsOf(config.event.kind).noun, why));
  } else if (has_none) {
    WriteMessage(STDERR_FILENO,
                 "pyrometer: no samples: what was asked for never ran when a tick came\n");
  }
  if (missed_children > 0) {
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: {} child processes were not followed: too many at once\n",
                             missed_children));
  }
}

Result<void> RecordAndWrite(const RecordConfig& config, const StopSignals& signals,
                            std::optional<ChildCommand>& command) {
  ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config.outputs));
  ASSIGN_OR_RETURN(std::unique_ptr<Recording> recording, Recording::Prepare(config, command));
  RETURN_IF_ERROR(recording->Run(signals, command));
  const auto [profile, stats, complete, following] = std::move(*recording).Finish();
  Result<void> written = outputs.Write(profile);
  WriteMessage(STDERR_FILENO, AccountingLine(profile) + "\n");
  if (config.stats) WriteMessage(STDERR_FILENO, StatsReport(stats, *config.stats));
  PrintNotes(config, profile.accounting, stats.sampler.missed_children);
  if (following) {
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: containers that began later may be missing: {}\n",
                             following->message()));
  }
  if (stats.without_debug_info > 0) {
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: the debug information of {} files was not read in time: "
                             "lines and inlined functions of these are missing\n",
                             stats.without_debug_info));
  }
  if (!complete) {
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: not everything could be unwound and named within {} s of "
                             "the end\n",
                             kTimeToFinish.count()));
  }
  return written;
}

// Waits for the command, which may outlive the recording (--duration). Each signal that we get
// meanwhile is passed on.
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
  RETURN_IF_ERROR(RecordAndWrite(config, signals, command));
  if (!command) return 0;
  AwaitEnd(signals, *command);
  return command->Wait();
}

}  // namespace pyrometer
