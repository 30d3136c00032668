// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "export/byte_sink.h"
#include "pyrometer/profile.h"

namespace pyrometer {

// Writes each profile in one format to one place: the outputs of a recording.
class EncodedSink {
 public:
  using Encoder = std::function<std::string(const Profile&)>;

  EncodedSink(Encoder encoder, std::unique_ptr<ByteSink> bytes)
      : encoder_(std::move(encoder)), bytes_(std::move(bytes)) {}

  // Writes all of `profile` or fails; the ByteSink says what a failure leaves behind.
  Result<void> Send(const Profile& profile) { return bytes_->Write(encoder_(profile)); }

 private:
  Encoder encoder_;
  std::unique_ptr<ByteSink> bytes_;
};

}  // namespace pyrometer
