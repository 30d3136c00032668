// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_text.h"

#include <fmt/format.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace pyrometer {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string MetricName(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9' && !clean.empty()) || c == '_';
    clean += allowed ? c : '_';
  }
  return clean;
}

MetricType TypeOf(const Metric& metric) {
  if (metric.histogram) return MetricType::Histogram;
  return metric.name.ends_with("_total") ? MetricType::Counter : MetricType::Gauge;
}

ClientMetric::Histogram MakeHistogram(const MetricHistogram& from) {
  ClientMetric::Histogram histogram;
  histogram.sample_count = from.count;
  histogram.sample_sum = from.sum;
  for (const MetricHistogram::Bucket& bucket : from.buckets) {
    histogram.bucket.push_back(
        {.cumulative_count = bucket.cumulative, .upper_bound = bucket.at_most});
  }
  return histogram;
}

ClientMetric MakeMetric(const Metric& from) {
  ClientMetric metric;
  for (const auto& [name, value] : from.labels) {
    metric.label.push_back({.name = MetricName(name), .value = Printable(value)});
  }
  metric.counter.value = from.value;
  metric.gauge.value = from.value;
  if (from.histogram) metric.histogram = MakeHistogram(*from.histogram);
  return metric;
}

// A family with what is needed to add to it.
struct Family {
  MetricFamily metrics;
  std::set<std::vector<ClientMetric::Label>> labels;
  std::vector<std::pair<std::string, std::string>> helps;  // of which label values, and what
};

// "exported: ticks that became samples; idle: ticks that hit an idle CPU", or the one there is.
std::string JoinHelps(const Family& family) {
  const auto& helps = family.helps;
  const auto differs = [&](const auto& help) { return help.second != helps[0].second; };
  if (std::none_of(helps.begin(), helps.end(), differs)) return helps[0].second;
  std::string joined;
  for (const auto& [of, help] : helps) {
    if (!joined.empty()) joined += "; ";
    joined += of.empty() ? help : fmt::format("{}: {}", of, help);
  }
  return joined;
}

class Families {
 public:
  void Add(const Metric& metric) {
    std::string name = "pyrometer_" + MetricName(metric.name);
    const auto [at, is_new] = places_.try_emplace(name, families_.size());
    if (is_new) {
      Family& made = families_.emplace_back();
      made.metrics.name = std::move(name);
      made.metrics.type = TypeOf(metric);
    }
    Family& family = families_[at->second];
    if (family.metrics.type != TypeOf(metric)) return;
    ClientMetric made = MakeMetric(metric);
    std::vector<ClientMetric::Label> labels = made.label;
    std::sort(labels.begin(), labels.end());
    if (!family.labels.insert(std::move(labels)).second) return;
    std::string of;
    for (const ClientMetric::Label& label : made.label)
      of += (of.empty() ? "" : ", ") + label.value;
    family.helps.emplace_back(std::move(of), Printable(metric.help));
    family.metrics.metric.push_back(std::move(made));
  }

  std::vector<MetricFamily> Take() && {
    std::vector<MetricFamily> metrics;
    for (Family& family : families_) {
      family.metrics.help = JoinHelps(family);
      metrics.push_back(std::move(family.metrics));
    }
    return metrics;
  }

 private:
  std::map<std::string, size_t> places_;
  std::vector<Family> families_;
};

}  // namespace

std::string MetricsText(std::span<const Metric> metrics) {
  Families families;
  for (const Metric& metric : metrics) families.Add(metric);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, std::move(families).Take());
  return std::move(out).str();
}

}  // namespace pyrometer
