// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "doctor/doctor.h"
#include "doctor/version.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::Not;

DoctorReport Report(CheckStatus status) {
  DoctorReport report;
  report.kernel = "6.1.0 x86_64";
  report.checks = {{"kernel", CheckStatus::kOk, "6.1.0", "is new enough", ""},
                   {"lockdown", status, "none", "what it means", "what to do"}};
  return report;
}

TEST(DoctorText, ExplainsOnlyWhatIsNotWell) {
  EXPECT_EQ(ToText(Report(CheckStatus::kWarn), false),
            "ok    kernel    6.1.0\n"
            "warn  lockdown  none\n"
            "                  what it means\n"
            "                  To do: what to do\n"
            "\n"
            "Recording works here, with 1 restriction.\n");
}

TEST(DoctorText, SaysWhetherRecordingWorks) {
  EXPECT_THAT(ToText(Report(CheckStatus::kOk), false), HasSubstr("\nRecording works here.\n"));
  EXPECT_THAT(ToText(Report(CheckStatus::kFail), false),
              HasSubstr("\nRecording does not work here: 1 check failed.\n"));
  EXPECT_THAT(ToText(Report(CheckStatus::kUnknown), false), HasSubstr("?     lockdown  none\n"));
}

TEST(DoctorText, WrapsLongExplanations) {
  DoctorReport report = Report(CheckStatus::kWarn);
  report.checks[1].meaning.clear();
  for (int i = 0; i < 60; ++i) report.checks[1].meaning += "word ";
  report.checks[1].advice = std::string(300, 'x') + " y";
  const std::string text = ToText(report, false);
  size_t longest_line_of_words = 0;
  size_t words = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.find("word") != std::string::npos) {
      longest_line_of_words = std::max(longest_line_of_words, line.size());
      for (size_t word = 0; (word = line.find("word", word)) != std::string::npos; ++word) ++words;
    }
    at = end + 1;
  }
  EXPECT_EQ(words, 60U);
  EXPECT_LE(longest_line_of_words, 100U);
  EXPECT_THAT(text, HasSubstr(std::string(300, 'x') + "\n")) << "a long word stays whole";
}

TEST(DoctorText, IsColouredOnlyIfAsked) {
  for (const CheckStatus status : {CheckStatus::kOk, CheckStatus::kWarn, CheckStatus::kFail}) {
    EXPECT_THAT(ToText(Report(status), true), HasSubstr("\033["));
    EXPECT_THAT(ToText(Report(status), false), Not(HasSubstr("\033")));
  }
}

TEST(DoctorJson, CarriesEverything) {
  const auto json = nlohmann::json::parse(ToJson(Report(CheckStatus::kFail)));
  EXPECT_EQ(json["version"], Version());
  EXPECT_EQ(json["kernel"], "6.1.0 x86_64");
  EXPECT_EQ(json["can_record"], false);
  ASSERT_EQ(json["checks"].size(), 2U);
  EXPECT_EQ(json["checks"][1]["name"], "lockdown");
  EXPECT_EQ(json["checks"][1]["status"], "fail");
  EXPECT_EQ(json["checks"][1]["found"], "none");
  EXPECT_EQ(json["checks"][1]["meaning"], "what it means");
  EXPECT_EQ(json["checks"][1]["advice"], "what to do");
}

TEST(DoctorJson, SurvivesBytesThatAreNoText) {
  DoctorReport report = Report(CheckStatus::kOk);
  report.checks[0].found = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(ToJson(report)));
}

}  // namespace
}  // namespace pyrometer
