/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which tasks are sampled. Decided before any stack is touched.
 */
#ifndef PYROMETER_FILTER_BPF_H
#define PYROMETER_FILTER_BPF_H

#include "maps.bpf.h"
#include "types.bpf.h"

/* Set at load. With none of the three every task is wanted, else any match will do. */
const volatile bool filter_pids = false;
const volatile bool filter_comms = false;
const volatile bool filter_cgroups = false;
/* Index into css_set.subsys of the version 1 hierarchy that the ids belong to; -1: version 2. */
const volatile int cgroup_subsystem = -1;

/* Children of wanted processes that found wanted_pids full. */
volatile __u64 missed_children = 0;

/* Cgroups are nested at most this deep below the root. */
#define PYRO_MAX_CGROUP_DEPTH 32
#define PYRO_MAX_SUBSYSTEMS 16

static __always_inline struct cgroup *pyro_cgroup_of(struct task_struct *task)
{
  struct css_set *set = BPF_CORE_READ(task, cgroups);
  if (cgroup_subsystem < 0) return BPF_CORE_READ(set, dfl_cgrp);
  struct cgroup_subsys_state *state;
  const __u32 index = cgroup_subsystem & (PYRO_MAX_SUBSYSTEMS - 1);
  const void *slot =
      (const char *)set + bpf_core_field_offset(struct css_set, subsys) + index * sizeof(void *);
  if (bpf_probe_read_kernel(&state, sizeof(state), slot)) return 0;
  return BPF_CORE_READ(state, cgroup);
}

/* In one of the wanted cgroups or below it. */
static __always_inline bool pyro_in_wanted_cgroup(struct task_struct *task)
{
  struct cgroup *cgroup = pyro_cgroup_of(task);
  for (int depth = 0; depth < PYRO_MAX_CGROUP_DEPTH && cgroup; ++depth) {
    const __u64 id = BPF_CORE_READ(cgroup, kn, id);
    if (bpf_map_lookup_elem(&wanted_cgroups, &id)) return true;
    struct cgroup_subsys_state *parent = BPF_CORE_READ(cgroup, self.parent);
    cgroup = parent ? BPF_CORE_READ(parent, cgroup) : 0;
  }
  return false;
}

static __always_inline bool pyro_wanted(const struct pyro_sample_key *key)
{
  if (!filter_pids && !filter_comms && !filter_cgroups) return true;
  if (filter_pids && bpf_map_lookup_elem(&wanted_pids, &key->pid)) return true;
  if (filter_comms && (bpf_map_lookup_elem(&wanted_comms, key->comm) ||
                       bpf_map_lookup_elem(&wanted_comms, key->thread)))
    return true;
  return filter_cgroups && pyro_in_wanted_cgroup((struct task_struct *)bpf_get_current_task());
}

/* Children of wanted processes are wanted. */
static __always_inline void pyro_want_child(__u32 parent_pid, __u32 child_pid)
{
  const __u8 yes = 1;
  if (!filter_pids || !bpf_map_lookup_elem(&wanted_pids, &parent_pid)) return;
  if (bpf_map_update_elem(&wanted_pids, &child_pid, &yes, BPF_ANY))
    __sync_fetch_and_add(&missed_children, 1);
}

#endif
