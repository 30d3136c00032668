// SPDX-License-Identifier: Apache-2.0
#include "record/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace pyrometer {
namespace {

int64_t Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

ProgressLine::ProgressLine(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) WriteMessage(STDERR_FILENO, kEraseLine);
}

void ProgressLine::Update(std::chrono::nanoseconds elapsed,
                          std::optional<std::chrono::nanoseconds> total,
                          const Accounting& accounting) {
  if (!shown_) return;
  const std::string of = total ? fmt::format(" of {} s", Seconds(*total)) : " s, Ctrl-C to stop";
  WriteMessage(STDERR_FILENO,
               fmt::format("{}recording: {}{}   samples {}   lost {}", kEraseLine, Seconds(elapsed),
                           of, accounting.exported, accounting.TotalLost()));
}

void ProgressLine::Tell(std::string_view message) {
  WriteMessage(STDERR_FILENO, fmt::format("{}{}", shown_ ? kEraseLine : "", message));
}

}  // namespace pyrometer
