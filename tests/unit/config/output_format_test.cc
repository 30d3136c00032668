// SPDX-License-Identifier: Apache-2.0
#include "config/output_format.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pyrometer {
namespace {

TEST(ParseOutputFormat, ReadsBackEveryName) {
  for (const OutputFormat format :
       {OutputFormat::kPprof, OutputFormat::kFolded, OutputFormat::kHtml, OutputFormat::kText}) {
    EXPECT_EQ(*ParseOutputFormat(Name(format)), format);
  }
}

TEST(ParseOutputFormat, ListsTheChoicesForAnUnknownName) {
  const Result<OutputFormat> format = ParseOutputFormat("svg");
  ASSERT_FALSE(format.has_value());
  EXPECT_EQ(format.error().message(), "unknown format 'svg'; choose pprof, folded, html or text");
}

TEST(ChooseOutputs, FollowsTheNameOfTheFile) {
  const std::pair<std::string, OutputFormat> cases[] = {
      {"a.pb.gz", OutputFormat::kPprof}, {"/tmp/a.b.folded", OutputFormat::kFolded},
      {"a.html", OutputFormat::kHtml},   {"a.txt", OutputFormat::kText},
      {"-", OutputFormat::kText},
  };
  for (const auto& [path, format] : cases) {
    const auto outputs = ChooseOutputs(std::vector{path}, std::nullopt);
    ASSERT_TRUE(outputs.has_value()) << path;
    ASSERT_EQ(outputs->size(), 1U);
    EXPECT_EQ(outputs->front().path, path);
    EXPECT_EQ(outputs->front().format, format) << path;
  }
}

TEST(ChooseOutputs, UsesTheFormatWhereTheNameDoesNotTell) {
  const std::vector<std::string> paths = {"-", "profile", "a.html"};
  const auto outputs = ChooseOutputs(paths, OutputFormat::kFolded);
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ((*outputs)[0].format, OutputFormat::kFolded);
  EXPECT_EQ((*outputs)[1].format, OutputFormat::kFolded);
  EXPECT_EQ((*outputs)[2].format, OutputFormat::kHtml);
}

TEST(ChooseOutputs, WritesToStandardOutputIfOnlyAFormatIsGiven) {
  const auto outputs = ChooseOutputs({}, OutputFormat::kFolded);
  ASSERT_TRUE(outputs.has_value());
  ASSERT_EQ(outputs->size(), 1U);
  EXPECT_EQ(outputs->front().path, "-");
  EXPECT_EQ(outputs->front().format, OutputFormat::kFolded);
}

TEST(ChooseOutputs, TellsAFileNamedLikeStandardOutputApart) {
  const std::vector<std::string> paths = {"-", "./-"};
  const auto outputs = ChooseOutputs(paths, OutputFormat::kText);
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ((*outputs)[0].path, "-");
  EXPECT_EQ((*outputs)[1].path, "./-");
}

TEST(ChooseOutputs, LeavesNoneForNone) {
  EXPECT_TRUE(ChooseOutputs({}, std::nullopt)->empty());
}

TEST(ChooseOutputs, RefusesAWrongOneAndSaysWhy) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"profile"}, "end it in .pb.gz (pprof), .folded, .html or .txt, or give --format"},
      {{"a.pb"}, "does not show the format"},
      {{"a.gz"}, "does not show the format"},
      {{""}, "is empty"},
      {{"dir/"}, "is a directory"},
      {{"-", "-"}, "'-' is given twice"},
      {{"a.html", "./a.html"}, "'./a.html' is given twice"},
  };
  for (const auto& [paths, reason] : cases) {
    const auto outputs = ChooseOutputs(paths, std::nullopt);
    ASSERT_FALSE(outputs.has_value()) << paths[0];
    EXPECT_EQ(outputs.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(outputs.error().message().find(reason), std::string::npos)
        << outputs.error().message();
  }
}

}  // namespace
}  // namespace pyrometer
