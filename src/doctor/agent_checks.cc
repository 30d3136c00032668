// SPDX-License-Identifier: Apache-2.0
// Judges the facts about the agent; one function per check.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/agent_facts.h"
#include "doctor/doctor.h"

namespace pyrometer {
namespace {

bool IsInstalled(const AgentFacts& facts) {
  return facts.unit != UnitState::kNotInstalled;
}

Check CheckConfiguration(const AgentFacts& facts) {
  const AgentSetup& setup = facts.setup;
  Check check{.name = "agent_configuration",
              .status = CheckStatus::kOk,
              .found = setup.config_file.empty() ? "no file: all defaults"
                                                 : fmt::format("{} is valid", setup.config_file),
              .meaning = "'pyrometer agent --check-config' shows what it says",
              .advice = ""};
  if (!facts.config_readable) {
    check.status = CheckStatus::kUnknown;
    check.found = fmt::format("{} is not readable for you", setup.config_file);
    check.meaning = "it may name servers and files with their secrets";
  } else if (!setup.config_errors.empty()) {
    check.status = CheckStatus::kFail;
    check.found = setup.config_errors.front();
    if (const size_t more = setup.config_errors.size() - 1; more > 0) {
      check.found += fmt::format(" (and {} more)", more);
    }
    check.meaning = "the agent refuses to start with it; one that runs keeps what it had";
    check.advice = "correct the file; 'pyrometer agent --check-config' lists all errors";
  }
  return check;
}

Check CheckDirectories(const AgentFacts& facts) {
  const std::string who = facts.user.empty() ? "you" : "user " + facts.user;
  std::string good;
  std::string bad;
  for (const DirectoryFact& directory : facts.directories) {
    std::string& list = directory.writable ? good : bad;
    list += (list.empty() ? "" : ", ") + directory.path;
  }
  Check check{.name = "agent_directories",
              .status = CheckStatus::kOk,
              .found = good.empty() ? "none is used" : fmt::format("{} can write {}", who, good),
              .meaning = "profiles are kept there, and wait there for servers",
              .advice = ""};
  if (bad.empty()) return check;
  // Who has not installed the service starts the agent as somebody else, root perhaps.
  check.status = IsInstalled(facts) ? CheckStatus::kFail : CheckStatus::kUnknown;
  check.found = fmt::format("{} cannot write {}", who, bad);
  check.meaning = "the agent cannot keep profiles there";
  check.advice = fmt::format("install -d -m 0750 -o {0} -g {0} {1}",
                             facts.user.empty() ? "USER" : facts.user, bad);
  return check;
}

std::string_view Word(UnitState unit) {
  switch (unit) {
    case UnitState::kNotInstalled:
      return "not installed";
    case UnitState::kMasked:
      return "masked";
    case UnitState::kDisabled:
      return "installed, not enabled";
    case UnitState::kEnabled:
      break;
  }
  return "enabled";
}

Check CheckService(const AgentFacts& facts) {
  Check check{.name = "agent_service",
              .status = CheckStatus::kOk,
              .found = fmt::format("pyrometer.service: {}{}", Word(facts.unit),
                                   facts.service_runs ? ", running" : ""),
              .meaning = "",
              .advice = ""};
  if (!IsInstalled(facts)) {
    check.meaning = "not needed: 'pyrometer agent' runs by hand, too";
  } else if (!facts.systemd_runs) {
    check.meaning = "systemd does not run here, so nothing starts it";
  } else if (facts.service_runs) {
    check.meaning = "it profiles";
  } else if (facts.unit == UnitState::kEnabled) {
    check.status = CheckStatus::kFail;
    check.found += ", not running";
    check.meaning = "it should run and does not";
    check.advice = "'journalctl -u pyrometer' says why; 'systemctl start pyrometer' tries again";
  } else {
    check.status = CheckStatus::kWarn;
    check.meaning = "it does not run, and will not after a restart of the machine";
    check.advice = facts.unit == UnitState::kMasked
                       ? "systemctl unmask pyrometer; systemctl enable --now pyrometer"
                       : "systemctl enable --now pyrometer";
  }
  return check;
}

// A service that runs has to answer; without one it is only of interest whether somebody does.
CheckStatus WithoutAnswer(const AgentFacts& facts) {
  return facts.service_runs ? CheckStatus::kFail : CheckStatus::kOk;
}

Check CheckAnswer(const AgentFacts& facts) {
  const std::string& at = facts.setup.listen;
  Check check{.name = "agent_answer",
              .status = CheckStatus::kOk,
              .found = "no server is configured",
              .meaning = "there is no page and nothing to scrape; profiles are sent all the same",
              .advice = ""};
  if (at.empty()) return check;
  const char* const page = facts.setup.tls ? "https" : "http";
  check.meaning = fmt::format("its page is at {}://{}/", page, at);
  switch (facts.answer) {
    case AgentAnswer::kNobody:
      check.status = WithoutAnswer(facts);
      check.found = fmt::format("nobody listens at {}", at);
      check.meaning = "no agent runs with this configuration";
      check.advice = check.status == CheckStatus::kOk ? "" : "'journalctl -u pyrometer' says why";
      break;
    case AgentAnswer::kSilent:
    case AgentAnswer::kForeign:
      check.status = CheckStatus::kFail;
      check.found = fmt::format(
          "who listens at {} {}", at,
          facts.answer == AgentAnswer::kSilent ? "does not answer" : "answers as no agent does");
      check.meaning = "another program may have the agent's port";
      check.advice = fmt::format("'ss -ltnp' names it; or set server.listen to another port");
      break;
    case AgentAnswer::kConnected:
      check.found = fmt::format("somebody listens at {}", at);
      break;
    case AgentAnswer::kHealthy:
      check.found = fmt::format("an agent at {} is healthy", at);
      break;
    case AgentAnswer::kUnhealthy:
      check.status = CheckStatus::kFail;
      check.found = fmt::format("an agent at {} says that it is not healthy", at);
      check.advice = fmt::format("{}://{}/healthz has the reasons", page, at);
      break;
  }
  return check;
}

Check CheckAgentSandbox(const AgentFacts& facts) {
  Check check{
      .name = "agent_sandbox",
      .status = CheckStatus::kOk,
      .found = "on",
      .meaning = "files of profiled programs are read by processes that can do nothing else",
      .advice = ""};
  if (!facts.config_readable) {
    check.status = CheckStatus::kUnknown;
    check.found = "who may not read the configuration cannot tell";
  } else if (!facts.setup.sandbox) {
    check.status = CheckStatus::kWarn;
    check.found = "configured off";
    check.meaning = "the agent itself reads files of the programs it profiles, whoever made them";
    check.advice = "remove 'sandbox: off', unless all programs here are trusted";
  }
  return check;
}

}  // namespace

std::vector<Check> ExamineAgent(const AgentFacts& facts) {
  return {CheckConfiguration(facts), CheckDirectories(facts), CheckService(facts),
          CheckAnswer(facts), CheckAgentSandbox(facts)};
}

}  // namespace pyrometer
