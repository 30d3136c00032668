// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "pyrometer/sample.h"

namespace pyrometer {

// One line on standard error that is rewritten every 250 ms or so while a recording runs. Shows
// nothing unless standard error is a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  // Erases the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool shown() const { return shown_; }
  void Update(std::chrono::nanoseconds elapsed, std::optional<std::chrono::nanoseconds> total,
              const Accounting& accounting);
  // Writes a message of whole lines, shown or not; the next update comes below it.
  void Tell(std::string_view message);

 private:
  bool shown_;
};

}  // namespace pyrometer
