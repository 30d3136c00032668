// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/unique_fd.h"

namespace pyrometer {

// A file in memory that holds the input.
inline UniqueFd FuzzFile(const uint8_t* bytes, size_t size) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(fd.get(), bytes, size) != static_cast<ssize_t>(size)) std::abort();
  return fd;
}

// Ends the run if `holds` is false; unlike assert, in every build.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace pyrometer
