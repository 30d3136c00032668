// SPDX-License-Identifier: Apache-2.0
#include "server/status_json.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "server/shown_numbers.h"
#include "server/status_warnings.h"

namespace pyrometer {
namespace {

using nlohmann::json;

json TextsJson(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) list.push_back(Printable(text));
  return list;
}

json CountsJson(const std::map<std::string, uint64_t>& counts) {
  json object = json::object();
  for (const auto& [reason, count] : counts) object[Printable(reason)] = count;
  return object;
}

json TimeJson(const std::optional<WallTime>& time) {
  return time ? json(MachineTime(*time)) : json(nullptr);
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

json TicksJson(const Accounting& ticks) {
  json lost = json::object();
  for (size_t i = 0; i < ticks.lost.size(); ++i) {
    lost[std::string(Name(static_cast<Accounting::Lost>(i)))] = ticks.lost[i];
  }
  return {{"total", ticks.Ticks()},  {"exported", ticks.exported},
          {"idle", ticks.idle},      {"filtered", ticks.filtered},
          {"lost", std::move(lost)}, {"undelivered", ticks.undelivered}};
}

json SamplingJson(const SamplingStatus& sampling) {
  return {{"frequency_hz", sampling.frequency.value},
          {"configured_frequency_hz", sampling.configured.value},
          {"cpus", sampling.cpus},
          {"since", MachineTime(sampling.since)},
          {"window_seconds", Seconds(sampling.window)},
          {"filters", TextsJson(sampling.filters)},
          {"windows", sampling.windows},
          {"last_window", TimeJson(sampling.last_window)},
          {"processes", sampling.processes},
          {"ticks", TicksJson(sampling.ticks)},
          {"cut_stacks", CountsJson(sampling.cuts)}};
}

json SinkJson(const SinkStatus& sink) {
  return {{"name", Printable(sink.name)},
          {"type", Printable(sink.type)},
          {"address", Printable(sink.address)},
          {"state", Name(sink.state)},
          {"behind_seconds", sink.behind ? json(Seconds(*sink.behind)) : json(nullptr)},
          {"queued", sink.queued},
          {"spooled", sink.spooled},
          {"spooled_bytes", sink.spooled_bytes},
          {"sent", sink.sent},
          {"rejected", sink.rejected},
          {"retried", sink.retried},
          {"bytes", sink.bytes},
          {"dropped_samples", CountsJson(sink.dropped_samples)},
          {"last_error", Printable(sink.last_error)},
          {"last_error_at", TimeJson(sink.last_error_at)}};
}

json CostJson(const CostStatus& cost) {
  return {{"cpu_cores", cost.cpu_cores},
          {"cpu_limit_cores", cost.cpu_limit},
          {"resident_bytes", cost.resident_bytes},
          {"kernel_bytes", cost.kernel_bytes},
          {"memory_limit_bytes", cost.memory_limit}};
}

json ChoicesJson(const std::vector<LabelChoice>& choices) {
  json list = json::array();
  for (const LabelChoice& choice : choices) {
    json values = json::array();
    for (const LabelChoice::Value& value : choice.values) {
      values.push_back({{"value", Printable(value.value)}, {"samples", value.samples}});
    }
    list.push_back({{"label", Printable(choice.name)},
                    {"values", std::move(values)},
                    {"values_left_out", choice.left_out}});
  }
  return list;
}

}  // namespace

std::string StatusJson(const AgentStatus& status) {
  json labels = json::object();
  for (const auto& [name, value] : status.labels) labels[Printable(name)] = Printable(value);
  json sinks = json::array();
  for (const SinkStatus& sink : status.sinks) sinks.push_back(SinkJson(sink));
  const json all = {{"host", Printable(status.host)},
                    {"version", Printable(status.version)},
                    {"labels", std::move(labels)},
                    {"warnings", TextsJson(WarningsOf(status))},
                    {"sampling", SamplingJson(status.sampling)},
                    {"sinks", std::move(sinks)},
                    {"cost", CostJson(status.cost)},
                    {"recent_labels", ChoicesJson(status.choices)}};
  return all.dump() + "\n";
}

}  // namespace pyrometer
