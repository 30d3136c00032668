// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/exit_status.h"
#include "config/agent_config_text.h"
#include "doctor/version.h"

namespace pyrometer {
namespace {

Result<void> Print(const Streams& streams, std::string_view text) {
  Result<void> written = WriteAll(streams.out, text);
  if (!written) return std::move(written).error().With("standard output");
  return written;
}

// Arguments and file names may contain anything, also what moves a terminal's cursor.
std::string ErrorLine(std::string message) {
  std::ranges::replace_if(
      message, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return fmt::format("pyrometer: {}\n", message);
}

// One call operator for each kind of command; they return the exit status.
struct Runner {
  const Commands& commands;
  const Streams& streams;

  Result<int> operator()(const ShowHelp& help) const {
    RETURN_IF_ERROR(Print(streams, help.text));
    return kExitOk;
  }

  Result<int> operator()(const ShowVersion&) const {
    RETURN_IF_ERROR(Print(streams, VersionLine() + "\n"));
    return kExitOk;
  }

  Result<int> operator()(const Examination& examination) const {
    const DoctorReport report = commands.examine();
    RETURN_IF_ERROR(
        Print(streams, examination.json ? ToJson(report) : ToText(report, streams.colour)));
    return report.CanRecord() ? kExitOk : kExitRefused;
  }

  Result<int> operator()(const RecordConfig& config) const {
    const auto is_binary = [](const OutputFile& output) {
      return output.path == "-" && output.format == OutputFormat::kPprof;
    };
    if (streams.out_is_terminal && std::ranges::any_of(config.outputs, is_binary)) {
      return Fail(ErrorCode::kInvalid,
                  "pprof is binary and standard output is a terminal; give --output NAME.pb.gz");
    }
    return commands.record(config);
  }

  Result<int> operator()(const AgentOptions& options) const { return commands.agent(options); }

  Result<int> operator()(const Explanation& wanted) const {
    ASSIGN_OR_RETURN(const std::string text, commands.explain(wanted.options, wanted.pid));
    RETURN_IF_ERROR(Print(streams, text));
    return kExitOk;
  }

  Result<int> operator()(const ConfigCheck& check) const {
    const AgentConfigReport report = ExamineAgentConfig(check.options);
    if (!report.errors.empty()) {
      for (const std::string& error : report.errors) {
        WriteMessage(streams.error, ErrorLine(error));
      }
      return kExitUsage;
    }
    const std::string name =
        report.file.value_or(fmt::format("no {}, all defaults", kDefaultConfigFile));
    RETURN_IF_ERROR(Print(streams, fmt::format("{}: ok\n{}", name, Describe(report.config))));
    return kExitOk;
  }
};

Result<int> Dispatch(int argc, const char* const* argv, const Commands& commands,
                     const Streams& streams) {
  ASSIGN_OR_RETURN(const ParsedCommand command, ParseCommandLine(argc, argv));
  return std::visit(Runner{commands, streams}, command);
}

}  // namespace

int Run(int argc, const char* const* argv, const Commands& commands, const Streams& streams) {
  const Result<int> status = Dispatch(argc, argv, commands, streams);
  if (status) return *status;
  WriteMessage(streams.error, ErrorLine(status.error().message()));
  return ExitStatus(status.error().code());
}

}  // namespace pyrometer
