// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <algorithm>
#include <cstdlib>

#include "doctor/doctor_facts.h"

namespace pyrometer {

bool DoctorReport::CanRecord() const {
  return std::ranges::find(checks, CheckStatus::kFail, &Check::status) == checks.end();
}

DoctorReport RunDoctor(const Procfs& procfs) {
  DebugSources sources;
  if (const char* urls = std::getenv("DEBUGINFOD_URLS")) sources.debuginfod_urls = urls;
  return Examine(GatherFacts(procfs, sources, ProbeKernelFeatures()));
}

}  // namespace pyrometer
