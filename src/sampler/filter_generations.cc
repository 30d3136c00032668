// SPDX-License-Identifier: Apache-2.0
#include "sampler/filter_generations.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sampler/grace_period.h"
#include "sampler/load_errors.h"

namespace pyrometer {
namespace {

// Where css_set.subsys has the version 1 controllers: <controller>_cgrp_id and its value.
Result<std::map<std::string, uint32_t>> ReadSubsystems() {
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), &btf__free);
  if (!types) return Fail(ErrorCode::kUnsupported, "{}", kNoBtfAdvice);
  std::map<std::string, uint32_t> subsystems;
  const int32_t id = btf__find_by_name_kind(types.get(), "cgroup_subsys_id", BTF_KIND_ENUM);
  const btf_type* type = id < 0 ? nullptr : btf__type_by_id(types.get(), static_cast<uint32_t>(id));
  for (uint32_t i = 0; type != nullptr && i < btf_vlen(type); ++i) {
    const struct btf_enum& value = btf_enum(type)[i];
    subsystems.emplace(btf__str_by_offset(types.get(), value.name_off),
                       static_cast<uint32_t>(value.val));
  }
  return subsystems;
}

std::array<char, PYRO_COMM_LEN> CutAsTheKernelDoes(const std::string& comm) {
  std::array<char, PYRO_COMM_LEN> name{};
  std::ranges::copy_n(comm.begin(), static_cast<long>(std::min(comm.size(), name.size() - 1)),
                      name.begin());
  return name;
}

uint32_t FlagsOf(const SampleFilter& filter) {
  return (filter.pids.empty() ? 0 : PYRO_ACTIVE_PIDS) |
         (filter.comms.empty() ? 0 : PYRO_ACTIVE_COMMS) |
         (filter.cgroups.empty() ? 0 : PYRO_ACTIVE_CGROUPS);
}

}  // namespace

FilterGenerations::FilterGenerations(sampler_bpf& skeleton)
    : skeleton_(skeleton),
      pids_(skeleton.maps.wanted_pids),
      comms_(skeleton.maps.wanted_comms),
      cgroups_(skeleton.maps.wanted_cgroups) {}

Result<void> FilterGenerations::Prepare(const SampleFilter& filter) {
  RETURN_IF_ERROR(WaitAndSweep());  // what could not be then: the number may be used again
  const Generation next{.number = FreeNumber(), .flags = FlagsOf(filter)};
  uint32_t hierarchy = 0;
  if (!filter.cgroup_controller.empty()) {
    ASSIGN_OR_RETURN(const uint32_t index, SubsystemOf(filter.cgroup_controller));
    hierarchy = index + 1;
  }
  skeleton_.bss->cgroup_hierarchies[next.number] = hierarchy;
  // Before the pids are in the map: no exit or fork of a wanted process goes unnoticed.
  if (next.has_pids() && !exit_link_) {
    ASSIGN_OR_RETURN(exit_link_, Attach(skeleton_.progs.pyro_exit));
  }
  const std::optional<Generation> before = std::exchange(prepared_, next);
  FollowPids();
  Result<void> added = Add(filter, next.number);
  if (!added) prepared_ = before;
  has_stale_ |= !added || before;
  FollowPids();
  static_cast<void>(WaitAndSweep());  // to make room; else the next call does
  return added;
}

Result<uint32_t> FilterGenerations::SubsystemOf(const std::string& controller) {
  if (subsystems_.empty()) {
    ASSIGN_OR_RETURN(subsystems_, ReadSubsystems());
  }
  const auto found = subsystems_.find(controller + "_cgrp_id");
  if (found != subsystems_.end()) return found->second;
  return Fail(ErrorCode::kUnsupported, "this kernel has no cgroup controller '{}'", controller);
}

// A fork program that is running may still give the bit of a generation that was withdrawn to a
// child.
Result<void> FilterGenerations::WaitAndSweep() {
  if (!has_stale_) return {};
  RETURN_IF_ERROR(WaitForRunningPrograms(skeleton_));
  Sweep();
  if (!has_stale_) return {};
  return Fail(ErrorCode::kExhausted, "the entries of an earlier filter cannot be removed now");
}

uint32_t FilterGenerations::FreeNumber() const {
  uint32_t number = 0;
  while (number == current_.number || (prepared_ && number == prepared_->number)) ++number;
  return number;
}

Result<void> FilterGenerations::Add(const SampleFilter& filter, uint32_t generation) {
  for (const Pid pid : filter.pids) {
    const uint32_t key = pid.value();
    RETURN_IF_ERROR(pids_.Add(&key, generation));
  }
  for (const std::string& comm : filter.comms) {
    RETURN_IF_ERROR(comms_.Add(CutAsTheKernelDoes(comm).data(), generation));
  }
  for (const uint64_t id : filter.cgroups) RETURN_IF_ERROR(cgroups_.Add(&id, generation));
  return {};
}

// Tells the fork program which generations children inherit.
void FilterGenerations::FollowPids() {
  uint32_t generations = current_.has_pids() ? 1U << current_.number : 0;
  if (prepared_ && prepared_->has_pids()) generations |= 1U << prepared_->number;
  std::atomic_ref<uint32_t>(skeleton_.bss->pid_generations).store(generations);
}

void FilterGenerations::Commit() {
  if (!prepared_) return;
  current_ = *std::exchange(prepared_, std::nullopt);
  has_stale_ = true;
  FollowPids();
}

void FilterGenerations::Sweep() {
  if (!has_stale_) return;  // walking the maps keeps ticks out meanwhile
  uint32_t generations = 1U << current_.number;
  if (prepared_) generations |= 1U << prepared_->number;
  has_stale_ = false;
  for (const GenerationSet* set : {&pids_, &comms_, &cgroups_}) {
    has_stale_ |= !set->Keep(static_cast<uint8_t>(generations));
  }
}

bool FilterGenerations::AnyWantedPid() const {
  if (!current_.has_pids() || (prepared_ && !prepared_->has_pids())) return true;
  uint32_t first = 0;
  return bpf_map_get_next_key(bpf_map__fd(skeleton_.maps.wanted_pids), nullptr, &first) == 0;
}

Result<void> FilterGenerations::WantCgroup(uint64_t cgroup) {
  if (current_.has_cgroups()) RETURN_IF_ERROR(cgroups_.Add(&cgroup, current_.number));
  if (prepared_ && prepared_->has_cgroups()) {
    RETURN_IF_ERROR(cgroups_.Add(&cgroup, prepared_->number));
  }
  return {};
}

void FilterGenerations::ForgetPid(Pid pid) {
  const uint32_t key = pid.value();
  bpf_map_delete_elem(bpf_map__fd(skeleton_.maps.wanted_pids), &key);
}

void FilterGenerations::ForgetCgroup(uint64_t cgroup) {
  bpf_map_delete_elem(bpf_map__fd(skeleton_.maps.wanted_cgroups), &cgroup);
}

}  // namespace pyrometer
