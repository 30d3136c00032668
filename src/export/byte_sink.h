// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// A destination for bytes: a file, a pipe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Delivers all of `bytes`, a whole document, or fails. The sink documents what a failure leaves
  // there.
  virtual Result<void> Write(std::string_view bytes) = 0;
};

}  // namespace pyrometer
