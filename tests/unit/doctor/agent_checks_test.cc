// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "doctor/agent_facts.h"
#include "doctor/doctor.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;

// A service that leaves nothing to be desired.
AgentFacts GoodService() {
  AgentFacts facts;
  facts.setup = {.config_file = "/etc/pyrometer/pyrometer.yaml",
                 .config_errors = {},
                 .directories = {"/s/spool", "/s/profiles"},
                 .listen = "127.0.0.1:4041"};
  facts.user = "pyrometer";
  facts.directories = {{"/s/spool", true}, {"/s/profiles", true}};
  facts.unit = UnitState::kEnabled;
  facts.systemd_runs = true;
  facts.service_runs = true;
  facts.answer = AgentAnswer::kHealthy;
  return facts;
}

Check Find(const AgentFacts& facts, std::string_view name) {
  const std::vector<Check> checks = ExamineAgent(facts);
  const auto found = std::ranges::find(checks, name, &Check::name);
  if (found != checks.end()) return *found;
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(ExamineAgent, FindsNothingWrongWithAGoodService) {
  for (const Check& check : ExamineAgent(GoodService())) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name;
    EXPECT_EQ(check.advice, "") << check.name;
    EXPECT_NE(check.found, "") << check.name;
    EXPECT_NE(check.meaning, "") << check.name;
  }
}

TEST(ExamineAgent, FindsNothingWrongWithAMachineWithoutAgent) {
  AgentFacts facts;
  facts.setup.listen = "127.0.0.1:4041";
  for (const Check& check : ExamineAgent(facts)) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name;
    EXPECT_EQ(check.advice, "") << check.name;
  }
  EXPECT_THAT(Find(facts, "agent_service").found, HasSubstr("not installed"));
  EXPECT_THAT(Find(facts, "agent_answer").found, HasSubstr("nobody listens"));
}

TEST(ExamineAgent, JudgesEachFault) {
  const struct {
    const char* check;
    std::function<void(AgentFacts&)> spoil;
    CheckStatus status;
    const char* found;
    const char* advice;
  } cases[] = {
      {"agent_configuration",
       [](auto& f) {
         f.setup.config_errors = {"file:1: bad", "worse"};
       },
       CheckStatus::kFail, "file:1: bad (and 1 more)", "--check-config"},
      {"agent_configuration", [](auto& f) { f.config_readable = false; }, CheckStatus::kUnknown,
       "not readable", ""},
      {"agent_directories", [](auto& f) { f.directories[1].writable = false; }, CheckStatus::kFail,
       "user pyrometer cannot write /s/profiles", "-o pyrometer -g pyrometer /s/profiles"},
      {"agent_directories",
       [](auto& f) {
         f.directories[1].writable = false;
         f.unit = UnitState::kNotInstalled;
         f.user = "";
       },
       CheckStatus::kUnknown, "you cannot write /s/profiles", ""},
      {"agent_service", [](auto& f) { f.service_runs = false; }, CheckStatus::kFail,
       "enabled, not running", "journalctl"},
      {"agent_service",
       [](auto& f) {
         f.service_runs = false;
         f.unit = UnitState::kDisabled;
       },
       CheckStatus::kWarn, "not enabled", "enable --now"},
      {"agent_service",
       [](auto& f) {
         f.service_runs = false;
         f.unit = UnitState::kMasked;
       },
       CheckStatus::kWarn, "masked", "unmask"},
      {"agent_answer", [](auto& f) { f.answer = AgentAnswer::kNobody; }, CheckStatus::kFail,
       "nobody listens at 127.0.0.1:4041", "journalctl"},
      {"agent_answer", [](auto& f) { f.answer = AgentAnswer::kSilent; }, CheckStatus::kFail,
       "does not answer", "ss -ltnp"},
      {"agent_answer", [](auto& f) { f.answer = AgentAnswer::kForeign; }, CheckStatus::kFail,
       "answers as no agent does", "ss -ltnp"},
      {"agent_answer", [](auto& f) { f.answer = AgentAnswer::kUnhealthy; }, CheckStatus::kFail,
       "not healthy", "http://127.0.0.1:4041/healthz"},
      {"agent_sandbox", [](auto& f) { f.setup.sandbox = false; }, CheckStatus::kWarn,
       "configured off", "sandbox: off"},
      {"agent_sandbox", [](auto& f) { f.config_readable = false; }, CheckStatus::kUnknown,
       "cannot tell", ""},
  };
  for (const auto& [name, spoil, status, found, advice] : cases) {
    AgentFacts facts = GoodService();
    spoil(facts);
    const Check check = Find(facts, name);
    EXPECT_EQ(check.status, status) << name << " " << found;
    EXPECT_THAT(check.found, HasSubstr(found));
    EXPECT_THAT(check.advice, HasSubstr(advice)) << name << " " << found;
  }
}

TEST(ExamineAgent, ExpectsNothingToRunWhereSystemdDoesNot) {
  AgentFacts facts = GoodService();
  facts.systemd_runs = facts.service_runs = false;
  facts.answer = AgentAnswer::kNobody;
  for (const Check& check : ExamineAgent(facts)) EXPECT_EQ(check.status, CheckStatus::kOk);
}

TEST(ExamineAgent, NamesThePageOfAServerWithTls) {
  AgentFacts facts = GoodService();
  facts.setup.tls = true;
  facts.answer = AgentAnswer::kConnected;
  EXPECT_EQ(Find(facts, "agent_answer").meaning, "its page is at https://127.0.0.1:4041/");
  facts.setup.listen = "";
  EXPECT_THAT(Find(facts, "agent_answer").found, HasSubstr("no server"));
}

}  // namespace
}  // namespace pyrometer
