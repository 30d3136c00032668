// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// A place for bytes: a file, a pipe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Delivers all of `bytes`, a whole document, or fails. What a failure leaves there is the sink's
  // to say.
  virtual Result<void> Write(std::string_view bytes) = 0;
};

}  // namespace pyrometer
