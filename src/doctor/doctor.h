// SPDX-License-Identifier: Apache-2.0
// `pyrometer doctor`: what this kernel and these privileges allow, what is missing, and how to get
// it. GatherFacts looks (doctor_facts.h), Examine judges (doctor_checks.cc), ToText and ToJson
// show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

struct DoctorReport {
  std::string kernel;  // release and machine
  std::vector<Check> checks;

  // False if any check failed.
  bool CanRecord() const;
};

// Looks at this machine. Never fails: what cannot be read is itself a finding.
DoctorReport RunDoctor(const Procfs& procfs);

// Judges `facts`, looking at nothing else.
DoctorReport Examine(const MachineFacts& facts);

// For people: a line for each check, followed by its meaning and advice if it warns or fails. With
// `colour`, in ANSI colours.
std::string ToText(const DoctorReport& report, bool colour);

// For programs: {"version", "kernel", "can_record", "checks": [{"name", "status", "found",
// "meaning", "advice"}]}; status is "ok", "unknown", "warn" or "fail".
std::string ToJson(const DoctorReport& report);

}  // namespace pyrometer
