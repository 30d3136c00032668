// SPDX-License-Identifier: Apache-2.0
// A window as text, so that it can be recorded on one machine and replayed on another:
//
//   task PID START EXEC NOW                 as the task iterator told it
//   window BEGIN END
//   stack KERNEL_FRAMES USER_FRAMES END FRAME...   frames in hexadecimal
//   sample PID START EXEC STACK COUNT FIRST_SEEN LAST_SEEN COMM THREAD
#pragma once

#include <istream>
#include <ostream>
#include <vector>

#include "process/task_record.h"
#include "pyrometer/sample.h"

namespace pyrometer {

struct RecordedWindow {
  std::vector<TaskRecord> tasks;
  Window window;
};

void Write(const RecordedWindow& recorded, std::ostream& out);

// Lines that are not understood are left out.
RecordedWindow ReadRecordedWindow(std::istream& in);

}  // namespace pyrometer
