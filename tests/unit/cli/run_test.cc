// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/unique_fd.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Runs a command line against commands that only note that they were called.
class RunTest : public testing::Test {
 protected:
  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), "pyrometer");
    const Commands commands = {
        .record = [this](const RecordConfig& config) -> Result<int> {
          recorded_ = config;
          if (record_error_) return *record_error_;
          return record_status_;
        },
        .agent = [this](const AgentOptions& options) -> Result<int> {
          started_ = options;
          return 0;
        },
        .explain = [](const AgentOptions& options, Pid pid) -> Result<std::string> {
          if (pid == Pid(1)) return Fail(ErrorCode::kNotFound, "there is no process 1");
          return fmt::format("{} by {}\n", pid.value(), options.config_file.value_or("defaults"));
        },
        .examine = [this] { return report_; },
    };
    const Streams streams = {.out = out_.get(),
                             .error = error_.get(),
                             .out_is_terminal = out_is_terminal_,
                             .colour = false};
    return pyrometer::Run(static_cast<int>(words.size()), words.data(), commands, streams);
  }

  std::string Out() const { return Content(out_); }
  std::string Errors() const { return Content(error_); }

  UniqueFd out_{::memfd_create("out", MFD_CLOEXEC)};
  UniqueFd error_{::memfd_create("error", MFD_CLOEXEC)};
  bool out_is_terminal_ = false;
  int record_status_ = 0;
  std::optional<Error> record_error_;
  DoctorReport report_;
  std::optional<RecordConfig> recorded_;
  std::optional<AgentOptions> started_;

 private:
  static std::string Content(const UniqueFd& file) {
    ::lseek(file.get(), 0, SEEK_SET);
    return *ReadAll(file.get(), 1 << 20);
  }
};

TEST_F(RunTest, ReturnsTheStatusOfTheCommand) {
  record_status_ = 137;
  EXPECT_EQ(Run({"record", "--", "x"}), 137);
  EXPECT_EQ(Errors(), "");
}

TEST_F(RunTest, PrintsWrongUsageAsOneLineAndDoesNothing) {
  EXPECT_EQ(Run({"record", "--frequency", "0"}), 2);
  EXPECT_EQ(Errors(),
            "pyrometer: '0' is not a valid frequency; give 1 to 10000 samples per second\n");
  EXPECT_EQ(Out(), "");
  EXPECT_FALSE(recorded_.has_value());
}

TEST_F(RunTest, TurnsErrorsIntoTheirStatus) {
  record_error_ = Fail(ErrorCode::kPermission, "perf_event_open on cpu 3: permission denied");
  EXPECT_EQ(Run({"record"}), 3);
  EXPECT_EQ(Errors(), "pyrometer: perf_event_open on cpu 3: permission denied\n");
}

TEST_F(RunTest, KeepsControlCharactersFromTheTerminal) {
  EXPECT_EQ(Run({"record", "--format", "a\nb\033[2J"}), 2);
  EXPECT_THAT(Errors(), HasSubstr("'a?b?[2J'"));
}

TEST_F(RunTest, RefusesToPrintBinaryOnATerminal) {
  out_is_terminal_ = true;
  EXPECT_EQ(Run({"record", "--format", "pprof"}), 2);
  EXPECT_FALSE(recorded_.has_value());
  EXPECT_EQ(Run({"record", "--format", "folded"}), 0);
  EXPECT_TRUE(recorded_.has_value());
}

TEST_F(RunTest, WritesBinaryIntoAPipe) {
  EXPECT_EQ(Run({"record", "--format", "pprof"}), 0);
  EXPECT_TRUE(recorded_.has_value());
}

TEST_F(RunTest, PrintsHelpOnStandardOutput) {
  EXPECT_EQ(Run({"record", "--help"}), 0);
  EXPECT_THAT(Out(), HasSubstr("Usage: pyrometer record [OPTIONS] [[--] COMMAND [ARG]...]"));
  EXPECT_EQ(Errors(), "");
}

TEST_F(RunTest, PrintsTheVersion) {
  EXPECT_EQ(Run({"version"}), 0);
  EXPECT_THAT(Out(), testing::MatchesRegex("pyrometer [0-9.]+ \\(.*libbpf [0-9.]+\\)\n"));
}

TEST_F(RunTest, DoctorTellsByItsStatusWhetherRecordingWorks) {
  report_.checks = {Check{"btf", CheckStatus::kWarn, "", "", ""}};
  EXPECT_EQ(Run({"doctor"}), 0);
  report_.checks = {Check{"btf", CheckStatus::kFail, "", "", ""}};
  EXPECT_EQ(Run({"doctor"}), 3);
}

TEST_F(RunTest, DoctorPrintsJsonIfAsked) {
  EXPECT_EQ(Run({"doctor", "--json"}), 0);
  EXPECT_THAT(Out(), StartsWith("{\n"));
}

TEST_F(RunTest, FailsIfStandardOutputIsFull) {
  out_ = *Open("/dev/full", O_WRONLY);
  EXPECT_EQ(Run({"version"}), 1);
  EXPECT_THAT(Errors(), HasSubstr("standard output"));
}

TEST_F(RunTest, StartsTheAgentWithItsOptionsUnread) {
  EXPECT_EQ(Run({"agent", "--config", "/nonexistent", "--window", "5s"}), 0);
  ASSERT_TRUE(started_.has_value());
  EXPECT_EQ(started_->config_file, "/nonexistent");
  EXPECT_EQ(started_->window, "5s");
}

TEST_F(RunTest, TellsWhatAGoodConfigurationMeans) {
  EXPECT_EQ(Run({"agent", "--check-config", "--config", "/dev/null", "--pyroscope", "http://p"}),
            0);
  EXPECT_THAT(Out(), StartsWith("/dev/null: ok\n"));
  EXPECT_THAT(Out(), HasSubstr("pyroscope: http://p (pyroscope's push, no TLS)\n"));
  EXPECT_EQ(Errors(), "");
  EXPECT_FALSE(started_.has_value());
}

TEST_F(RunTest, PrintsEveryErrorOfAConfiguration) {
  EXPECT_EQ(Run({"agent", "--check-config", "--config", "/dev/null", "--window", "soon",
                 "--frequency", "\033[2J\n0"}),
            2);
  EXPECT_THAT(Errors(), HasSubstr("pyrometer: --window: found 'soon', expected a duration"));
  EXPECT_THAT(Errors(), HasSubstr("pyrometer: --frequency: "));
  EXPECT_EQ(std::ranges::count(Errors(), '\n'), 2);
  EXPECT_EQ(Out(), "");
  EXPECT_FALSE(started_.has_value());
}

TEST_F(RunTest, PrintsTheExplanationOfAProcess) {
  EXPECT_EQ(Run({"agent", "--explain", "4711", "--config", "c.yaml"}), 0);
  EXPECT_EQ(Out(), "4711 by c.yaml\n");
  EXPECT_EQ(Run({"agent", "--explain", "1"}), 1);
  EXPECT_EQ(Errors(), "pyrometer: there is no process 1\n");
  EXPECT_FALSE(started_.has_value());
}

TEST_F(RunTest, ExplainsTheAgentWithExamples) {
  EXPECT_EQ(Run({"agent", "--help"}), 0);
  EXPECT_THAT(Out(), HasSubstr("default /etc/pyrometer/pyrometer.yaml if it exists"));
  EXPECT_THAT(Out(), HasSubstr("pyrometer agent --pyroscope http://pyroscope:4040"));
}

}  // namespace
}  // namespace pyrometer
