// SPDX-License-Identifier: Apache-2.0
// `pyrometer doctor`: what this kernel and these privileges allow, what is missing, and how to get
// it. GatherFacts and GatherAgentFacts look (doctor_facts.h, agent_facts.h), Examine and
// ExamineAgent judge (doctor_checks.cc, agent_checks.cc), ToText and ToJson show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/procfs.h"
#include "sampler/kernel_features.h"

namespace pyrometer {

struct MachineFacts;

// kUnknown: cannot be found out without privileges, which have a check of their own. kWarn:
// recording works, with restrictions. kFail: it does not work.
enum class CheckStatus { kOk, kUnknown, kWarn, kFail };
std::string_view Name(CheckStatus status);

struct Check {
  std::string name;  // stable, for scripts: "btf", "capabilities", ...
  CheckStatus status = CheckStatus::kOk;
  std::string found;    // what is there
  std::string meaning;  // what that means for a recording
  std::string advice;   // what to do about it; "" if there is nothing to do
};

// What is configured for `pyrometer agent`, from who may read configurations.
struct AgentSetup {
  std::string config_file;                 // "": there is none, all is by default
  std::vector<std::string> config_errors;  // a line each, for users
  std::vector<std::string> directories;    // that it writes into
  std::string listen;                      // "host:port"; "": no server
  bool tls = false;                        // spoken there
  bool sandbox = true;                     // in which it reads files of profiled programs
};

struct DoctorReport {
  std::string kernel;  // release and machine
  std::vector<Check> checks;
  // Of the agent on this machine; none of them says whether recording works.
  std::vector<Check> agent_checks;

  // False if any of `checks` failed.
  bool CanRecord() const;
};

// Looks at this machine, and for an agent as `setup` describes it, for at most some seconds. Never
// fails: what cannot be read is itself a finding. REQUIRES: this process has one thread.
DoctorReport RunDoctor(const Procfs& procfs, const AgentSetup& setup, const Clock& clock);

// Judges `facts`, looking at nothing else.
DoctorReport Examine(const MachineFacts& facts);

// For people: a line for each check, followed by its meaning and advice if it warns or fails; last
// the verdicts. With `colour`, in ANSI colours.
std::string ToText(const DoctorReport& report, bool colour);

// For programs: {"version", "kernel", "can_record", "checks": [{"name", "status", "found",
// "meaning", "advice"}], "agent_checks": [the same]}; status is "ok", "unknown", "warn" or "fail".
std::string ToJson(const DoctorReport& report);

}  // namespace pyrometer
