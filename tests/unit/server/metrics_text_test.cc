// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <set>
#include <sstream>

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Metric> SomeMetrics() {
  return {
      {.name = "ticks_total",
       .labels = {{"outcome", "exported"}},
       .value = 12345678901,
       .help = "ticks that became samples"},
      {.name = "ticks_total",
       .labels = {{"outcome", "idle"}},
       .value = 5,
       .help = "ticks that hit an idle CPU"},
      {.name = "resident_bytes", .labels = {}, .value = 1.5e7, .help = "memory"},
      {.name = "sink_sent_total",
       .labels = {{"sink", "a \"b\"\\c\nd"}},
       .value = 1,
       .help = "sent"},
      {.name = "window_latency_seconds",
       .labels = {},
       .help = "from swap to delivered",
       .histogram = MetricHistogram{.buckets = {{.at_most = 0.1, .cumulative = 1},
                                                {.at_most = 1, .cumulative = 3}},
                                    .count = 4,
                                    .sum = 3.25}},
      {.name = "sink_sent_total", .labels = {{"sink", "other"}}, .value = 2, .help = "sent"},
  };
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What every Prometheus wants of the text; nothing here knows how it was made.
void CheckFormat(const std::string& text) {
  static const std::regex kHelp("# HELP (pyrometer_[a-z0-9_]+) .+");
  static const std::regex kType("# TYPE (pyrometer_[a-z0-9_]+) (counter|gauge|histogram)");
  static const std::regex kSample(
      R"re((pyrometer_[a-z0-9_]+)(\{([a-z_][a-z0-9_]*="([^"\\]|\\[\\n"])*",?)+\})? )re"
      R"re((-?[0-9.e+-]+|\+Inf|-Inf|Nan))re");
  std::set<std::string> families;
  std::set<std::string> series;
  std::string family;
  std::string type;
  for (const std::string& line : Lines(text)) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      family = match[1];
      EXPECT_TRUE(families.insert(family).second) << "twice: " << line;
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_EQ(match[1], family) << line;
      type = match[2];
      EXPECT_EQ(type == "counter", family.ends_with("_total")) << line;
    } else {
      ASSERT_TRUE(std::regex_match(line, match, kSample)) << line;
      EXPECT_TRUE(match[1].str().starts_with(family)) << line;
      EXPECT_TRUE(type == "histogram" || match[1] == family) << line;
      EXPECT_TRUE(series.insert(match[1].str() + match[2].str()).second) << "twice: " << line;
    }
  }
}

TEST(MetricsText, KeepsTheRulesOfTheFormat) {
  CheckFormat(MetricsText(SomeMetrics()));
}

TEST(MetricsText, GathersAFamilyThatStandsApart) {
  EXPECT_THAT(MetricsText(SomeMetrics()),
              HasSubstr("# HELP pyrometer_sink_sent_total sent\n"
                        "# TYPE pyrometer_sink_sent_total counter\n"
                        "pyrometer_sink_sent_total{sink=\"a \\\"b\\\"\\\\c\xEF\xBF\xBD"
                        "d\"} 1\n"
                        "pyrometer_sink_sent_total{sink=\"other\"} 2\n"));
}

TEST(MetricsText, SaysAllHelpsOfAFamilyWhoseMembersMeanDifferentThings) {
  EXPECT_THAT(MetricsText(SomeMetrics()),
              HasSubstr("# HELP pyrometer_ticks_total exported: ticks that became samples; "
                        "idle: ticks that hit an idle CPU\n"));
}

TEST(MetricsText, WritesLargeCountersExactly) {
  EXPECT_THAT(MetricsText(SomeMetrics()), HasSubstr("{outcome=\"exported\"} 12345678901\n"));
}

TEST(MetricsText, WritesHistogramsWithTheirInfiniteBucket) {
  const std::string text = MetricsText(SomeMetrics());
  EXPECT_THAT(text, HasSubstr("# TYPE pyrometer_window_latency_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("pyrometer_window_latency_seconds_bucket{le=\"1\"} 3\n"
                              "pyrometer_window_latency_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("pyrometer_window_latency_seconds_count 4\n"));
  EXPECT_THAT(text, HasSubstr("pyrometer_window_latency_seconds_sum 3.25\n"));
}

TEST(MetricsText, LeavesOutWhatPrometheusWouldRefuseEverythingFor) {
  const std::string text = MetricsText(std::vector<Metric>{
      {.name = "a-b c", .labels = {{"x.y", "\xff"}}, .value = 1, .help = "two\nlines"},
      {.name = "bytes", .labels = {{"k", "v"}}, .value = 1, .help = "b"},
      {.name = "bytes", .labels = {{"k", "v"}}, .value = 2, .help = "b"},
      {.name = "bytes", .labels = {}, .help = "b", .histogram = MetricHistogram{}},
  });
  CheckFormat(text);
  EXPECT_THAT(text, HasSubstr("pyrometer_a_b_c{x_y=\"\xEF\xBF\xBD\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("pyrometer_bytes{k=\"v\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("{k=\"v\"} 2")));
  EXPECT_THAT(text, Not(HasSubstr("bytes_bucket")));
}

}  // namespace
}  // namespace pyrometer
