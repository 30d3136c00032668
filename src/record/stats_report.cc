// SPDX-License-Identifier: Apache-2.0
#include "record/stats_report.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace pyrometer {
namespace {

std::string ToText(const std::vector<Stat>& stats) {
  std::string text;
  for (const Stat& stat : stats) {
    const std::string name =
        stat.label.empty() ? std::string(stat.name)
                           : fmt::format("{}{{{}={}}}", stat.name, stat.label, stat.label_value);
    fmt::format_to(std::back_inserter(text), "{:>12}  {:<52}  {}\n", stat.value, name, stat.help);
  }
  return text;
}

std::string ToJson(const std::vector<Stat>& stats) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Stat& stat : stats) {
    nlohmann::ordered_json one;
    one["name"] = stat.name;
    one["labels"] = nlohmann::ordered_json::object();
    if (!stat.label.empty()) one["labels"][std::string(stat.label)] = stat.label_value;
    one["value"] = stat.value;
    one["help"] = stat.help;
    list.push_back(std::move(one));
  }
  return list.dump(2) + "\n";
}

}  // namespace

std::string StatsReport(const ProfilerStats& stats, StatsFormat format) {
  const std::vector<Stat> list = ListStats(stats);
  return format == StatsFormat::kJson ? ToJson(list) : ToText(list);
}

}  // namespace pyrometer
