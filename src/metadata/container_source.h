// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "metadata/container_metadata.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Who knows the containers of this machine.
class ContainerSource {
 public:
  virtual ~ContainerSource() = default;

  // All of them, running or not, for as long as they are remembered there. Takes no longer than
  // the source's own limit. Errors: kNotFound if there is no runtime; kPermission; kUnsupported if
  // what runs there does not speak our protocol; anything else may be better at the next try.
  virtual Result<std::vector<ContainerMetadata>> List() = 0;

  // Ends a List() that is under way, and later ones at once. Any thread.
  virtual void Cancel() = 0;

  // Of a source that learns by itself what changes: calls `changed` when the next List() may say
  // something new, on a thread of its own, until Cancel() has returned. Others never call it.
  virtual void TellChanges(const std::function<void()>& /*changed*/) {}

  // Of a source that is asked only where others do not answer: one of those has answered. Not while
  // List() is under way.
  virtual void Rest() {}
};

}  // namespace pyrometer
