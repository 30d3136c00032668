// SPDX-License-Identifier: Apache-2.0
#include "export/series_labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/printable.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(FitLabels, LeavesAloneWhatFits) {
  const Labels labels = {{"namespace", "default"}, {"pod", "nginx-0"}, {"service_name", "nginx"}};
  const SeriesLabels fitted = FitLabels(labels, {});
  EXPECT_EQ(fitted.labels, labels);
  EXPECT_THAT(fitted.altered, IsEmpty());
}

TEST(FitLabels, SanitisesNamesAndSortsThem) {
  const SeriesLabels fitted =
      FitLabels({{"0a", "1"}, {"app.kubernetes.io/name", "2"}, {"z", "3"}, {"\xC3\xA4", "4"}}, {});
  EXPECT_THAT(fitted.labels, ElementsAre(Pair("_0a", "1"), Pair("app_kubernetes_io_name", "2"),
                                         Pair("label__", "4"), Pair("z", "3")));
  EXPECT_THAT(fitted.altered, ElementsAre(Pair("label_renamed", 3)));
}

TEST(FitLabels, KeepsApartWhatSanitisingMakesEqual) {
  const SeriesLabels fitted = FitLabels({{"a-b", "1"}, {"a.b", "2"}, {"a_b", "3"}}, {});
  EXPECT_THAT(fitted.labels, ElementsAre(Pair("a_b", "3"), Pair("a_b_2", "1"), Pair("a_b_3", "2")));
}

TEST(FitLabels, DropsEmptyAndReservedLabels) {
  const SeriesLabels fitted = FitLabels(
      {{"", "x"}, {"__meta_pid", "1"}, {"__name__", "mine"}, {"__tmp_x", "1"}, {"a", ""}}, {});
  EXPECT_THAT(fitted.labels, IsEmpty());
  EXPECT_THAT(fitted.altered, ElementsAre(Pair("label_reserved", 1)));
}

TEST(FitLabels, ShortensNamesAndValuesVisibly) {
  const SeriesLabels fitted = FitLabels(
      {{"long", std::string(50, 'v')}, {std::string(50, 'n'), "x"}, {"utf", "ab\xC3\xA4\xC3\xA4"}},
      {.labels = 30, .name = 10, .value = 6});
  EXPECT_THAT(fitted.labels, ElementsAre(Pair("long", "vvv..."), Pair("nnnnnnnnnn", "x"),
                                         Pair("utf", "ab\xC3\xA4\xC3\xA4")));
  EXPECT_THAT(fitted.altered, ElementsAre(Pair("label_shortened", 2)));
}

TEST(FitLabels, MakesEveryValuePrintable) {
  const SeriesLabels fitted = FitLabels({{"a", "x\xFFy\n"}}, {});
  EXPECT_THAT(fitted.labels, ElementsAre(Pair("a", "x\xEF\xBF\xBDy\xEF\xBF\xBD")));
  EXPECT_THAT(fitted.altered, ElementsAre(Pair("label_cleaned", 1)));
}

TEST(FitLabels, DropsWhatIsTooManyButNeverTheService) {
  Labels labels = {{"service_name", "nginx"}, {"zone", "b"}};
  for (int i = 0; i < 40; ++i) labels.emplace_back(fmt::format("l{:02}", i), "x");
  const SeriesLabels fitted = FitLabels(labels, {.labels = 30});
  EXPECT_EQ(fitted.labels.size(), 30);
  EXPECT_EQ(ValueOf(fitted.labels, "service_name"), "nginx");
  EXPECT_EQ(ValueOf(fitted.labels, "l28"), "x");
  EXPECT_EQ(ValueOf(fitted.labels, "l29"), "");
  EXPECT_THAT(fitted.altered, ElementsAre(Pair("label_limit", 12)));
}

TEST(SeriesText, IsWhatPeopleWrite) {
  EXPECT_EQ(SeriesText({}), "{}");
  EXPECT_EQ(SeriesText({{"a", "b\"c\\"}, {"d", "e"}}), R"({a="b\"c\\",d="e"})");
}

}  // namespace
}  // namespace pyrometer
