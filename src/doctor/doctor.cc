// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <algorithm>
#include <cstdlib>

#include "doctor/agent_facts.h"
#include "doctor/doctor_facts.h"
#include "foreign/reader_pool.h"

namespace pyrometer {

bool DoctorReport::CanRecord() const {
  return std::ranges::find(checks, CheckStatus::kFail, &Check::status) == checks.end();
}

DoctorReport RunDoctor(const Procfs& procfs, const AgentSetup& setup, const Clock& clock) {
  DebugSources sources;
  if (const char* urls = std::getenv("DEBUGINFOD_URLS")) sources.debuginfod_urls = urls;
  MachineFacts facts = GatherFacts(procfs, sources, ProbeKernelFeatures());
  facts.sandbox = ProbeSandbox(clock);
  DoctorReport report = Examine(facts);
  report.agent_checks = ExamineAgent(GatherAgentFacts(procfs, setup));
  return report;
}

}  // namespace pyrometer
