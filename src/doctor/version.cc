// SPDX-License-Identifier: Apache-2.0
#include "doctor/version.h"

#include <fmt/format.h>

#include "sampler/kernel_features.h"

namespace pyrometer {
namespace {

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "aarch64";
#else
#error "Pyrometer is made for x86_64 and aarch64"
#endif

}  // namespace

std::string Version() {
  return PYROMETER_VERSION;
}

std::string VersionLine() {
  return fmt::format("pyrometer {} ({}, {}, libbpf {})", Version(), PYROMETER_BUILD_TYPE,
                     kArchitecture, LibbpfVersion());
}

}  // namespace pyrometer
