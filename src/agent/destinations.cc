// SPDX-License-Identifier: Apache-2.0
#include "agent/destinations.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "agent/privileges.h"
#include "agent/sinks.h"
#include "export/grpc_client.h"
#include "export/outbox.h"
#include "export/spool_directory.h"

namespace pyrometer {
namespace {

// For a sink that a new configuration does without.
constexpr std::chrono::seconds kTimeToLeave{2};
// Hosts that are aligned to the wall clock close their windows at the same moment: their pushes
// are spread over a twentieth of the window.
constexpr int kJitterPart = 20;
constexpr uint64_t kMostMemory = uint64_t{32} << 20;

void BecomeNetworkThread() {
  ::pthread_setname_np(::pthread_self(), "sink");
  DropThreadPrivileges();
  // Delivery can wait; what it has taken from the kernel is safe. Linux has a niceness per thread.
  ::setpriority(PRIO_PROCESS, 0, 5);
}

// Parcels are encoded as their sink sends them: one that speaks another protocol from now on does
// not find those of before.
std::string ProtocolOf(const SinkConfig& config) {
  if (config.type == SinkType::kPyroscope && config.ingest) return "ingest";
  if (config.type == SinkType::kOtlp && config.grpc) return "otlp-grpc";
  return std::string(Name(config.type));
}

std::string SpoolOf(const SinkConfig& config) {
  return SpoolNameOf(config.name) + "." + ProtocolOf(config);
}

OutboxOptions OptionsOf(const SinkConfig& config, const DeliverySettings& settings,
                        uint64_t spooled_sinks) {
  OutboxOptions options;
  options.name = config.name;
  options.concurrency = config.concurrency;
  options.max_memory = std::min(kMostMemory, settings.memory / 8);
  options.retry.min_backoff = config.retry.min_backoff;
  options.retry.max_backoff = config.retry.max_backoff;
  options.retry.at_least_once = config.retry.at_least_once;
  options.max_age = settings.spool.max_age;
  options.on_thread_start = BecomeNetworkThread;
  if (config.type == SinkType::kFile) return options;  // a disk that fails needs no second one
  options.jitter = settings.window / kJitterPart;
  if (settings.spool.max_size == 0) return options;
  options.spool =
      SpoolOptions{.directory = settings.spool.directory + "/" + SpoolOf(config),
                   .max_size = settings.spool.max_size / std::max<uint64_t>(spooled_sinks, 1),
                   .max_age = settings.spool.max_age};
  return options;
}

uint64_t CountSpooled(const std::vector<SinkConfig>& sinks) {
  return static_cast<uint64_t>(
      std::ranges::count_if(sinks, [](const SinkConfig& s) { return s.type != SinkType::kFile; }));
}

// "delivered=8 spooled=0 dropped=2 (rejected=2)"
std::string DeliveryOf(const DeliveryTicks& ticks) {
  uint64_t dropped = 0;
  std::string reasons;
  for (const auto& [reason, count] : ticks.dropped) {
    dropped += count;
    reasons += fmt::format("{}{}={}", reasons.empty() ? "" : " ", reason, count);
  }
  return fmt::format("delivered={} spooled={} dropped={}{}{}{}", ticks.delivered, ticks.spooled,
                     dropped, reasons.empty() ? "" : " (", reasons, reasons.empty() ? "" : ")");
}

}  // namespace

struct Destinations::Destination {
  SinkConfig config;
  std::unique_ptr<ProfileSink> sink;
  std::unique_ptr<Outbox> outbox;  // before the sink at the end
};

Destinations::Destinations(const Clock& clock, Log& log) : clock_(clock), log_(log) {
  GrpcClient::ConfigureLibrary();  // not when a new configuration is the first to name such a sink
}

Destinations::~Destinations() {
  Close(clock_.Now());
}

Result<Destinations::Plan> Destinations::Prepare(const std::vector<SinkConfig>& sinks,
                                                 const DeliverySettings& settings) const {
  List old;
  {
    const absl::MutexLock lock(&mutex_);
    old = list_;
  }
  Plan plan{
      .next = {}, .fresh = {}, .gone = {}, .settings = settings, .spooled = CountSpooled(sinks)};
  // With another number of sinks each has another share of the spool.
  const auto goes_on = [&](const SinkConfig& config) {
    return settings == settings_ && (plan.spooled == spooled_ || config.type == SinkType::kFile);
  };
  for (const SinkConfig& config : sinks) {
    const auto known = std::ranges::find_if(
        old, [&](const auto& d) { return d->config == config && goes_on(config); });
    if (known != old.end()) {
      plan.next.push_back(*known);
      continue;
    }
    auto made = std::make_shared<Destination>();
    made->config = config;
    ASSIGN_OR_RETURN(made->sink, WithoutPrivileges([&] { return MakeSink(config, clock_); }));
    plan.fresh.push_back(made.get());
    plan.next.push_back(std::move(made));
  }
  std::ranges::copy_if(old, std::back_inserter(plan.gone), [&](const auto& d) {
    return std::ranges::find(plan.next, d) == plan.next.end();
  });
  return plan;
}

// A spool's directory is one outbox's at a time, so the old ones end before the new ones begin.
void Destinations::Apply(Plan plan) {
  settings_ = std::move(plan.settings);
  spooled_ = plan.spooled;
  {
    const absl::MutexLock lock(&mutex_);
    std::erase_if(
        list_, [&](const auto& d) { return std::ranges::find(plan.gone, d) != plan.gone.end(); });
    is_holding_ = true;
  }
  LeaveSpoolsAlone();  // one of them may be for a sink that comes back
  CloseAll(plan.gone, After(clock_.Now(), kTimeToLeave));
  // The last that is heard of their ticks.
  for (const State& gone : StatesOf(plan.gone)) {
    for (const std::string& line : AccountingLines(gone)) {
      log_.Tell("ends with the old configuration", line);
    }
  }
  KeepLeftSpools(plan.next);
  for (Destination* const made : plan.fresh) {
    made->outbox = std::make_unique<Outbox>(OptionsOf(made->config, settings_, spooled_),
                                            *made->sink, clock_, log_);
  }
  const absl::MutexLock lock(&mutex_);
  for (const ShippedWindow& window : held_) {
    for (Destination* const made : plan.fresh) made->outbox->Offer(window);
  }
  held_.clear();
  is_holding_ = false;
  list_ = std::move(plan.next);
}

void Destinations::KeepLeftSpools(const List& list) {
  if (settings_.spool.max_size == 0) return;
  LeftSpools::Options options;
  options.directory = settings_.spool.directory;
  options.max_size = settings_.spool.max_size;
  options.max_age = settings_.spool.max_age;
  options.on_thread_start = BecomeNetworkThread;
  for (const auto& destination : list) {
    if (destination->config.type != SinkType::kFile)
      options.used.insert(SpoolOf(destination->config));
  }
  const absl::MutexLock lock(&mutex_);
  left_spools_ = std::make_unique<LeftSpools>(std::move(options), std::exchange(left_before_, {}),
                                              clock_, log_);
}

void Destinations::LeaveSpoolsAlone() {
  std::unique_ptr<LeftSpools> ending;
  {
    const absl::MutexLock lock(&mutex_);
    ending = std::move(left_spools_);
    if (ending == nullptr) return;
    left_before_ = ending->counters();
  }
  LeftSpools::Counters last = ending->Stop();
  const absl::MutexLock lock(&mutex_);
  left_before_ = std::move(last);
}

LeftSpools::Counters Destinations::left_spools() const {
  const absl::MutexLock lock(&mutex_);
  return left_spools_ != nullptr ? left_spools_->counters() : left_before_;
}

void Destinations::Offer(const ShippedWindow& window) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& destination : list_) destination->outbox->Offer(window);
  if (is_holding_) held_.push_back(window);
}

void Destinations::CloseAll(const List& list, MonotonicTime deadline) {
  std::vector<std::jthread> closing;
  closing.reserve(list.size());
  for (const auto& destination : list) {
    closing.emplace_back([outbox = destination->outbox.get(), deadline] {
      BecomeNetworkThread();
      outbox->Close(deadline);
    });
  }
}

std::vector<Destinations::State> Destinations::Close(MonotonicTime deadline) {
  List list;
  {
    const absl::MutexLock lock(&mutex_);
    list = std::exchange(list_, {});
  }
  LeaveSpoolsAlone();
  CloseAll(list, deadline);
  return StatesOf(list);
}

std::vector<Destinations::State> Destinations::states() const {
  const absl::MutexLock lock(&mutex_);
  return StatesOf(list_);
}

std::vector<Destinations::State> Destinations::StatesOf(const List& list) {
  std::vector<State> states;
  states.reserve(list.size());
  for (const auto& destination : list) {
    states.push_back({.name = destination->config.name,
                      .type = std::string(Name(destination->config.type)),
                      .address = ShownAddress(destination->config),
                      .counters = destination->outbox->counters()});
  }
  return states;
}

std::string_view Name(SinkType type) {
  switch (type) {
    case SinkType::kPyroscope:
      return "pyroscope";
    case SinkType::kParca:
      return "parca";
    case SinkType::kOtlp:
      return "otlp";
    case SinkType::kFile:
      break;
  }
  return "file";
}

std::vector<std::string> AccountingLines(const Destinations::State& sink) {
  const DeliveryTicks& ticks = sink.counters.ticks;
  const DeliveryTicks& found = sink.counters.found_in_spool;
  std::vector<std::string> lines = {
      fmt::format("sink {}: offered={} {}", sink.name, ticks.offered, DeliveryOf(ticks))};
  if (found.offered > 0) {
    lines.push_back(
        fmt::format("sink {}: found={} {}", sink.name, found.offered, DeliveryOf(found)));
  }
  return lines;
}

std::string ShownAddress(const SinkConfig& sink) {
  if (sink.type == SinkType::kFile) return sink.directory;
  const size_t scheme = sink.url.find("://");
  const size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t at = sink.url.find('@', host);
  const size_t path = sink.url.find('/', host);
  if (at == std::string::npos || (path != std::string::npos && path < at)) return sink.url;
  return sink.url.substr(0, host) + sink.url.substr(at + 1);
}

}  // namespace pyrometer
