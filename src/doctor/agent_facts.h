// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/procfs.h"
#include "doctor/agent_answer.h"
#include "doctor/doctor.h"

namespace pyrometer {

struct DirectoryFact {
  std::string path;
  // By the user in question; if it does not exist, that it can be made.
  bool writable = false;

  bool operator==(const DirectoryFact&) const = default;
};

enum class UnitState { kNotInstalled, kMasked, kDisabled, kEnabled };

// Everything that ExamineAgent() judges.
struct AgentFacts {
  AgentSetup setup;
  bool config_readable = true;  // by us; true also if there is none
  std::string user;             // the service's, if it is installed; "": whoever asks
  std::vector<DirectoryFact> directories;
  UnitState unit = UnitState::kNotInstalled;
  bool systemd_runs = false;
  bool service_runs = false;
  AgentAnswer answer = AgentAnswer::kNobody;
};

// Looks at the machine below `root` ("" for all of it), and asks at setup.listen.
AgentFacts GatherAgentFacts(const Procfs& procfs, const AgentSetup& setup,
                            const std::string& root = "");

// One check for each thing that an agent needs, most serious of them first.
std::vector<Check> ExamineAgent(const AgentFacts& facts);

}  // namespace pyrometer
