// SPDX-License-Identifier: Apache-2.0
#include "sampler/sampler.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/system_error.h"
#include "sampler.skel.h"
#include "sampler/cold_ring.h"
#include "sampler/kernel_tables.h"
#include "sampler/load_errors.h"
#include "sampler/mapping_upload.h"
#include "sampler/perf_events.h"
#include "sampler/table_upload.h"
#include "sampler/window_drain.h"

namespace pyrometer {
namespace {

struct SkeletonDeleter {
  void operator()(sampler_bpf* skeleton) const { sampler_bpf__destroy(skeleton); }
};
struct LinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using UniqueSkeleton = std::unique_ptr<sampler_bpf, SkeletonDeleter>;
using UniqueLink = std::unique_ptr<bpf_link, LinkDeleter>;

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
  bpf_map__set_max_entries(maps.processes, sizes.processes);
  bpf_map__set_max_entries(maps.cold_samples, sizes.cold_bytes);
  bpf_map__set_max_entries(maps.cold_buffers, static_cast<uint32_t>(libbpf_num_possible_cpus()));
}

// Index of a version 1 controller in css_set.subsys: the value of <controller>_cgrp_id.
Result<int> SubsystemIndex(const std::string& controller) {
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), &btf__free);
  if (!types) return Fail(ErrorCode::kUnsupported, "{}", kNoBtfAdvice);
  const int32_t id = btf__find_by_name_kind(types.get(), "cgroup_subsys_id", BTF_KIND_ENUM);
  const btf_type* type = id < 0 ? nullptr : btf__type_by_id(types.get(), static_cast<uint32_t>(id));
  const std::string wanted = controller + "_cgrp_id";
  for (uint32_t i = 0; type != nullptr && i < btf_vlen(type); ++i) {
    const struct btf_enum& value = btf_enum(type)[i];
    if (wanted == btf__str_by_offset(types.get(), value.name_off)) return value.val;
  }
  return Fail(ErrorCode::kUnsupported, "this kernel has no cgroup controller '{}'", controller);
}

Result<void> Configure(sampler_bpf& skeleton, const Sampler::Options& options) {
  SetSizes(skeleton, options.sizes);
  const SampleFilter& filter = options.filter;
  skeleton.rodata->want_kernel_stacks = options.kernel_stacks;
  skeleton.rodata->filter_pids = !filter.pids.empty();
  skeleton.rodata->filter_comms = !filter.comms.empty();
  skeleton.rodata->filter_cgroups = !filter.cgroups.empty();
  if (!filter.cgroup_controller.empty()) {
    ASSIGN_OR_RETURN(skeleton.rodata->cgroup_subsystem, SubsystemIndex(filter.cgroup_controller));
  }
  // x86_64 and arm64: 16 KiB, but never less than a page.
  skeleton.rodata->kernel_stack_size =
      static_cast<uint32_t>(std::max(16384L, sysconf(_SC_PAGESIZE)));
  // Early enough: a quarter of it is more than a wakeup takes.
  skeleton.rodata->cold_wakeup_bytes = options.sizes.cold_bytes / 4;
  skeleton.rodata->cold_per_second = options.cold_per_second;
  skeleton.rodata->cold_per_second_of_process = options.cold_per_second_of_process;
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) return SystemError(errno, "getrandom");
  skeleton.rodata->hash_seed = seed;
  return {};
}

template <typename Key>
Result<void> Want(const bpf_map* map, const Key& key) {
  const uint8_t yes = 1;
  if (bpf_map_update_elem(bpf_map__fd(map), &key, &yes, BPF_ANY) == 0) return {};
  return SystemError(errno, fmt::format("setting filter {}", bpf_map__name(map)));
}

Result<void> SetFilter(const sampler_bpf& skeleton, const SampleFilter& filter) {
  for (const Pid pid : filter.pids) {
    RETURN_IF_ERROR(Want(skeleton.maps.wanted_pids, pid.value()));
  }
  for (const std::string& comm : filter.comms) {
    std::array<char, PYRO_COMM_LEN> name{};
    std::ranges::copy_n(comm.begin(), static_cast<long>(std::min(comm.size(), name.size() - 1)),
                        name.begin());
    RETURN_IF_ERROR(Want(skeleton.maps.wanted_comms, name));
  }
  for (const uint64_t id : filter.cgroups) {
    RETURN_IF_ERROR(Want(skeleton.maps.wanted_cgroups, id));
  }
  return {};
}

Result<UniqueLink> Attach(bpf_program* program) {
  UniqueLink link(bpf_program__attach(program));
  if (link) return link;
  return SystemError(errno, fmt::format("attaching {}", bpf_program__name(program)));
}

}  // namespace

struct Sampler::State {
  // Links die before the skeleton: members are destroyed from last to first.
  UniqueSkeleton skeleton;
  std::optional<MappedArray<pyro_mapping>> pool;
  std::unique_ptr<KernelTables> tables;
  std::optional<MappingUpload> upload;
  std::optional<ColdRing> cold;
  std::array<WindowMaps, 2> halves;
  std::array<uint32_t, PYRO_STACK_CLASSES + 1>
      capacity{};  // in the order of `used` in the BPF code
  UniqueLink fork_link;
  UniqueLink exit_link;
  std::unique_ptr<PerfEvents> events;

  MonotonicTime window_begin;
  uint64_t drained = 0;

  uint64_t Outcome(pyro_outcome outcome) const;
};

Sampler::Sampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sampler::~Sampler() = default;

Result<std::unique_ptr<Sampler>> Sampler::Load(const Options& options) {
  const LoadLog log;
  auto state = std::make_unique<State>();
  state->skeleton.reset(sampler_bpf__open());
  if (!state->skeleton) return log.Explain(errno, "opening the BPF object");
  sampler_bpf& skeleton = *state->skeleton;
  RETURN_IF_ERROR(Configure(skeleton, options));
  if (const int error = sampler_bpf__load(&skeleton); error != 0) {
    return log.Explain(-error, "loading the BPF programs");
  }
  using Pool = MappedArray<pyro_mapping>;
  ASSIGN_OR_RETURN(state->pool, Pool::Map(skeleton.maps.mapping_pool, PYRO_MAPPING_POOL));
  ASSIGN_OR_RETURN(state->tables, KernelTables::Open(skeleton, options.table_budget));
  state->upload.emplace(state->pool->entries(), bpf_map__fd(skeleton.maps.processes),
                        state->tables->upload());
  ASSIGN_OR_RETURN(state->cold, ColdRing::Open(bpf_map__fd(skeleton.maps.cold_samples)));
  const MapSizes& sizes = options.sizes;
  state->capacity = {sizes.small_stacks, sizes.medium_stacks, sizes.large_stacks, sizes.counts};
  const auto& maps = skeleton.maps;
  state->halves[0] = {
      bpf_map__fd(maps.counts_0),
      {bpf_map__fd(maps.small_0), bpf_map__fd(maps.medium_0), bpf_map__fd(maps.large_0)}};
  state->halves[1] = {
      bpf_map__fd(maps.counts_1),
      {bpf_map__fd(maps.small_1), bpf_map__fd(maps.medium_1), bpf_map__fd(maps.large_1)}};

  ASSIGN_OR_RETURN(state->fork_link, Attach(skeleton.progs.pyro_fork));
  if (!options.filter.pids.empty()) {
    ASSIGN_OR_RETURN(state->exit_link, Attach(skeleton.progs.pyro_exit));
  }
  // After the programs are attached: no fork or exit of a wanted process goes unnoticed.
  RETURN_IF_ERROR(SetFilter(skeleton, options.filter));
  state->events =
      std::make_unique<PerfEvents>(skeleton.progs.pyro_tick, options.frequency, options.procfs);
  return std::unique_ptr<Sampler>(new Sampler(std::move(state)));
}

bool Sampler::AnyWantedPid() const {
  uint32_t first = 0;
  return bpf_map_get_next_key(bpf_map__fd(state_->skeleton->maps.wanted_pids), nullptr, &first) ==
         0;
}

void Sampler::ForgetWantedPid(Pid pid) {
  const uint32_t key = pid.value();
  bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.wanted_pids), &key);
}

Result<void> Sampler::Start() {
  state_->window_begin = MonotonicNow();
  return state_->events->FollowCpus();
}

Result<void> Sampler::FollowCpus() {
  return state_->events->FollowCpus();
}

void Sampler::Stop() {
  state_->events->Stop();
}

uint64_t Sampler::State::Outcome(pyro_outcome outcome) const {
  const int cpus = libbpf_num_possible_cpus();
  std::vector<uint64_t> runs(static_cast<size_t>(std::max(cpus, 1)));
  const uint32_t key = outcome;
  if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.outcomes), &key, runs.data()) != 0) return 0;
  uint64_t sum = 0;
  for (const uint64_t n : runs) sum += n;
  return sum;
}

bool Sampler::NearlyFull() const {
  const auto& bss = *state_->skeleton->bss;
  const auto& used = bss.used[bss.active_half & 1];
  for (size_t map = 0; map < state_->capacity.size(); ++map) {
    if (used[map] >= MapSizes::NearlyFull(state_->capacity[map])) return true;
  }
  return false;
}

std::chrono::nanoseconds Sampler::TimeUntilNearlyFull() const {
  const auto& bss = *state_->skeleton->bss;
  const auto& used = bss.used[bss.active_half & 1];
  const uint64_t ticks = state_->events->TicksPerSecond();
  auto least = std::chrono::nanoseconds::max();
  for (size_t map = 0; map < state_->capacity.size(); ++map) {
    const uint64_t limit = MapSizes::NearlyFull(state_->capacity[map]);
    least = std::min(least, MapSizes::TimeUntil(limit, used[map], ticks));
  }
  return least;
}

Result<Window> Sampler::Drain() {
  auto& bss = *state_->skeleton->bss;
  const uint32_t full = bss.active_half & 1;
  bss.active_half = full ^ 1;
  // Putting the same map into its place again changes nothing but waits until no program that may
  // have read the old value of active_half is running (kernel/bpf/syscall.c:
  // maybe_wait_bpf_programs).
  const int outer = bpf_map__fd(state_->skeleton->maps.counts_halves);
  if (bpf_map_update_elem(outer, &full, &state_->halves[full].counts, BPF_ANY) != 0) {
    return SystemError(errno, "swapping the window maps");
  }
  const MonotonicTime end = MonotonicNow();
  ASSIGN_OR_RETURN(Window window, DrainMaps(state_->halves[full]));
  std::ranges::fill(bss.used[full], 0);
  window.begin = std::exchange(state_->window_begin, end);
  window.end = end;
  for (const Sample& sample : window.samples) state_->drained += sample.count;
  return window;
}

Accounting Sampler::accounting() const {
  Accounting a;
  // Due ticks first: they must not run ahead of the ticks counted below.
  const uint64_t due = state_->events->DueTicks();
  a.exported = state_->Outcome(PYRO_OUTCOME_EXPORTED);
  a.idle = state_->Outcome(PYRO_OUTCOME_IDLE);
  a.filtered = state_->Outcome(PYRO_OUTCOME_FILTERED);
  a.lost[Accounting::kStackMapFull] = state_->Outcome(PYRO_OUTCOME_LOST_STACK_MAP_FULL);
  a.lost[Accounting::kCountMapFull] = state_->Outcome(PYRO_OUTCOME_LOST_COUNT_MAP_FULL);
  a.lost[Accounting::kNoMemory] = state_->Outcome(PYRO_OUTCOME_LOST_NO_MEMORY);
  a.lost[Accounting::kMapBusy] = state_->Outcome(PYRO_OUTCOME_LOST_MAP_BUSY);
  a.lost[Accounting::kInternal] = state_->Outcome(PYRO_OUTCOME_LOST_INTERNAL);
  a.undelivered = due - std::min(due, a.Ticks());
  return a;
}

uint64_t Sampler::drained() const {
  return state_->drained;
}

uint64_t Sampler::missed_children() const {
  return state_->skeleton->bss->missed_children;
}

uint32_t Sampler::tick_program_id() const {
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  const int fd = bpf_program__fd(state_->skeleton->progs.pyro_tick);
  return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.id : 0;
}

Result<std::vector<pyro_task_record>> Sampler::ListTasks() const {
  ASSIGN_OR_RETURN(const UniqueLink link, Attach(state_->skeleton->progs.pyro_list_tasks));
  const UniqueFd fd(bpf_iter_create(bpf_link__fd(link.get())));
  if (!fd) return SystemError(errno, "creating the task iterator");
  ASSIGN_OR_RETURN(const std::string bytes, ReadAll(fd.get(), size_t{256} << 20));
  std::vector<pyro_task_record> tasks(bytes.size() / sizeof(pyro_task_record));
  std::memcpy(tasks.data(), bytes.data(), tasks.size() * sizeof(pyro_task_record));
  return tasks;
}

std::vector<ColdSample> Sampler::TakeCold() {
  return state_->cold->Take();
}

void Sampler::WaitForCold(std::chrono::milliseconds most) {
  state_->cold->Wait(most);
}

void Sampler::WakeCold() {
  state_->cold->Wake();
}

ColdCounters Sampler::cold_counters() const {
  const auto& bss = *state_->skeleton->bss;
  return {.unknown_process = bss.cold_shipped[PYRO_COLD_PROCESS],
          .unknown_place = bss.cold_shipped[PYRO_COLD_PLACE],
          .exotic_rule = bss.cold_shipped[PYRO_COLD_EXOTIC],
          .hand_written = bss.cold_shipped[PYRO_COLD_HAND_WRITTEN],
          .refused = bss.cold_refused};
}

std::vector<ObjectId> Sampler::TakeWantedTables() {
  return state_->tables->upload().TakeWanted(MonotonicNow());
}

void Sampler::LoadTable(ObjectId object, const UnwindTable& table) {
  state_->tables->upload().Load(object, table, MonotonicNow());
}

void Sampler::Publish(const ProcessKey& process, ExecId exec, uint64_t exec_pages,
                      std::span<const PublishedMapping> mappings) {
  state_->upload->Publish(process, exec, exec_pages, mappings, MonotonicNow());
  if (state_->tables->upload().HasNew()) WakeCold();
}

void Sampler::Withdraw(Pid pid) {
  state_->upload->Withdraw(pid, MonotonicNow());
}

void Sampler::ReleaseWithdrawn() {
  state_->upload->ReleaseWithdrawn(MonotonicNow());
}

}  // namespace pyrometer
