// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "process/file_inspections.h"
#include "process/proc_reader.h"

namespace pyrometer {

// Waits for every answer: tests of other things are not to depend on how busy the machine is.
inline constexpr FileInspections::Options kPatient{.patience = std::chrono::minutes(1),
                                                   .patience_in_all = std::chrono::minutes(1),
                                                   .limit = std::chrono::minutes(1)};
inline constexpr ProcReader::Options kPatientReader{.limit = std::chrono::minutes(1)};

}  // namespace pyrometer
