// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_metrics.h"

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/latency_histogram.h"
#include "doctor/version.h"

namespace pyrometer {
namespace {

using Seconds = std::chrono::duration<double>;

class MetricList {
 public:
  void Add(std::string name, double value, std::string help, Labels labels = {}) {
    metrics_.push_back({.name = std::move(name),
                        .labels = std::move(labels),
                        .value = value,
                        .help = std::move(help)});
  }
  void Add(std::string name, uint64_t value, std::string help, Labels labels = {}) {
    Add(std::move(name), static_cast<double>(value), std::move(help), std::move(labels));
  }
  void Add(std::string name, const LatencyHistogram& times, std::string help, Labels labels) {
    metrics_.push_back({.name = std::move(name),
                        .labels = std::move(labels),
                        .help = std::move(help),
                        .histogram = HistogramOf(times)});
  }
  std::vector<Metric> Take() && { return std::move(metrics_); }

 private:
  // The bounds are those of the histogram's own buckets, 2^n - 1 us, so that nothing is estimated:
  // 1 ms to 67 s.
  static MetricHistogram HistogramOf(const LatencyHistogram& times) {
    MetricHistogram histogram{
        .buckets = {}, .count = times.count(), .sum = Seconds(times.sum()).count()};
    for (unsigned bits = 10; bits <= 26; bits += 2) {
      const std::chrono::microseconds bound((1LL << bits) - 1);
      histogram.buckets.push_back(
          {.at_most = Seconds(bound).count(), .cumulative = times.CountUpTo(bound)});
    }
    return histogram;
  }

  std::vector<Metric> metrics_;
};

// Engine counters are in Prometheus' form, but for times in microseconds and the label that is
// Prometheus' own for summaries.
void AddEngine(const ProfilerStats& engine, MetricList& list) {
  constexpr std::string_view kMicroseconds = "_us";
  constexpr std::string_view kTotal = "_total";
  for (const Stat& stat : ListStats(engine)) {
    Labels labels;
    if (!stat.label.empty()) {
      labels.emplace_back(stat.label == "quantile" ? "share" : stat.label, stat.label_value);
    }
    std::string name(stat.name);
    std::string help(stat.help);
    double value = static_cast<double>(stat.value);
    const size_t end = name.size() - (name.ends_with(kTotal) ? kTotal.size() : 0);
    if (std::string_view(name).substr(0, end).ends_with(kMicroseconds)) {
      name.replace(end - kMicroseconds.size(), kMicroseconds.size(), "_seconds");
      if (const size_t unit = help.find("microseconds"); unit != std::string::npos) {
        help.erase(unit, std::string_view("micro").size());
      }
      value /= 1e6;
    }
    list.Add(std::move(name), value, std::move(help), std::move(labels));
  }
}

void AddShipping(const AgentCounters& counters, MetricList& list) {
  list.Add("shipped_windows_total", counters.shipped.periods, "windows made into profiles");
  list.Add("shipped_profiles_total", counters.shipped.profiles,
           "profiles made of them, one for each label set");
  list.Add("shipped_samples_total", counters.shipped.samples, "ticks in these profiles");
  list.Add("missed_samples_total", counters.shipped.missed,
           "ticks of windows that were dropped because making profiles did not keep up");
  list.Add("recent_windows_bytes", counters.recent_bytes,
           "memory of the windows that are kept for the page's flame graph");
  constexpr const char* kName = "window_duration_seconds";
  constexpr const char* kHelp =
      "how long a window took: stage named, from its end until its frames had names; stage built, "
      "making its profiles";
  list.Add(kName, counters.latency.named, kHelp, {{"stage", "named"}});
  list.Add(kName, counters.latency.built, kHelp, {{"stage", "built"}});
}

void AddDropped(const std::string& name, const std::map<std::string, uint64_t>& dropped,
                const std::string& help, const Labels& sink, MetricList& list) {
  for (const auto& [reason, count] : dropped) {
    Labels labels = sink;
    labels.emplace_back("reason", reason);
    list.Add(name, count, help, labels);
  }
}

void AddTicks(const DeliveryTicks& ticks, const Labels& sink, MetricList& list) {
  list.Add("sink_samples_offered_total", ticks.offered, "ticks in profiles for this sink", sink);
  list.Add("sink_samples_delivered_total", ticks.delivered, "ticks that this sink has taken", sink);
  AddDropped("sink_samples_dropped_total", ticks.dropped,
             "ticks that this sink will never get, by reason", sink, list);
  list.Add("sink_samples_in_memory", ticks.in_memory, "ticks that wait in memory for this sink",
           sink);
  list.Add("sink_samples_spooled", ticks.spooled, "ticks that wait on disk for this sink", sink);
}

// At any moment: found = delivered + the sum of dropped + spooled.
void AddFound(const DeliveryTicks& found, const Labels& sink, MetricList& list) {
  list.Add("sink_found_samples", found.offered,
           "ticks that an earlier run, or configuration, had left in the spool", sink);
  list.Add("sink_found_samples_delivered_total", found.delivered,
           "of these: that this sink has taken", sink);
  std::map<std::string, uint64_t> dropped = found.dropped;
  // A series that begins with more than 0 shows no increase to Prometheus.
  dropped.try_emplace("maybe_arrived", 0);
  AddDropped("sink_found_samples_dropped_total", dropped,
             "of these: that this sink will never get, by reason", sink, list);
  list.Add("sink_found_samples_spooled", found.spooled, "of these: that still wait on disk", sink);
}

double SecondsSinceEpoch(std::chrono::system_clock::time_point when) {
  return Seconds(when.time_since_epoch()).count();
}

void AddSink(const Destinations::State& state, MetricList& list) {
  const Labels sink = {{"sink", state.name}};
  const DeliveryCounters& counters = state.counters;
  AddTicks(counters.ticks, sink, list);
  for (const auto& [how, count] : counters.altered) {
    Labels labels = sink;
    labels.emplace_back("how", how);
    list.Add("sink_altered_total", count,
             "labels, or ticks of stacks, that were changed to fit this sink, by how", labels);
  }
  AddFound(counters.found_in_spool, sink, list);
  list.Add("sink_sent_total", counters.parcels_delivered, "requests that this sink has taken",
           sink);
  list.Add("sink_sent_bytes_total", counters.bytes_delivered, "bytes of their bodies, compressed",
           sink);
  list.Add("sink_rejected_total", counters.parcels_rejected,
           "requests that this sink did not want; never sent again", sink);
  list.Add("sink_attempts_total", counters.attempts, "requests sent, or tried", sink);
  list.Add("sink_retried_total", counters.retries, "of these: of what had been tried before", sink);
  list.Add("sink_queued_windows", counters.windows_waiting, "windows that wait to be encoded",
           sink);
  list.Add("sink_queued_requests", counters.parcels_in_memory, "requests that wait in memory",
           sink);
  list.Add("sink_queued_bytes", counters.bytes_in_memory, "bytes of these", sink);
  list.Add("sink_spool_files", counters.spool_files, "windows that wait on disk", sink);
  list.Add("sink_spool_bytes", counters.spool_bytes, "bytes of these", sink);
  list.Add("sink_failing", uint64_t{counters.is_failing ? 1U : 0U},
           "1 if the last attempt failed and more follow", sink);
  if (counters.last_success) {
    list.Add("sink_last_success_timestamp_seconds", SecondsSinceEpoch(*counters.last_success),
             "when this sink last took something", sink);
  }
  if (counters.oldest_waiting) {
    list.Add("sink_oldest_waiting_timestamp_seconds", SecondsSinceEpoch(*counters.oldest_waiting),
             "when the oldest window began of which something still waits", sink);
  }
}

void AddLeftSpools(const LeftSpools::Counters& left, MetricList& list) {
  list.Add("left_spool_files", left.files, "windows on disk for sinks that are not configured now");
  list.Add("left_spool_bytes", left.bytes, "bytes of these");
  for (const auto& [reason, ticks] : left.dropped_ticks) {
    list.Add("left_spool_samples_dropped_total", ticks,
             "ticks that waited for sinks that are not configured now and went, by reason",
             {{"reason", reason}});
  }
  list.Add("left_spool_unreadable_files_total", left.unreadable_files,
           "of what went, windows whose ticks are not all known");
}

void AddEnvironments(const AgentCounters& counters, MetricList& list) {
  if (!counters.environments) return;
  const EnvironmentReader::Counters& environments = *counters.environments;
  constexpr const char* kEnvironments = "environments_total";
  constexpr const char* kHelp =
      "processes whose environment was to be asked for OTEL_SERVICE_NAME; outcome gone: they had "
      "ended, refused: it may not be read, late: there was no answer in time, left_out: too many "
      "were waiting";
  list.Add(kEnvironments, environments.read, kHelp, {{"outcome", "read"}});
  list.Add(kEnvironments, environments.gone, kHelp, {{"outcome", "gone"}});
  list.Add(kEnvironments, environments.refused, kHelp, {{"outcome", "refused"}});
  list.Add(kEnvironments, environments.late, kHelp, {{"outcome", "late"}});
  list.Add(kEnvironments, environments.left_out, kHelp, {{"outcome", "left_out"}});
}

void AddContainers(const AgentCounters& counters, MetricList& list) {
  if (!counters.containers) return;
  const ContainerDirectory::Counters& containers = *counters.containers;
  constexpr const char* kContainers = "containers";
  constexpr const char* kHelp =
      "containers and sandboxes of pods; state known: the container runtime has told of it, "
      "awaited: it is being asked for, unknown: the runtime does not know it, or cannot be asked";
  list.Add(kContainers, containers.known, kHelp, {{"state", "known"}});
  list.Add(kContainers, containers.awaited, kHelp, {{"state", "awaited"}});
  list.Add(kContainers, containers.unknown, kHelp, {{"state", "unknown"}});
  list.Add("container_listings_total", containers.listings,
           "times that the container runtime was asked for all of its containers");
  list.Add("container_listing_failures_total", containers.failures, "of these: in vain");
  const WaitingSamples::Counters& waiting = counters.shipped.waiting;
  list.Add("waiting_samples", waiting.waiting,
           "ticks that wait until the container runtime has told of their container");
  list.Add("late_samples_total", waiting.late, "ticks that have waited so");
  list.Add("late_unknown_samples_total", waiting.in_vain,
           "of these: the runtime did not tell in time");
  list.Add("container_unknown_samples_total", counters.nameless_samples,
           "ticks that did not wait, since the container runtime had not told before or cannot be "
           "asked");
  list.Add(
      "late_dropped_samples_total", waiting.dropped,
      "ticks that rules or the pod drop, found after they were named; exported in ticks_total");
}

void AddGuest(const AgentCounters& counters, MetricList& list) {
  const Guest::Status& guest = counters.guest;
  list.Add("process_cpu_seconds_total", Seconds(guest.use.cpu).count(),
           "CPU time of the agent and its children");
  list.Add("process_resident_memory_bytes", guest.use.resident_bytes,
           "resident memory of the agent and its children");
  list.Add("process_kernel_memory_bytes", guest.use.kernel_bytes,
           "memory of the agent's BPF maps and programs");
  list.Add("process_open_fds", guest.use.open_files, "open file descriptors of the agent");
  list.Add("process_threads", guest.use.threads, "threads of the agent");
  list.Add("cpu_usage_ratio", guest.cpu,
           "share of one CPU that the agent used of late, ticks included");
  list.Add("frequency_hertz", uint64_t{guest.frequency.value}, "ticks a second and CPU, now");
  list.Add("configured_frequency_hertz", uint64_t{counters.configured.value},
           "what is configured; the CPU budget may lower it");
  list.Add("frequency_lowered_total", guest.slowdowns,
           "times that the frequency was lowered to stay within the CPU budget");
  list.Add("memory_shed_total", guest.sheds,
           "times that caches were given up to stay within the memory budget");
  constexpr const char* kReloads = "configuration_reloads_total";
  constexpr const char* kHelp = "times that the configuration was read again, by outcome";
  list.Add(kReloads, counters.reloads, kHelp, {{"outcome", "applied"}});
  list.Add(kReloads, counters.failed_reloads, kHelp, {{"outcome", "refused"}});
  list.Add("build_info", uint64_t{1}, "what runs here", {{"version", Version()}});
}

}  // namespace

std::vector<Metric> AgentMetrics(const AgentCounters& counters) {
  MetricList list;
  AddEngine(counters.engine, list);
  AddShipping(counters, list);
  for (const Destinations::State& sink : counters.sinks) AddSink(sink, list);
  AddLeftSpools(counters.left_spools, list);
  AddContainers(counters, list);
  AddEnvironments(counters, list);
  AddGuest(counters, list);
  return std::move(list).Take();
}

}  // namespace pyrometer
