// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "process/process_event.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The sample_type of our events. With sample_id_all every record ends in these fields:
// u32 pid, tid; u64 time; u32 cpu, reserved.
inline constexpr uint64_t kSampleIdFields = (1U << 1) | (1U << 2) | (1U << 7);  // TID|TIME|CPU
inline constexpr size_t kSampleIdSize = 24;

// Reads one record of a perf ring, header included, as perf_event_open(2) describes them.
// Nothing: a record that is irrelevant here (another type, a pid that does not exist in our pid
// namespace). Errors: kMalformed.
Result<std::optional<ProcessEvent>> ParsePerfRecord(std::span<const std::byte> record);

}  // namespace pyrometer
