// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/procfs.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sampling.h"
#include "sampler/faces.h"
#include "sampler/map_sizes.h"
#include "sampler/sampler_counters.h"

namespace pyrometer {

// Samples what runs on every CPU, in the kernel. The only user of libbpf. This class loads the
// programs; all else goes through its four faces, each for a thread of its own.
class Sampler {
 public:
  struct Options {
    SampledEvent event{};
    Hertz frequency{99};  // of a clock
    bool kernel_stacks = true;
    SampleFilter filter{};
    Procfs procfs{};   // `sys` shows the online CPUs, `root` the highest sample rate
    MapSizes sizes{};  // fixed, even if the frequency changes
    // Limit on kernel memory for rows of unwind tables, in bytes.
    size_t table_budget = size_t{64} << 20;
    // Limits on samples that user space unwinds, per second: of the machine, and of one process. A
    // user gets at most three quarters of the former, and it may be exceeded for the sake of
    // processes that have few.
    uint32_t cold_per_second = 4000;
    uint32_t cold_per_second_of_process = 2000;
  };

  // Loads and verifies the programs. From then on the filter follows forks; ticks have not begun.
  // Errors: kPermission, kUnsupported (no BTF, kernel too old), each with what to do about it;
  // kExhausted if the filter is too large. `clock`: CLOCK_MONOTONIC, as the samples'; must outlive
  // the sampler.
  static Result<std::unique_ptr<Sampler>> Load(const Options& options, const Clock& clock);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  WindowSource& windows();
  MappingTarget& mappings();
  TableTarget& tables();
  ColdSource& cold();

  // Any thread.
  SamplerCounters counters() const;

  // How many CPUs there may ever be: for each of them the kernel side takes memory when loaded.
  static uint32_t PossibleCpus();

  // Kernel id of the sampling program.
  uint32_t tick_program_id() const;

 private:
  struct State;
  explicit Sampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pyrometer
