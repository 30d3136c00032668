// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "sampler/mapping_upload.h"
#include "sampler/table_upload.h"

namespace pyrometer {

// What became of samples that the kernel side could not unwind or store, since Sampler::Load().
struct ColdCounters {
  uint64_t unknown_process = 0;  // shipped: the process was unknown or had changed
  uint64_t unknown_place = 0;    // shipped: a mapping or a table was not there yet
  uint64_t exotic_rule = 0;      // shipped: a rule that only user space can evaluate
  uint64_t hand_written = 0;     // shipped: code without call frame information
  uint64_t unwound = 0;          // shipped, though unwound: a window map was full
  uint64_t refused = 0;          // too many at once; their stacks are marked

  uint64_t shipped() const {
    return unknown_process + unknown_place + exotic_rule + hand_written + unwound;
  }
};

// All counters of the sampler, except what became of the ticks (Accounting). "Since the beginning"
// means since Sampler::Load().
struct SamplerCounters {
  ColdCounters cold;
  TableUpload::Counters tables;
  MappingUpload::Counters mappings;
  uint64_t cold_bytes_waiting = 0;       // shipped and not yet taken
  std::chrono::nanoseconds tick_time{};  // CPU time that ticks took; since the beginning
  uint64_t drained_ticks = 0;    // in windows handed out, without cold samples; since the beginning
  uint64_t missed_children = 0;  // of filtered pids, not followed: list full; likewise
  uint64_t denied_cgroups = 0;   // now
  uint64_t sampled_cpus = 0;     // now
  uint64_t cpu_failures = 0;     // times that a CPU could not be sampled, since the beginning
};

}  // namespace pyrometer
