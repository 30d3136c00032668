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

// The kernel side's filters: the one that holds, and one that is made ready to follow it.
//
// To change it: Prepare, store `active` with bits(), Commit, wait for running programs, Sweep. From
// Prepare on the children that wanted processes fork belong to the new filter, too.
//
// Thread safety: none.
class FilterGenerations {
 public:
  // Of a skeleton that is loaded and outlives this. Wants everything.
  explicit FilterGenerations(sampler_bpf& skeleton);

  // Replaces what was prepared before. May wait for running programs. Errors: kUnsupported,
  // kExhausted; then nothing changes.
  Result<void> Prepare(const SampleFilter& filter);

  // What `active` says of the prepared filter, or if there is none, of the one that holds.
  uint32_t bits() const { return (prepared_ ? *prepared_ : current_).Bits(); }

  // The prepared filter, if there is one, holds.
  void Commit();

  // Forgets filters that do not hold any more, if there are any. REQUIRES: no running program goes
  // by them.
  void Sweep();

  // True if the filter has no pids, or any of these processes or of their children is left.
  bool AnyWantedPid() const;
  void ForgetPid(Pid pid);

 private:
  struct Generation {
    uint32_t number = 0;
    uint32_t flags = 0;  // PYRO_ACTIVE_PIDS, ...
    uint32_t Bits() const { return number << PYRO_ACTIVE_GENERATION_SHIFT | flags; }
    bool has_pids() const { return (flags & PYRO_ACTIVE_PIDS) != 0; }
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
  std::map<std::string, uint32_t> subsystems_;  // empty until one is asked for: reading takes long
  UniqueLink exit_link_;                        // once there are pids
  Generation current_;
  std::optional<Generation> prepared_;
  bool has_stale_ = false;  // entries of generations that are neither
};

}  // namespace pyrometer
