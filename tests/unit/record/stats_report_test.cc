// SPDX-License-Identifier: Apache-2.0
#include "record/stats_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

namespace pyrometer {
namespace {

using testing::HasSubstr;

TEST(StatsReport, ExplainsEveryCounterInOneLine) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Stat& stat : ListStats({})) {
    EXPECT_FALSE(stat.help.empty()) << stat.name;
    EXPECT_EQ(stat.help.find('\n'), std::string_view::npos) << stat.name;
    EXPECT_TRUE(seen.emplace(stat.name, stat.label_value).second) << stat.name << " twice";
  }
  EXPECT_GT(seen.size(), 70U);
}

TEST(StatsReport, HasALineForEachInText) {
  ProfilerStats stats;
  stats.ticks.filtered = 17;
  stats.cold.unwound = 3;
  const std::string text = StatsReport(stats, StatsFormat::kText);
  EXPECT_THAT(text, HasSubstr("          17  ticks_total{outcome=filtered} "));
  EXPECT_THAT(text, HasSubstr("           3  cold_samples_unwound_total "));
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '\n')), ListStats(stats).size());
}

TEST(StatsReport, TellsQuantilesOfThePublishLatency) {
  ProfilerStats stats;
  stats.processes.publish_us_median = 210;
  stats.processes.publish_us_99_percent = 4100;
  stats.processes.publish_us_longest = 9007;
  const std::string text = StatsReport(stats, StatsFormat::kText);
  EXPECT_THAT(text, HasSubstr("         210  publish_latency_us{quantile=0.5} "));
  EXPECT_THAT(text, HasSubstr("        4100  publish_latency_us{quantile=0.99} "));
  EXPECT_THAT(text, HasSubstr("        9007  publish_latency_us{quantile=1} "));
}

TEST(StatsReport, IsAnArrayOfObjectsInJson) {
  ProfilerStats stats;
  stats.ticks.idle = 5;
  const auto json = nlohmann::json::parse(StatsReport(stats, StatsFormat::kJson));
  ASSERT_EQ(json.size(), ListStats(stats).size());
  EXPECT_EQ(json[1]["name"], "ticks_total");
  EXPECT_EQ(json[1]["labels"]["outcome"], "idle");
  EXPECT_EQ(json[1]["value"], 5);
  EXPECT_EQ(json[1]["help"], "ticks that hit an idle CPU");
}

}  // namespace
}  // namespace pyrometer
