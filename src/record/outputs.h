// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/record_config.h"
#include "export/encoded_sink.h"
#include "pyrometer/profile.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The outputs of a recording: files or standard output, each with its format.
class Outputs {
 public:
  // Checks every output, before the recording begins. Without `files` the output is the top
  // functions on standard output. Errors: a directory is missing or not writable.
  static Result<Outputs> Open(const std::vector<OutputFile>& files);

  // Writes every output even if others fail; returns the first failure.
  Result<void> Write(const Profile& profile);

 private:
  std::vector<EncodedSink> sinks_;
};

}  // namespace pyrometer
