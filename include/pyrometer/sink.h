// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Where profiles go: a file, a server, a store.
//
// Send is called by one thread at a time, not always by the same one; `profile` may be read by
// other sinks meanwhile. It may take as long as the sink's own timeouts allow: whoever cannot wait
// puts an Outbox (src/export) in front.
class ProfileSink {
 public:
  virtual ~ProfileSink() = default;

  // Delivers all of `profile` or fails. What a failure leaves at the destination is the sink's to
  // say.
  virtual Result<void> Send(const Profile& profile) = 0;

  // Makes a Send that is under way, and any later one, fail soon rather than wait on. From any
  // thread. Nothing to do for sinks whose Send never waits for long.
  virtual void Cancel() {}
};

}  // namespace pyrometer
