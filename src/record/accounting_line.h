// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

// The accounting line that `record` ends with, without a newline:
// "samples=N idle=N filtered=N lost=N (reason=N ...) undelivered=N processes=N stacks=N
// truncated=N" The reasons in parentheses are there only when something was lost. `stacks` counts
// different stacks, `truncated` the samples whose user stack was cut before its root, for whatever
// reason.
std::string AccountingLine(const Profile& profile);

}  // namespace pyrometer
