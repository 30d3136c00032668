// SPDX-License-Identifier: Apache-2.0
#include "sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"
#include "sampler/cold_ring.h"
#include "sampler/kernel_tables.h"
#include "sampler/load_errors.h"
#include "sampler/process_mappings.h"
#include "sampler/sample_windows.h"
#include "sampler/skeleton.h"

namespace pyrometer {
namespace {

void SetSizes(sampler_bpf& skeleton, const MapSizes& sizes) {
  auto& maps = skeleton.maps;
  for (bpf_map* map : {maps.counts_0, maps.counts_1}) bpf_map__set_max_entries(map, sizes.counts);
  for (bpf_map* map : {maps.small_0, maps.small_1}) {
    bpf_map__set_max_entries(map, sizes.small_stacks);
  }
  for (bpf_map* map : {maps.medium_0, maps.medium_1}) {
    bpf_map__set_max_entries(map, sizes.medium_stacks);
  }
  for (bpf_map* map : {maps.large_0, maps.large_1}) {
    bpf_map__set_max_entries(map, sizes.large_stacks);
  }
  bpf_map__set_value_size(maps.journals, sizes.journal_bytes);
  bpf_map__set_max_entries(maps.journals, sizes.Journals(Sampler::PossibleCpus()));
  bpf_map__set_max_entries(maps.processes, sizes.processes);
  bpf_map__set_max_entries(maps.cold_samples, sizes.cold_bytes);
  bpf_map__set_max_entries(maps.mapping_pool, sizes.mapping_parts);
  const uint32_t shipping =
      sizes.shipping_cpus == 0 ? Sampler::PossibleCpus() : sizes.shipping_cpus;
  bpf_map__set_max_entries(maps.cold_buffers, shipping * PYRO_PROGRAMS);
}

Result<void> Configure(sampler_bpf& skeleton, const Sampler::Options& options) {
  SetSizes(skeleton, options.sizes);
  skeleton.rodata->want_kernel_stacks = options.kernel_stacks;
  skeleton.rodata->sampled_event = static_cast<uint32_t>(options.event.kind);
  // x86_64 and arm64: 16 KiB, but never less than a page.
  skeleton.rodata->kernel_stack_size =
      static_cast<uint32_t>(std::max(16384L, sysconf(_SC_PAGESIZE)));
  // Early enough: a quarter of it is more than a wakeup takes.
  skeleton.rodata->cold_wakeup_bytes = options.sizes.cold_bytes / 4;
  skeleton.rodata->journal_bytes = options.sizes.journal_bytes;
  skeleton.rodata->cold_ring_bytes = options.sizes.cold_bytes;
  skeleton.rodata->cold_per_second = options.cold_per_second;
  skeleton.rodata->cold_per_second_of_process = options.cold_per_second_of_process;
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) return SystemError(errno, "getrandom");
  skeleton.rodata->hash_seed = seed;
  return {};
}

ColdCounters ReadColdCounters(const sampler_bpf& skeleton) {
  const auto& bss = *skeleton.bss;
  return {.unknown_process = bss.cold_shipped[PYRO_COLD_PROCESS],
          .unknown_place = bss.cold_shipped[PYRO_COLD_PLACE],
          .exotic_rule = bss.cold_shipped[PYRO_COLD_EXOTIC],
          .hand_written = bss.cold_shipped[PYRO_COLD_HAND_WRITTEN],
          .unwound = bss.cold_unwound,
          .refused = bss.cold_refused};
}

}  // namespace

struct Sampler::State {
  // Links die before the skeleton: members are destroyed from last to first.
  UniqueSkeleton skeleton;
  std::unique_ptr<KernelTables> tables;
  std::unique_ptr<ProcessMappings> mappings;
  std::unique_ptr<ColdRing> cold;
  UniqueLink fork_link;
  std::unique_ptr<SampleWindows> windows;
};

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::Load(const Options& options, const Clock& clock) {
  const LoadLog log;
  auto state = std::make_unique<State>();
  state->skeleton.reset(sampler_bpf__open());
  if (!state->skeleton) return log.Explain(errno, "opening the BPF object");
  sampler_bpf& skeleton = *state->skeleton;
  RETURN_IF_ERROR(Configure(skeleton, options));
  if (const int error = sampler_bpf__load(&skeleton); error != 0) {
    return log.Explain(-error, "loading the BPF programs");
  }
  ASSIGN_OR_RETURN(state->tables, KernelTables::Open(skeleton, options.table_budget, clock));
  ASSIGN_OR_RETURN(state->mappings, ProcessMappings::Open(skeleton, *state->tables, clock));
  ASSIGN_OR_RETURN(state->cold, ColdRing::Open(bpf_map__fd(skeleton.maps.cold_samples)));
  // Before the filter: no fork of a wanted process goes unnoticed.
  ASSIGN_OR_RETURN(state->fork_link, Attach(skeleton.progs.pyro_fork));
  ASSIGN_OR_RETURN(state->windows, SampleWindows::Open(skeleton, {.clock = clock,
                                                                  .event = options.event,
                                                                  .frequency = options.frequency,
                                                                  .procfs = options.procfs,
                                                                  .sizes = options.sizes}));
  RETURN_IF_ERROR(state->windows->SetFilter(options.filter));
  return std::unique_ptr<Sampler>(new Sampler(std::move(state)));
}

WindowSource& Sampler::windows() {
  return *state_->windows;
}

MappingTarget& Sampler::mappings() {
  return *state_->mappings;
}

TableTarget& Sampler::tables() {
  return *state_->tables;
}

ColdSource& Sampler::cold() {
  return *state_->cold;
}

SamplerCounters Sampler::counters() const {
  const SampleWindows& windows = *state_->windows;
  return {.cold = ReadColdCounters(*state_->skeleton),
          .tables = state_->tables->upload().counters(),
          .mappings = state_->mappings->counters(),
          .cold_bytes_waiting = state_->cold->waiting(),
          .tick_time = windows.tick_time(),
          .drained_ticks = windows.drained(),
          .missed_children = state_->skeleton->bss->missed_children,
          .denied_cgroups = windows.denied_cgroups(),
          .sampled_cpus = windows.events().size(),
          .cpu_failures = windows.events().failures()};
}

uint32_t Sampler::PossibleCpus() {
  return static_cast<uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
}

uint32_t Sampler::tick_program_id() const {
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  const int fd = bpf_program__fd(state_->skeleton->progs.pyro_tick);
  return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.id : 0;
}

}  // namespace pyrometer
