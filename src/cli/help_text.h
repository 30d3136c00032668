// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pyrometer {

// What `--help` prints below the options.
extern const char* const kProgramFooter;
extern const char* const kRecordFooter;
extern const char* const kAgentFooter;
extern const char* const kDoctorFooter;

}  // namespace pyrometer
