// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "export/byte_sink.h"

namespace pyrometer {

// An open file descriptor: what was written before an error stays written.
class FdSink final : public ByteSink {
 public:
  // `name` stands in error messages. REQUIRES: `fd` stays open as long as the sink is used.
  FdSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  Result<void> Write(std::string_view bytes) override;

 private:
  int fd_;
  std::string name_;
};

}  // namespace pyrometer
