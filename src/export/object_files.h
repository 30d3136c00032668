// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>

#include "base/unique_fd.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// The files of objects that profiles tell of, open for reading.
class ObjectFiles {
 public:
  virtual ~ObjectFiles() = default;

  // What tells the names of `object`, which a profile had of late: its debug file, or else its own
  // if that has more names than it needs to run. Null: there is none at hand now. May look for it,
  // for some seconds, but no longer than until `stop`. Any thread.
  virtual std::shared_ptr<const UniqueFd> Find(const CodeObject& object,
                                               const std::stop_token& stop) = 0;
};

}  // namespace pyrometer
