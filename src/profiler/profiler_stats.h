// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreign/reader_pool.h"
#include "indexer/artifact_store.h"
#include "process/process_counters.h"
#include "profiler/cold_unwinder.h"
#include "profiler/consumer_thread.h"
#include "profiler/object_symbols.h"
#include "profiler/sampling_loop.h"
#include "profiler/table_loader.h"
#include "profiler/unwind_tables.h"
#include "pyrometer/sample.h"
#include "sampler/sampler_counters.h"
#include "symbolize/unresolved.h"

namespace pyrometer {

// The file for what memory should not hold; all 0 if there is none.
struct SpillStats {
  uint64_t bytes = 0;      // in use now
  uint64_t room = 0;       // the most that may be
  uint64_t in_memory = 0;  // 1: it is in memory itself, no disk could be written
};

// Every counter of the profiler, grouped by the part that counts.
struct ProfilerStats {
  Accounting ticks;
  SamplingLoop::Counters windows;
  uint64_t windows_not_named = 0;  // dropped because naming did not keep up
  uint64_t windows_waiting = 0;    // to be named now
  ConsumerCounters consumers;
  SamplerCounters sampler;
  ColdUnwinder::Counters cold;
  ArtifactStore::Counters store;
  ReaderPool::Counters readers;     // all 0 if there are none
  uint64_t symbols_read_ahead = 0;  // objects, whose symbols were read before a window needed them
  ObjectSymbols::Counters debug_info;
  uint64_t without_debug_info = 0;  // objects in use, where it is still being read
  UnwindTables::Counters tables;
  TableLoader::Counters loading;
  ProcessCounters processes;
  SymbolizerCounts names;
  SpillStats spill;
};

// One number and its meaning, in the form of a Prometheus metric.
struct Stat {
  std::string_view name;         // "ticks_total"; counters end in _total, gauges do not
  std::string_view label;        // "outcome"; "" if it has none
  std::string_view label_value;  // "exported"
  uint64_t value = 0;
  std::string_view help;  // one line
};

// All counters in the order of a sample's life; those of one name are adjacent.
std::vector<Stat> ListStats(const ProfilerStats& stats);

}  // namespace pyrometer
