// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pyrometer/abi/sampler.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"
#include "pyrometer/sampling.h"
#include "sampler/generation_set.h"
#include "sampler/skeleton.h"

namespace pyrometer {

// The kernel side's filters: the one in force, and one prepared to replace it.
//
// To change the filter: Prepare, store `active` with bits(), Commit, wait for running programs,
// Sweep. From Prepare on, children forked by wanted processes belong to the new filter as well.
//
// Thread safety: none.
class FilterGenerations {
 public:
  // `skeleton` is loaded and must outlive this. The first filter wants everything.
  explicit FilterGenerations(sampler_bpf& skeleton);

  // Replaces a filter prepared before. May wait for running programs. Errors: kUnsupported,
  // kExhausted; then nothing changes.
  Result<void> Prepare(const SampleFilter& filter);

  // The bits of `active` for the prepared filter or, if there is none, for the one in force.
  uint32_t bits() const { return (prepared_ ? *prepared_ : current_).Bits(); }

  // Puts the prepared filter, if there is one, in force.
  void Commit();

  // Removes filters that are no longer in force. REQUIRES: no running program uses them.
  void Sweep();

  // True if the filter has no pids, or any of these processes or their followed children is left.
  bool AnyWantedPid() const;
  void ForgetPid(Pid pid);

  // Adds a cgroup of the same hierarchy to the filter in force, and to a prepared one, if these
  // have cgroups. Errors: kExhausted.
  Result<void> WantCgroup(uint64_t cgroup);
  // Of any filter.
  void ForgetCgroup(uint64_t cgroup);

 private:
  struct Generation {
    uint32_t number = 0;
    uint32_t flags = 0;  // PYRO_ACTIVE_PIDS, ...
    uint32_t Bits() const { return number << PYRO_ACTIVE_GENERATION_SHIFT | flags; }
    bool has_pids() const { return (flags & PYRO_ACTIVE_PIDS) != 0; }
    bool has_cgroups() const { return (flags & PYRO_ACTIVE_CGROUPS) != 0; }
  };

  Result<void> WaitAndSweep();
  // Index of a version 1 controller in css_set.subsys. Errors: kUnsupported.
  Result<uint32_t> SubsystemOf(const std::string& controller);
  uint32_t FreeNumber() const;
  Result<void> Add(const SampleFilter& filter, uint32_t generation);
  void FollowPids();

  sampler_bpf& skeleton_;
  GenerationSet pids_;
  GenerationSet comms_;
  GenerationSet cgroups_;
  std::map<std::string, uint32_t> subsystems_;  // empty until one is needed: reading takes long
  UniqueLink exit_link_;                        // attached once there are pids
  Generation current_;
  std::optional<Generation> prepared_;
  bool has_stale_ = false;  // the maps have entries of other generations
};

}  // namespace pyrometer
