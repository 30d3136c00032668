// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where profiles go: a file, a server, a store.
//
// Send is called by one thread at a time, not always the same one; other sinks may read `profile`
// meanwhile. It may take as long as the sink's own timeouts allow; a caller that cannot wait puts
// an Outbox (src/export) in front.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;

  // Delivers all of `profile` or fails. The sink documents what a failure leaves at the
  // destination.
  virtual Result<void> Send(const Profile& profile) = 0;

  // Makes a Send under way, and any later one, fail soon instead of waiting. Any thread. Sinks
  // whose Send never waits for long need not implement it.
  virtual void Cancel() {}
};

}  // namespace pyrometer
