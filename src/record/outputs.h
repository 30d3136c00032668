// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "config/record_config.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Where a recording goes: each file (or standard output) with its format.
class Outputs {
 public:
  // Checks every target before the recording begins. No files: the top functions on standard
  // output. Errors: of a directory that is missing or not writable.
  static Result<Outputs> Open(const std::vector<OutputFile>& files);

  // Writes all of them, whatever happens to the others; returns the first failure.
  Result<void> Write(const Profile& profile);

 private:
  std::vector<std::unique_ptr<ProfileSink>> sinks_;
};

}  // namespace pyrometer
