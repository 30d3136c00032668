// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pyrometer {

// "0.1.0", of the whole program.
std::string Version();

// One line of what this program is made of: "pyrometer 0.1.0 (Release, x86_64, libbpf 1.1)".
std::string VersionLine();

}  // namespace pyrometer
