// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "agent/container_following.h"
#include "agent/destinations.h"
#include "agent/environment_reader.h"
#include "agent/excluded_cgroups.h"
#include "agent/guest.h"
#include "agent/label_rules.h"
#include "agent/local_view.h"
#include "agent/privileges.h"
#include "agent/process_explainer.h"
#include "agent/process_labels.h"
#include "agent/recent_windows.h"
#include "agent/service_manager.h"
#include "agent/targets.h"
#include "agent/window_shipper.h"
#include "base/cgroup_namespace.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pid_namespace.h"
#include "base/stop_signals.h"
#include "foreign/opener_pool.h"
#include "foreign/reader_pool.h"
#include "profiler/profiler.h"
#include "sampler/sample_rate.h"
#include "server/http_server.h"

namespace pyrometer {
namespace {

// From SIGTERM to the end at most 5 s: 2 for the engine's last window, 2 for the sinks.
constexpr std::chrono::seconds kTimeToFinish{2};
constexpr std::chrono::seconds kTimeToSend{2};
constexpr std::chrono::nanoseconds kStep = std::chrono::seconds(1);
// For the page's flame graph; an eighth of the memory budget, but not more than this.
constexpr size_t kMostRecentBytes = size_t{24} << 20;
constexpr size_t kMostLabelSets = 1000;

double CpuLimitOf(const AgentConfig& config) {
  return config.limits.cpu *
         static_cast<double>(std::max<long>(::sysconf(_SC_NPROCESSORS_ONLN), 1));
}

Guest::Limits GuestLimits(const AgentConfig& config) {
  return {.frequency = config.frequency, .cpu = CpuLimitOf(config), .memory = config.limits.memory};
}

DeliverySettings DeliveryOf(const AgentConfig& config) {
  return {.spool = config.spool, .memory = config.limits.memory, .window = config.window};
}

// Dozens of threads would each get a heap of their own, which windows come and go through: two are
// enough for what is allocated here, and what is free goes back to the machine.
void KeepHeapSmall() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 10);
}

class Agent {
 public:
  static Result<std::unique_ptr<Agent>> Start(const AgentOptions& options, AgentConfig config);
  ~Agent() {
    if (environments_ != nullptr) environments_->Stop();  // which calls the profiler
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Until a signal ends it. Returns when that came, or earlier.
  MonotonicTime Run(const StopSignals& signals);

  // Sends what is left. `since`: when it was to begin.
  void Finish(MonotonicTime since);

 private:
  Agent(const AgentOptions& options, AgentConfig config)
      : options_(options), config_(std::move(config)) {}

  Result<std::shared_ptr<ReaderPool>> StartReaders();
  Result<void> OpenProfiler();
  std::unique_ptr<WindowShipper> MakeShipper();
  Result<void> StartServer();
  void ReadEnvironments();
  void Greet() const;
  void Step();
  void LookAtUse(MonotonicTime now);
  void FollowTargets();
  void FollowDropped();
  void TakeNodeLabels();
  void TellServiceManager();
  void Reload();
  Result<void> TakeOver(AgentConfig next);
  Result<void> ChangeSampling(const AgentConfig& next);
  Result<void> ChangeServer(const ServerConfig& before);
  void Exclude();
  void PublishFacts();

  const AgentOptions options_;
  AgentConfig config_;
  const Procfs procfs_;
  const Clock clock_;
  Log log_{clock_};
  const ServiceManager service_manager_{};
  std::unique_ptr<ContainerDirectory> containers_;  // null: none
  std::unique_ptr<NodeLabels> node_labels_;         // null: none is wanted, or they are known
  Labels of_node_;
  std::unique_ptr<EnvironmentReader> environments_;  // null: none is read
  std::unique_ptr<ProcessLabels> labels_;
  std::unique_ptr<Destinations> destinations_;
  std::unique_ptr<RecentWindows> recent_;
  std::unique_ptr<WindowShipper> shipper_;  // outlives the profiler, which it is attached to
  std::unique_ptr<Guest> guest_;
  std::unique_ptr<Profiler> profiler_;
  ConsumerId consumer_ = 0;
  std::unique_ptr<ProcessExplainer> explainer_;
  std::unique_ptr<LocalView> view_;
  std::unique_ptr<HttpServer> server_;
  Targets targets_;
  std::vector<std::string> dropped_;  // cgroups, by the rules
  ExcludedCgroups excluded_{[this](uint64_t cgroup) { return profiler_->Deny(cgroup); },
                            [this](uint64_t cgroup) { profiler_->Allow(cgroup); }, log_};
  LocalView::Facts facts_;
  MonotonicTime last_look_;
  MonotonicTime last_watchdog_;
};

// Null if none are wanted.
Result<std::shared_ptr<ReaderPool>> Agent::StartReaders() {
  constexpr std::string_view kWhat = "sandbox";
  if (!config_.sandbox) {
    log_.Warn(kWhat, "off: the agent itself reads files of the programs it profiles");
    return std::shared_ptr<ReaderPool>();
  }
  Result<std::unique_ptr<ReaderPool>> readers =
      ReaderPool::Start({.clock = std::make_shared<Clock>()});
  if (!readers) {
    return Fail(readers.error().code(),
                "{}; with 'sandbox: off' files of profiled programs are read without a sandbox",
                readers.error().message());
  }
  log_.Tell(kWhat, "foreign files are read behind " + Describe((*readers)->level()));
  return std::shared_ptr<ReaderPool>(*std::move(readers));
}

Result<void> Agent::OpenProfiler() {
  RETURN_IF_ERROR(CheckPidNamespace(procfs_));
  RETURN_IF_ERROR(CheckSampleRate(procfs_, config_.frequency));
  ASSIGN_OR_RETURN(targets_, FindTargets(procfs_, config_.filter));
  ASSIGN_OR_RETURN(Relabeling rules, Relabeling::Compile(RulesOf(config_)));
  // While there is one thread.
  const auto clock = std::make_shared<const Clock>();
  ASSIGN_OR_RETURN(std::shared_ptr<ForeignFiles> files, OpenerPool::Start({.clock = clock}));
  ASSIGN_OR_RETURN(std::shared_ptr<ReaderPool> readers, StartReaders());
  containers_ = FollowContainers(config_.kubernetes, clock_, log_);
  node_labels_ = FollowNode(config_.kubernetes, clock_, log_);
  if (config_.otel_service_name) {
    environments_ = std::make_unique<EnvironmentReader>(procfs_, clock_, files);
  }
  labels_ = std::make_unique<ProcessLabels>(
      ProcessLabels::Limits{.sets = kMostLabelSets},
      ProcessLabels::Sources{.containers = containers_.get(), .environments = environments_.get()});
  labels_->SetRules(std::move(rules));
  ASSIGN_OR_RETURN(profiler_, Profiler::Open({.clock = clock_,
                                              .procfs = procfs_,
                                              .frequency = config_.frequency,
                                              .kernel_stacks = config_.kernel_stacks,
                                              .inlines = config_.inlines,
                                              .dwarf = config_.dwarf,
                                              .demangling = config_.demangling,
                                              .filter = targets_.filter,
                                              .longest_window = config_.window,
                                              .observer = labels_.get(),
                                              .files = std::move(files),
                                              .readers = std::move(readers)}));
  return {};
}

std::unique_ptr<WindowShipper> Agent::MakeShipper() {
  WaitingSamples::Options late;
  if (containers_ != nullptr) {
    using Patience = LabelOutcomes::Patience;
    late.relabel = [this](auto sets) { return labels_->Settle(sets, Patience::kWaits); };
    late.give_up = [this](auto sets) { return labels_->Settle(sets, Patience::kGivesUp); };
  }
  const auto ship = [this](const ShippedWindow& window) {
    recent_->Add(window);
    destinations_->Offer(window);
  };
  auto shipper =
      std::make_unique<WindowShipper>(CommonLabels(config_, {}), ship, clock_, std::move(late));
  shipper->SetLabels(CommonLabels(config_, {}), config_.sample_labels);
  return shipper;
}

Result<std::unique_ptr<Agent>> Agent::Start(const AgentOptions& options, AgentConfig config) {
  std::unique_ptr<Agent> agent(new Agent(options, std::move(config)));
  const AgentConfig& wanted = agent->config_;
  agent->recent_ =
      std::make_unique<RecentWindows>(std::min<size_t>(kMostRecentBytes, wanted.limits.memory / 8));
  // Before any thread, since it changes the environment for gRPC's library.
  agent->destinations_ = std::make_unique<Destinations>(agent->clock_, agent->log_);
  RETURN_IF_ERROR(agent->OpenProfiler());
  agent->shipper_ = agent->MakeShipper();
  agent->guest_ = std::make_unique<Guest>(GuestLimits(wanted), [agent = agent.get()] {
    OwnUse use = MeasureOwnUse(agent->procfs_, Pid(static_cast<uint32_t>(::getpid())));
    use.ticks = agent->profiler_->stats().sampler.tick_time;
    return use;
  });
  ASSIGN_OR_RETURN(Destinations::Plan sinks,
                   agent->destinations_->Prepare(wanted.sinks, DeliveryOf(wanted)));
  agent->destinations_->Apply(std::move(sinks));
  agent->explainer_ = std::make_unique<ProcessExplainer>(
      agent->procfs_, agent->clock_, agent->containers_.get(), agent->environments_.get());
  agent->view_ =
      std::make_unique<LocalView>(LocalView::Parts{.profiler = *agent->profiler_,
                                                   .shipper = *agent->shipper_,
                                                   .recent = *agent->recent_,
                                                   .destinations = *agent->destinations_,
                                                   .guest = *agent->guest_,
                                                   .labels = *agent->labels_,
                                                   .containers = agent->containers_.get(),
                                                   .environments = agent->environments_.get(),
                                                   .explainer = *agent->explainer_,
                                                   .clock = agent->clock_},
                                  LocalView::Facts{});
  agent->PublishFacts();
  RETURN_IF_ERROR(agent->StartServer());
  agent->consumer_ =
      agent->profiler_->Attach(*agent->shipper_, {.length = wanted.window, .aligned = true});
  RETURN_IF_ERROR(agent->profiler_->Start());
  agent->ReadEnvironments();
  agent->Exclude();
  agent->Greet();
  return agent;
}

Result<void> Agent::StartServer() {
  server_.reset();
  const ServerConfig& wanted = config_.server;
  if (wanted.listen.empty()) return {};
  HttpServerOptions options{.clock = clock_};
  options.listen = wanted.listen;
  options.cert_file = wanted.cert_file;
  options.key_file = wanted.key_file;
  options.bearer_token_file = wanted.bearer_token_file;
  ASSIGN_OR_RETURN(server_, WithoutPrivileges([&] {
                     ::pthread_setname_np(::pthread_self(), "server");  // its threads inherit it
                     return HttpServer::Start(*view_, options);
                   }));
  return {};
}

void Agent::ReadEnvironments() {
  if (environments_ == nullptr) return;
  environments_->Start(
      [this](const ProcessKey& process, const LabelSet& labels, const std::string& service) {
        LabelSet named = labels_->OnService(labels, service);
        if (named != nullptr) profiler_->ReplaceLabels(process, labels, std::move(named));
      });
}

void Agent::Greet() const {
  std::string text = fmt::format("pyrometer: sampling at {} Hz", config_.frequency.value);
  for (const Destinations::State& sink : destinations_->states()) {
    text += fmt::format(", {} to {}", sink.name, sink.address);
  }
  if (server_ != nullptr) {
    text += fmt::format("; see {}://{}/", config_.server.cert_file.empty() ? "http" : "https",
                        server_->address());
  }
  WriteMessage(STDERR_FILENO, text + "\n");
  service_manager_.Ready(fmt::format("sampling at {} Hz", config_.frequency.value));
}

MonotonicTime Agent::Run(const StopSignals& signals) {
  last_look_ = last_watchdog_ = clock_.Now();
  pollfd wait{.fd = signals.fd(), .events = POLLIN, .revents = 0};
  const auto step = std::chrono::duration_cast<std::chrono::milliseconds>(kStep);
  while (true) {
    if (::poll(&wait, 1, static_cast<int>(step.count())) > 0) {
      // One to end may come during a reload, which takes its time.
      const MonotonicTime since = clock_.Now();
      while (const std::optional<int> signal = signals.Next()) {
        if (*signal != SIGHUP) return since;
        Reload();
      }
    }
    Step();
  }
}

void Agent::Step() {
  const MonotonicTime now = clock_.Now();
  TellServiceManager();
  view_->SetEngine(profiler_->stats());
  FollowDropped();
  TakeNodeLabels();
  if (Between(last_look_, now) < Guest::kInterval) return;
  last_look_ = now;
  LookAtUse(now);
  FollowTargets();
  Exclude();
  PublishFacts();
}

void Agent::LookAtUse(MonotonicTime now) {
  const Guest::Advice advice = guest_->Look(now);
  if (advice.shed) {
    recent_->Shed();
    profiler_->ShedCaches();
    ::malloc_trim(0);
  }
  if (!advice.frequency) return;
  // Each change is said, which are at most one a minute.
  log_.Tell("CPU budget", fmt::format("sampling at {} Hz from now on, to stay at {:.2f} % of a CPU",
                                      advice.frequency->value, 100 * CpuLimitOf(config_)));
  const Result<void> changed =
      profiler_->Change({.frequency = advice.frequency, .filter = std::nullopt});
  if (!changed) log_.Failed("changing the frequency", changed.error());
}

// Cgroups come and go, and a name may mean another one than before.
void Agent::FollowTargets() {
  if (config_.filter.cgroups.empty() && config_.filter.exclude_cgroups.empty()) return;
  Result<Targets> found = FindTargets(procfs_, config_.filter);
  if (!found) {
    log_.Failed("looking for cgroups", found.error());
    return;
  }
  if (found->filter.cgroups != targets_.filter.cgroups) {
    const Result<void> changed =
        profiler_->Change({.frequency = std::nullopt, .filter = found->filter});
    if (!changed) {
      log_.Failed("following cgroups", changed.error());
      return;
    }
  }
  targets_ = *std::move(found);
}

// Every second: a process that the rules keep may begin below a cgroup that they drop.
void Agent::FollowDropped() {
  std::optional<std::vector<std::string>> dropped = labels_->TakeDroppedCgroups();
  if (!dropped || *dropped == dropped_) return;
  dropped_ = *std::move(dropped);
  Exclude();
}

void Agent::TakeNodeLabels() {
  if (node_labels_ == nullptr) return;
  std::optional<Labels> known = node_labels_->Get();
  if (!known) return;
  node_labels_.reset();
  of_node_ = *std::move(known);
  shipper_->SetLabels(CommonLabels(config_, of_node_), config_.sample_labels);
  PublishFacts();
}

// A name may mean another cgroup than before, and what could not be excluded is tried again.
void Agent::Exclude() {
  excluded_.Exclude(targets_.denied, FindVersion2Cgroups(procfs_, dropped_));
}

void Agent::TellServiceManager() {
  const auto interval = ServiceManager::WatchdogInterval();
  const MonotonicTime now = clock_.Now();
  if (!interval || Between(last_watchdog_, now) < *interval / 3) return;
  last_watchdog_ = now;
  // An engine that hangs is for the service manager to restart.
  if (view_->WhyNotHealthy().empty()) service_manager_.Watchdog();
}

void Agent::Reload() {
  service_manager_.Reloading(clock_.Now());
  Result<AgentConfig> next = MakeAgentConfig(options_);
  Result<void> taken = next ? TakeOver(*std::move(next)) : std::move(next).error();
  if (taken) {
    ++facts_.reloads;
    facts_.reload_error.clear();
    const std::string& but = facts_.server_error;
    WriteMessage(STDERR_FILENO,
                 fmt::format("pyrometer: the configuration was read again and is in force{}{}\n",
                             but.empty() ? "" : ", but for the server: ", but));
  } else {
    ++facts_.failed_reloads;
    facts_.reload_error = taken.error().message();
    WriteMessage(STDERR_FILENO, fmt::format("pyrometer: the old configuration stays in force: {}\n",
                                            facts_.reload_error));
  }
  PublishFacts();
  service_manager_.Ready(fmt::format("sampling at {} Hz", config_.frequency.value));
}

// What can fail comes first, so that a refused configuration leaves the old one in force whole.
Result<void> Agent::TakeOver(AgentConfig next) {
  if (next.kernel_stacks != config_.kernel_stacks) {
    return Fail(ErrorCode::kUnsupported, "kernel_stacks cannot change while the agent runs");
  }
  if (next.inlines != config_.inlines) {
    return Fail(ErrorCode::kUnsupported, "inlines cannot change while the agent runs");
  }
  if (next.dwarf != config_.dwarf) {
    return Fail(ErrorCode::kUnsupported, "symbols.dwarf cannot change while the agent runs");
  }
  if (next.demangling != config_.demangling) {
    return Fail(ErrorCode::kUnsupported, "symbols.demangle cannot change while the agent runs");
  }
  if (next.sandbox != config_.sandbox) {
    return Fail(ErrorCode::kUnsupported, "sandbox cannot change while the agent runs");
  }
  if (next.otel_service_name != config_.otel_service_name) {
    return Fail(ErrorCode::kUnsupported, "otel_service_name cannot change while the agent runs");
  }
  if (!IsSameSource(next.kubernetes, config_.kubernetes)) {
    return Fail(ErrorCode::kUnsupported,
                "of kubernetes only node_name and pod_labels can change while the agent runs");
  }
  RETURN_IF_ERROR(CheckSampleRate(procfs_, next.frequency));
  ASSIGN_OR_RETURN(Relabeling rules, Relabeling::Compile(RulesOf(next)));
  ASSIGN_OR_RETURN(Destinations::Plan sinks, destinations_->Prepare(next.sinks, DeliveryOf(next)));
  RETURN_IF_ERROR(ChangeSampling(next));
  if (labels_->SetRules(std::move(rules))) profiler_->ShowProcessesAgain();
  destinations_->Apply(std::move(sinks));
  profiler_->SetPeriod(consumer_, {.length = next.window, .aligned = true});
  shipper_->SetLabels(CommonLabels(next, of_node_), next.sample_labels);
  guest_->SetLimits(GuestLimits(next));
  const ServerConfig before = std::exchange(config_, std::move(next)).server;
  const Result<void> served = ChangeServer(before);
  facts_.server_error = served ? "" : served.error().message();
  return {};
}

Result<void> Agent::ChangeSampling(const AgentConfig& next) {
  ASSIGN_OR_RETURN(Targets targets, FindTargets(procfs_, next.filter));
  SamplingChange change;
  if (next.frequency != guest_->status().frequency) change.frequency = next.frequency;
  if (!(targets == targets_)) change.filter = targets.filter;
  if (change.frequency || change.filter) RETURN_IF_ERROR(profiler_->Change(change));
  targets_ = std::move(targets);
  Exclude();
  return {};
}

// The server is the last to change: if its new address is taken, the old one is served again, and
// the next reload tries anew.
Result<void> Agent::ChangeServer(const ServerConfig& before) {
  const bool runs = server_ != nullptr || before.listen.empty();
  if (config_.server == before && runs) return {};
  Result<void> started = StartServer();
  if (started || config_.server == before) return started;
  config_.server = before;
  const Result<void> back = StartServer();
  if (!back) log_.Failed("the old server", back.error());
  return started;
}

void Agent::PublishFacts() {
  facts_.config = config_;
  facts_.labels = CommonLabels(config_, of_node_);
  facts_.of_node = of_node_;
  facts_.missing_cgroups = targets_.missing;
  view_->SetFacts(facts_);
}

void Agent::Finish(MonotonicTime since) {
  service_manager_.Stopping();
  // Whatever takes longer takes it from what comes after.
  const MonotonicTime end = After(since, kTimeToFinish + kTimeToSend);
  server_.reset();
  const bool complete = profiler_->Stop(After(since, kTimeToFinish));
  if (environments_ != nullptr) environments_->Stop();  // which calls the profiler
  // What is not named by now gets the names that can be had without reading files, and is consumed
  // before this returns.
  profiler_.reset();
  shipper_->EndPeriod();
  const MonotonicTime sent = std::min(After(clock_.Now(), kTimeToSend), end);
  for (const Destinations::State& sink : destinations_->Close(sent)) {
    for (const std::string& line : AccountingLines(sink)) WriteMessage(STDERR_FILENO, line + "\n");
  }
  if (!complete) {
    WriteMessage(STDERR_FILENO,
                 "pyrometer: not everything could be unwound and named within 2 s of the end\n");
  }
}

// Before the privilege for it goes. Without it only paths are others.
void SeeCgroupsOfTheMachine() {
  const Result<void> entered = EnterMachineCgroupNamespace(Procfs{});
  if (entered) return;
  WriteMessage(
      STDERR_FILENO,
      fmt::format("pyrometer: paths of cgroups are as this container sees them, \"/../..\" "
                  "outside of its own: {}\n",
                  entered.error().message()));
}

}  // namespace

Result<int> RunAgent(const AgentOptions& options) {
  ASSIGN_OR_RETURN(AgentConfig config, MakeAgentConfig(options));
  ASSIGN_OR_RETURN(const StopSignals signals, StopSignals::Block(StopSignals::Also::kHangup));
  SeeCgroupsOfTheMachine();
  RETURN_IF_ERROR(KeepOnlyProfilingPrivileges(Procfs{}));
  KeepHeapSmall();
  ASSIGN_OR_RETURN(const std::unique_ptr<Agent> agent, Agent::Start(options, std::move(config)));
  const MonotonicTime stopped = agent->Run(signals);
  agent->Finish(stopped);
  return 0;
}

}  // namespace pyrometer
