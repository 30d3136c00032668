// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Where an encoded profile goes: a file, standard output, a server.
class Sink {
 public:
  virtual ~Sink() = default;

  // Delivers all of `bytes` or fails. What a failure leaves at the destination is the sink's to
  // say.
  virtual Result<void> Write(std::string_view bytes) = 0;
};

}  // namespace pyrometer
