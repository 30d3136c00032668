// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/mapping.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Reads what must be known of a mapped file when it is first seen.
class ObjectInspector {
 public:
  virtual ~ObjectInspector() = default;

  // `fd` is a regular file, open for reading; it stays the caller's. A file that is not ELF gives
  // facts without segments; an error means that its bytes could not be read or understood.
  // Thread-safe.
  virtual Result<ObjectFacts> Inspect(int fd) = 0;
};

}  // namespace pyrometer
