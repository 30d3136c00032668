// SPDX-License-Identifier: Apache-2.0
#include "agent/warnings.h"

#include <fmt/format.h>

#include <cstdint>

namespace pyrometer {
namespace {

// Below that a share is noise: a new process's first samples, say.
constexpr double kManyLost = 0.01;
constexpr double kManyCut = 0.05;
constexpr uint64_t kFewTicks = 1000;

void WarnOfSink(const SinkStatus& sink, std::vector<std::string>& warnings) {
  if (sink.state == SinkStatus::State::kFailing) {
    warnings.push_back(
        fmt::format("Sink {} ({}) takes nothing: {}", sink.name, sink.address, sink.last_error));
  }
  uint64_t dropped = 0;
  std::string reasons;
  for (const auto& [reason, samples] : sink.dropped_samples) {
    dropped += samples;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", samples, reason);
  }
  if (dropped > 0) {
    warnings.push_back(
        fmt::format("{} samples will never reach sink {}: {}", dropped, sink.name, reasons));
  }
}

void WarnOfSamples(const SamplingStatus& sampling, std::vector<std::string>& warnings) {
  const Accounting& ticks = sampling.ticks;
  const double taken = static_cast<double>(ticks.exported + ticks.TotalLost());
  if (taken < static_cast<double>(kFewTicks)) return;
  if (const double lost = static_cast<double>(ticks.TotalLost()) / taken; lost > kManyLost) {
    warnings.push_back(
        fmt::format("{:.1f} % of the samples were lost; see the ticks below", 100 * lost));
  }
  uint64_t cut = 0;
  for (const auto& [reason, samples] : sampling.cuts) cut += samples;
  if (const double share = static_cast<double>(cut) / taken; share > kManyCut) {
    warnings.push_back(
        fmt::format("{:.1f} % of the stacks stop early; see the reasons below", 100 * share));
  }
}

}  // namespace

std::vector<std::string> WarningsOf(const AgentStatus& status) {
  std::vector<std::string> warnings;
  for (const SinkStatus& sink : status.sinks) WarnOfSink(sink, warnings);
  const CostStatus& cost = status.cost;
  if (status.sampling.frequency < status.sampling.configured) {
    warnings.push_back(fmt::format(
        "The agent needed more than {:.1f} % of a CPU, so it takes {} samples a second instead of "
        "{}. Raise limits.cpu or lower frequency.",
        100 * cost.cpu_limit, status.sampling.frequency.value, status.sampling.configured.value));
  }
  if (cost.memory_limit > 0 && cost.resident_bytes + cost.kernel_bytes > cost.memory_limit) {
    warnings.push_back(
        "The agent needs more memory than limits.memory allows, although it gave up its caches.");
  }
  WarnOfSamples(status.sampling, warnings);
  return warnings;
}

}  // namespace pyrometer
