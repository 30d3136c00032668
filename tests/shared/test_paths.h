// SPDX-License-Identifier: Apache-2.0
// Paths of this checkout. They stand in one small source, since what the compiler is told of a
// checkout's place keeps a cache from knowing the same test in another one.
#pragma once

#include <string>
#include <string_view>

namespace pyrometer {

// A file below the project's directory.
std::string SourcePath(std::string_view below);
// What the build has made, below its directory.
std::string BuildPath(std::string_view below);

}  // namespace pyrometer
