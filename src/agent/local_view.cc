// SPDX-License-Identifier: Apache-2.0
#include "agent/local_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/profile_collector.h"
#include "base/clock.h"
#include "doctor/version.h"
#include "profile/html.h"
#include "profile/pprof.h"

namespace pyrometer {
namespace {

// How long the engine may take for a window before we say that it hangs: a window, the longest wait
// for symbols, and time for a machine that is overloaded.
constexpr std::chrono::seconds kPatience{60};

// Values of labels to choose from are those of the last windows.
constexpr std::chrono::minutes kChoices{5};

std::string HostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

std::vector<std::string> InWords(const FilterConfig& filter) {
  std::vector<std::string> words;
  if (!filter.comms.empty()) {
    words.push_back(fmt::format("processes and threads named {}", fmt::join(filter.comms, ", ")));
  }
  if (!filter.cgroups.empty()) {
    words.push_back(fmt::format("cgroups {}", fmt::join(filter.cgroups, ", ")));
  }
  if (!filter.exclude_cgroups.empty()) {
    words.push_back(fmt::format("not cgroups {}", fmt::join(filter.exclude_cgroups, ", ")));
  }
  return words;
}

SinkStatus StatusOf(const Destinations::State& state, std::chrono::system_clock::time_point now) {
  const DeliveryCounters& counters = state.counters;
  SinkStatus sink;
  sink.name = state.name;
  sink.type = state.type;
  sink.address = state.address;
  if (counters.oldest_waiting) sink.behind = now - *counters.oldest_waiting;
  sink.queued = counters.parcels_in_memory;
  sink.spooled = counters.spool_files;
  sink.spooled_bytes = counters.spool_bytes;
  sink.sent = counters.parcels_delivered;
  sink.rejected = counters.parcels_rejected;
  sink.retried = counters.retries;
  sink.bytes = counters.bytes_delivered;
  sink.dropped_samples = counters.ticks.dropped;
  for (const auto& [reason, samples] : counters.found_in_spool.dropped) {
    sink.dropped_samples[reason] += samples;
  }
  if (counters.last_failure) {
    sink.last_error = counters.last_failure->message;
    sink.last_error_at = counters.last_failure->when;
  }
  if (counters.is_failing) {
    sink.state = SinkStatus::State::kFailing;
  } else if (counters.spool_files > 0) {
    sink.state = SinkStatus::State::kBehind;
  }
  return sink;
}

CostStatus CostOf(const Guest::Status& guest, const LimitsConfig& limits) {
  const double cpus = static_cast<double>(std::max<long>(::sysconf(_SC_NPROCESSORS_ONLN), 1));
  return {.cpu_cores = guest.cpu,
          .cpu_limit = limits.cpu * cpus,
          .resident_bytes = guest.use.resident_bytes,
          .kernel_bytes = guest.use.kernel_bytes,
          .memory_limit = limits.memory};
}

}  // namespace

LocalView::LocalView(const Parts& parts, Facts facts)
    : parts_(parts),
      since_(parts.clock.WallNow()),
      began_(parts.clock.Now()),
      facts_(std::move(facts)),
      engine_(parts.profiler.stats()) {}

void LocalView::SetFacts(Facts facts) {
  const absl::MutexLock lock(&mutex_);
  facts_ = std::move(facts);
}

void LocalView::SetEngine(const ProfilerStats& engine) {
  const absl::MutexLock lock(&mutex_);
  engine_ = engine;
}

ProfilerStats LocalView::engine() const {
  const absl::MutexLock lock(&mutex_);
  return engine_;
}

LocalView::Facts LocalView::facts() const {
  const absl::MutexLock lock(&mutex_);
  return facts_;
}

std::vector<Metric> LocalView::Metrics() {
  const Facts known = facts();
  return AgentMetrics({.engine = engine(),
                       .shipped = parts_.shipper.counters(),
                       .latency = parts_.shipper.latency(),
                       .sinks = parts_.destinations.states(),
                       .left_spools = parts_.destinations.left_spools(),
                       .containers = parts_.containers == nullptr
                                         ? std::nullopt
                                         : std::optional(parts_.containers->counters()),
                       .nameless_samples = parts_.labels.nameless_samples(),
                       .environments = parts_.environments == nullptr
                                           ? std::nullopt
                                           : std::optional(parts_.environments->counters()),
                       .recent_bytes = parts_.recent.bytes(),
                       .guest = parts_.guest.status(),
                       .configured = known.config.frequency,
                       .reloads = known.reloads,
                       .failed_reloads = known.failed_reloads});
}

SamplingStatus LocalView::Sampling(const Facts& known) const {
  const ProfilerStats stats = engine();
  const WindowShipper::Counters shipped = parts_.shipper.counters();
  SamplingStatus sampling{.frequency = parts_.guest.status().frequency,
                          .configured = known.config.frequency,
                          .cpus = static_cast<uint32_t>(stats.sampler.sampled_cpus),
                          .since = since_,
                          .window = known.config.window,
                          .filters = InWords(known.config.filter),
                          .windows = shipped.periods,
                          .last_window = std::nullopt,
                          .processes = stats.sampler.mappings.processes,
                          .ticks = stats.ticks,
                          .cuts = {}};
  // For who looks at the page it is one whether rules leave samples out here or in the kernel.
  const uint64_t unwanted =
      std::min(stats.processes.unwanted_samples + shipped.waiting.dropped, stats.ticks.exported);
  sampling.ticks.exported -= unwanted;
  sampling.ticks.filtered += unwanted;
  if (const auto last = parts_.shipper.last_end()) sampling.last_window = last->wall;
  for (size_t i = 0; i < shipped.ends.size(); ++i) {
    const auto end = static_cast<StackEnd>(i);
    if (IsCut(end) && shipped.ends[i] > 0) sampling.cuts[std::string(Name(end))] = shipped.ends[i];
  }
  return sampling;
}

AgentStatus LocalView::Status() {
  const Facts known = facts();
  AgentStatus status;
  status.host = HostName();
  status.version = Version();
  status.labels = known.labels;
  status.sampling = Sampling(known);
  const auto now = parts_.clock.WallNow();
  for (const Destinations::State& sink : parts_.destinations.states()) {
    status.sinks.push_back(StatusOf(sink, now));
  }
  status.cost = CostOf(parts_.guest.status(), known.config.limits);
  status.choices = parts_.recent.Choices(now - kChoices);
  status.warnings = WhyNotHealthy();
  if (parts_.guest.status().over_cpu) {
    status.warnings.push_back(
        "The agent needs more of the CPUs than limits.cpu allows even at the lowest frequency.");
  }
  if (!known.reload_error.empty()) {
    status.warnings.push_back("The new configuration was refused, the old one is in force: " +
                              known.reload_error);
  }
  for (const std::string& path : known.missing_cgroups) {
    status.warnings.push_back(
        fmt::format("There is no cgroup {} now; it is looked for every 10 seconds.", path));
  }
  if (!known.server_error.empty()) {
    status.warnings.push_back("The server is as it was before the last configuration: " +
                              known.server_error);
  }
  return status;
}

std::vector<std::string> LocalView::WhyNotHealthy() {
  const auto last = parts_.shipper.last_end();
  const auto silent = Between(last ? last->monotonic : began_, parts_.clock.Now());
  const auto window = facts().config.window;
  if (silent <= window + kPatience) return {};
  return {fmt::format("No window was finished for {} s.",
                      std::chrono::duration_cast<std::chrono::seconds>(silent).count())};
}

std::vector<std::string> LocalView::WhyNotReady() {
  std::vector<std::string> reasons = WhyNotHealthy();
  if (!parts_.shipper.last_end()) reasons.emplace_back("The first window is not finished yet.");
  return reasons;
}

Result<std::string> LocalView::FlameGraph(const ProfileQuery& query) {
  RecentWindows::Keep keep;
  if (!query.Everything()) {
    keep = [&](const ProfileSample& sample, const Labels& common) {
      return Matches(query, sample, common);
    };
  }
  const auto recent = parts_.recent.Since(parts_.clock.WallNow() - query.duration, keep);
  return EncodeHtml(recent.profile, {.title = "CPU profile",
                                     .host = HostName(),
                                     .filter = InWords(query),
                                     .of = recent.samples,
                                     .lowest = recent.lowest});
}

Result<std::string> LocalView::Explain(Pid pid) {
  const Facts known = facts();
  return parts_.explainer.Explain(known.config, known.of_node, pid);
}

Result<std::string> LocalView::CollectProfile(const ProfileQuery& query,
                                              const std::stop_token& stop) {
  const Labels labels = facts().labels;
  CollectOptions options{.duration = query.duration, .labels = labels};
  if (parts_.containers != nullptr) {
    options.complete = [this](Profile& profile) { parts_.labels.SettleNow(profile); };
  }
  if (!query.Everything()) {
    options.keep = [&](const ProfileSample& sample) { return Matches(query, sample, labels); };
  }
  ASSIGN_OR_RETURN(const Profile profile,
                   pyrometer::CollectProfile(parts_.profiler, parts_.clock, options, stop));
  return EncodePprof(profile);
}

}  // namespace pyrometer
