// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/doctor.h"
#include "doctor/version.h"

namespace pyrometer {
namespace {

std::string_view Colour(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "\033[32m";  // green
    case CheckStatus::kUnknown:
      return "\033[36m";  // cyan
    case CheckStatus::kWarn:
      return "\033[33m";  // yellow
    case CheckStatus::kFail:
      break;
  }
  return "\033[1;31m";  // bold red
}

std::string Painted(CheckStatus status, std::string_view text, bool colour) {
  return colour ? fmt::format("{}{}\033[0m", Colour(status), text) : std::string(text);
}

std::string Verdict(const DoctorReport& report, bool colour) {
  const auto failed = std::ranges::count(report.checks, CheckStatus::kFail, &Check::status);
  const auto warned = std::ranges::count(report.checks, CheckStatus::kWarn, &Check::status);
  const auto plural = [](auto n) { return n == 1 ? "" : "s"; };
  if (failed > 0) {
    return Painted(
        CheckStatus::kFail,
        fmt::format("Recording does not work here: {} check{} failed.", failed, plural(failed)),
        colour);
  }
  if (warned > 0) {
    return Painted(
        CheckStatus::kWarn,
        fmt::format("Recording works here, with {} restriction{}.", warned, plural(warned)),
        colour);
  }
  return Painted(CheckStatus::kOk, "Recording works here.", colour);
}

std::string AgentVerdict(const DoctorReport& report, bool colour) {
  const auto not_well = [](const Check& check) {
    return check.status == CheckStatus::kFail || check.status == CheckStatus::kWarn;
  };
  const auto count = std::ranges::count_if(report.agent_checks, not_well);
  if (count == 0) return Painted(CheckStatus::kOk, "Nothing is wrong with the agent.", colour);
  return Painted(
      CheckStatus::kWarn,
      fmt::format("The agent: {} of {} checks did not pass.", count, report.agent_checks.size()),
      colour);
}

// `text` in lines of at most kLineWidth columns, the first `indent` of which are blank.
std::string Indented(std::string_view text, size_t indent) {
  constexpr size_t kLineWidth = 100;
  const size_t room = kLineWidth - indent;
  std::string lines;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > room) {
      end = text.rfind(' ', room);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    lines += fmt::format("{:{}}{}\n", "", indent, text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

struct TextStyle {
  size_t width = 0;  // of the names
  bool colour = false;
};

std::string Lines(const std::vector<Check>& checks, const TextStyle& style) {
  std::string text;
  for (const Check& check : checks) {
    const bool is_unknown = check.status == CheckStatus::kUnknown;
    const std::string status = fmt::format("{:<4}", is_unknown ? "?" : Name(check.status));
    text += fmt::format("{}  {:<{}}  {}\n", Painted(check.status, status, style.colour), check.name,
                        style.width, check.found);
    if (check.status == CheckStatus::kOk || is_unknown) continue;
    const size_t indent = style.width + 10;
    text += Indented(check.meaning, indent);
    if (!check.advice.empty()) text += Indented("To do: " + check.advice, indent);
  }
  return text;
}

nlohmann::ordered_json AsJson(const std::vector<Check>& checks) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    json.push_back({{"name", check.name},
                    {"status", Name(check.status)},
                    {"found", check.found},
                    {"meaning", check.meaning},
                    {"advice", check.advice}});
  }
  return json;
}

}  // namespace

std::string_view Name(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "ok";
    case CheckStatus::kUnknown:
      return "unknown";
    case CheckStatus::kWarn:
      return "warn";
    case CheckStatus::kFail:
      break;
  }
  return "fail";
}

std::string ToText(const DoctorReport& report, bool colour) {
  TextStyle style{.colour = colour};
  for (const auto* checks : {&report.checks, &report.agent_checks}) {
    for (const Check& check : *checks) style.width = std::max(style.width, check.name.size());
  }
  std::string text = Lines(report.checks, style);
  if (!report.agent_checks.empty()) text += "\n" + Lines(report.agent_checks, style);
  text += "\n" + Verdict(report, colour) + "\n";
  if (!report.agent_checks.empty()) text += AgentVerdict(report, colour) + "\n";
  return text;
}

std::string ToJson(const DoctorReport& report) {
  const nlohmann::ordered_json json = {{"version", Version()},
                                       {"kernel", report.kernel},
                                       {"can_record", report.CanRecord()},
                                       {"checks", AsJson(report.checks)},
                                       {"agent_checks", AsJson(report.agent_checks)}};
  // Odd bytes, from an environment variable say, are replaced: dump() must not throw.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pyrometer
