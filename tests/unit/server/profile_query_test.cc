// SPDX-License-Identifier: Apache-2.0
#include "server/profile_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(ProfileQuery, IsThirtySecondsOfEverythingUnlessTold) {
  const auto query = ParseProfileQuery({});
  ASSERT_TRUE(query);
  EXPECT_EQ(query->duration, std::chrono::seconds(30));
  EXPECT_TRUE(query->Everything());
}

TEST(ProfileQuery, TakesAValueUpToTheNextParameter) {
  EXPECT_THAT(ParseQuery("/p?label=pod=web=1&seconds=5&&comm=a%3db+c&odd=%zz%4&flag"),
              ElementsAre(Pair("label", "pod=web=1"), Pair("seconds", "5"), Pair("comm", "a=b c"),
                          Pair("odd", "%zz%4"), Pair("flag", "")));
  EXPECT_THAT(ParseQuery("/p"), IsEmpty());
  EXPECT_THAT(ParseQuery("/p?"), IsEmpty());
}

TEST(ProfileQuery, TakesTheFirstOfSeveralDurations) {
  const auto query = ParseProfileQuery({{"seconds", "14"}, {"seconds", "x"}, {"debug", "1"}});
  ASSERT_TRUE(query) << query.error().message();
  EXPECT_EQ(query->duration, std::chrono::seconds(14));
}

TEST(ProfileQuery, ReadsRepeatedFilters) {
  const auto query = ParseProfileQuery({{"pid", "1"},
                                        {"pid", "77"},
                                        {"comm", "nginx"},
                                        {"label", "namespace=shop"},
                                        {"label", "namespace=a=b"},
                                        {"label", "pod="}});
  ASSERT_TRUE(query) << query.error().message();
  EXPECT_THAT(query->pids, ElementsAre(Pid(1), Pid(77)));
  EXPECT_THAT(query->comms, ElementsAre("nginx"));
  EXPECT_THAT(query->labels.at("namespace"), ElementsAre("shop", "a=b"));
  EXPECT_THAT(query->labels.at("pod"), ElementsAre(""));
}

TEST(ProfileQuery, RefusesWhatItCannotDoAndSaysWhat) {
  const std::vector<std::pair<std::string, std::string>> bad = {{"seconds", "0"},
                                                                {"seconds", "-1"},
                                                                {"seconds", "601"},
                                                                {"seconds", "1.5"},
                                                                {"seconds", ""},
                                                                {"seconds", "5s"},
                                                                {"seconds", "99999999999999999999"},
                                                                {"pid", "0"},
                                                                {"pid", "abc"},
                                                                {"pid", "4294967296"},
                                                                {"comm", ""},
                                                                {"label", "x"},
                                                                {"label", "=x"}};
  for (const auto& parameter : bad) {
    const auto query = ParseProfileQuery({parameter});
    ASSERT_FALSE(query) << parameter.first << "=" << parameter.second;
    EXPECT_EQ(query.error().code(), ErrorCode::kInvalid);
    EXPECT_THAT(query.error().message(), HasSubstr(parameter.first + "="));
  }
  EXPECT_FALSE(ParseProfileQuery(QueryParameters(200, {"pid", "1"})));
}

ProfileSample Sample(uint32_t pid, const std::string& comm, Labels labels) {
  ProfileSample sample;
  sample.process.pid = Pid(pid);
  sample.comm = comm;
  sample.labels = std::make_shared<const Labels>(std::move(labels));
  return sample;
}

TEST(ProfileQuery, MatchesOneOfEachKind) {
  const ProfileSample sample = Sample(7, "nginx", {{"pod", "web-1"}});
  const Labels common = {{"cluster", "blue"}, {"pod", "of the node"}};
  const auto matches = [&](const QueryParameters& parameters) {
    return Matches(*ParseProfileQuery(parameters), sample, common);
  };
  EXPECT_TRUE(matches({}));
  EXPECT_TRUE(matches({{"pid", "1"}, {"pid", "7"}}));
  EXPECT_FALSE(matches({{"pid", "1"}}));
  EXPECT_FALSE(matches({{"pid", "7"}, {"comm", "redis"}}));
  EXPECT_FALSE(matches({{"comm", "ngin"}}));
  EXPECT_TRUE(matches({{"label", "pod=web-1"}, {"label", "pod=web-2"}, {"label", "cluster=blue"}}));
  EXPECT_FALSE(matches({{"label", "pod=of the node"}}));  // its own label wins
  EXPECT_FALSE(matches({{"label", "pod=web-1"}, {"label", "cluster=green"}}));
  EXPECT_FALSE(matches({{"label", "unknown="}}));
}

}  // namespace
}  // namespace pyrometer
