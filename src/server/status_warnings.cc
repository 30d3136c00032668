// SPDX-License-Identifier: Apache-2.0
#include "server/status_warnings.h"

#include <fmt/format.h>

#include "server/shown_numbers.h"

namespace pyrometer {
namespace {

constexpr double kMuchLost = 0.01;
constexpr double kMuchCut = 0.2;

uint64_t Sum(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [reason, count] : counts) sum += count;
  return sum;
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AddSampling(const SamplingStatus& sampling, std::vector<std::string>& warnings) {
  if (sampling.frequency.value < sampling.configured.value) {
    warnings.push_back(fmt::format(
        "Samples are taken at {} Hz instead of {} Hz, for the agent to stay within its CPU budget.",
        sampling.frequency.value, sampling.configured.value));
  }
  const double lost = Share(sampling.ticks.TotalLost(), sampling.ticks.Ticks());
  if (lost > kMuchLost) {
    warnings.push_back(
        fmt::format("{} of all ticks were lost; the reasons are below.", ShownShare(lost)));
  }
  const double cut = Share(Sum(sampling.cuts), sampling.ticks.exported);
  if (cut > kMuchCut) {
    warnings.push_back(fmt::format(
        "{} of the stacks are cut: frames towards their roots are missing.", ShownShare(cut)));
  }
}

// `exported`: ticks since the agent began.
void AddSink(const SinkStatus& sink, uint64_t exported, std::vector<std::string>& warnings) {
  if (sink.state == SinkStatus::State::kFailing) {
    warnings.push_back(fmt::format("Nothing arrives at {}{}{}", sink.name,
                                   sink.last_error.empty() ? "." : ": ", sink.last_error));
  } else if (sink.state == SinkStatus::State::kBehind) {
    warnings.push_back(
        fmt::format("{} is behind by {}.", sink.name,
                    ShownDuration(sink.behind.value_or(std::chrono::nanoseconds(0)))));
  }
  if (const uint64_t dropped = Sum(sink.dropped_samples); dropped > 0) {
    warnings.push_back(fmt::format(
        "{} samples for {} were dropped since the agent began, {} of all; the reasons are below.",
        ShownCount(dropped), sink.name, ShownShare(Share(dropped, exported))));
  }
}

}  // namespace

std::vector<std::string> WarningsOf(const AgentStatus& status) {
  std::vector<std::string> warnings = status.warnings;
  AddSampling(status.sampling, warnings);
  for (const SinkStatus& sink : status.sinks)
    AddSink(sink, status.sampling.ticks.exported, warnings);
  const CostStatus& cost = status.cost;
  if (cost.memory_limit > 0 && cost.resident_bytes + cost.kernel_bytes > cost.memory_limit) {
    warnings.push_back(fmt::format("The agent has {} of memory, more than its budget of {}.",
                                   ShownBytes(cost.resident_bytes + cost.kernel_bytes),
                                   ShownBytes(cost.memory_limit)));
  }
  return warnings;
}

}  // namespace pyrometer
