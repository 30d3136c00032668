// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/environment.h"

namespace pyrometer {

// Where this user's programs keep what they can make again, by the XDG Base Directory
// Specification: below XDG_CACHE_HOME, else in .cache below HOME. "" if neither is there, or it is
// another user's, as with sudo it may be: root writes to no place that others may turn into a link.
std::string OwnCacheDirectory(const Environment& environment);

}  // namespace pyrometer
