// SPDX-License-Identifier: Apache-2.0
#include "config/label.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

TEST(ParseLabel, SplitsAtTheFirstEqualsSign) {
  EXPECT_EQ(*ParseLabel("service=checkout"), Label("service", "checkout"));
  EXPECT_EQ(*ParseLabel("_a1=x=y z"), Label("_a1", "x=y z"));
  EXPECT_EQ(*ParseLabel("city=Köln €𝄞"), Label("city", "Köln €𝄞"));
}

TEST(ParseLabel, RefusesAWrongOneAndSaysWhy) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "has no '='"},
      {"service", "has no '='"},
      {"=x", "label name ''"},
      {"1a=x", "no digit first"},
      {"a-b=x", "label name 'a-b'"},
      {"ä=x", "only have letters"},
      {"a=", "has no value"},
      {"pid=1", "is reserved"},
      {"comm=x", "is reserved"},
      {"thread=x", "is reserved"},
      {"a=x\ny", "not printable"},
      {"a=\x7f", "not printable"},
      {"a=\xff", "not printable"},
      {"a=\xc3", "not printable"},
      {"a=\xc0\xaf", "not printable"},
      {"a=\xe0\x80\xaf", "not printable"},
      {"a=\xed\xa0\x80", "not printable"},
      {"a=\xf4\x90\x80\x80", "not printable"},
      {"a=\u202e", "not printable"},
  };
  for (const auto& [text, reason] : cases) {
    const Result<Label> label = ParseLabel(text);
    ASSERT_FALSE(label.has_value()) << text;
    EXPECT_EQ(label.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_NE(label.error().message().find(reason), std::string::npos) << label.error().message();
  }
}

TEST(ParseLabels, KeepsTheirOrder) {
  const std::vector<std::string> texts = {"b=1", "a=2"};
  EXPECT_EQ(*ParseLabels(texts), (std::vector<Label>{{"b", "1"}, {"a", "2"}}));
}

TEST(ParseLabels, RefusesANameGivenTwice) {
  const std::vector<std::string> texts = {"a=1", "a=2"};
  const Result<std::vector<Label>> labels = ParseLabels(texts);
  ASSERT_FALSE(labels.has_value());
  EXPECT_EQ(labels.error().message(), "label 'a' is given twice");
}

}  // namespace
}  // namespace pyrometer
