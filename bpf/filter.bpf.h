/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which tasks are sampled. Decided before any stack is touched.
 */
#ifndef PYROMETER_FILTER_BPF_H
#define PYROMETER_FILTER_BPF_H

#include "maps.bpf.h"
#include "types.bpf.h"

/* By generation, the hierarchy that its cgroup ids belong to: 0 version 2, else 1 + index into
 * css_set.subsys. Written by user space before the generation is in use. */
volatile __u32 cgroup_hierarchies[PYRO_FILTER_GENERATIONS] = {};

/* Generations that want pids: with none, the fork program has nothing to do. A child does not
 * inherit generations that are no longer in use. Written by user space. */
volatile __u32 pid_generations = 0;

/* 0: no cgroup is denied, and a tick does not check. Else another number whenever the set of denied
 * cgroups has changed. Written by user space, after the set. */
volatile __u32 denial_generation = 0;

/* Children of wanted processes that did not fit into wanted_pids. */
volatile __u64 missed_children = 0;

/* Levels of cgroups that are looked at, from the task's own upwards. The kernel lets them be nested
 * deeper (cgroup.max.depth): what lies further above counts as neither wanted nor denied. */
#define PYRO_MAX_CGROUP_DEPTH 32
#define PYRO_MAX_SUBSYSTEMS 16

/* With the typed pointers that begin at bpf_get_current_task_btf() (5.11) each step up is three
 * load instructions, else two helper calls of 25 ns. */
#define PYRO_HAS_TYPED_TASK \
  bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)

/* The task's version 2 cgroup. */
static __always_inline struct cgroup *pyro_cgroup(void)
{
  if (PYRO_HAS_TYPED_TASK) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    return task->cgroups->dfl_cgrp;
  }
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  return BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

/* The task's cgroup in a version 1 hierarchy. */
static __always_inline struct cgroup *pyro_v1_cgroup(__u32 subsystem)
{
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  struct css_set *set = BPF_CORE_READ(task, cgroups);
  struct cgroup_subsys_state *state;
  const __u32 index = subsystem & (PYRO_MAX_SUBSYSTEMS - 1);
  const void *slot =
      (const char *)set + bpf_core_field_offset(struct css_set, subsys) + index * sizeof(void *);
  if (bpf_probe_read_kernel(&state, sizeof(state), slot)) return 0;
  return BPF_CORE_READ(state, cgroup);
}

static __always_inline __u64 pyro_cgroup_id(struct cgroup *cgroup, bool typed)
{
  return typed ? cgroup->kn->id : BPF_CORE_READ(cgroup, kn, id);
}

/* Null above the root. `typed`: the verifier knows what `cgroup` points to. */
static __always_inline struct cgroup *pyro_parent_cgroup(struct cgroup *cgroup, bool typed)
{
  struct cgroup_subsys_state *parent =
      typed ? cgroup->self.parent : BPF_CORE_READ(cgroup, self.parent);
  if (!parent) return 0;
  return typed ? parent->cgroup : BPF_CORE_READ(parent, cgroup);
}

static __always_inline bool pyro_below_denied(struct cgroup *cgroup)
{
  for (int depth = 0; depth < PYRO_MAX_CGROUP_DEPTH && cgroup; ++depth) {
    const __u64 id = pyro_cgroup_id(cgroup, PYRO_HAS_TYPED_TASK);
    if (bpf_map_lookup_elem(&denied_cgroups, &id)) return true;
    cgroup = pyro_parent_cgroup(cgroup, PYRO_HAS_TYPED_TASK);
  }
  return false;
}

/* True if the task is in or below a denied cgroup. The kernel never moves a cgroup to another
 * parent: what was found for one holds until the denied set changes. */
static __always_inline bool pyro_denied(__u32 program)
{
  /* Read once, and before the set: a verdict is never newer than its generation says. */
  const __u32 generation = denial_generation;
  if (!generation) return false;
  struct cgroup *cgroup = pyro_cgroup();
  if (!cgroup) return false;
  const __u64 id = pyro_cgroup_id(cgroup, PYRO_HAS_TYPED_TASK);
  const __u32 slot = program * PYRO_VERDICTS + (id & (PYRO_VERDICTS - 1));
  struct pyro_verdict *verdict = bpf_map_lookup_elem(&verdicts, &slot);
  if (!verdict) return pyro_below_denied(cgroup);
  if (verdict->cgroup != id || verdict->generation != generation) {
    verdict->denied = pyro_below_denied(cgroup);
    verdict->cgroup = id;
    verdict->generation = generation;
  }
  return verdict->denied;
}

static __always_inline bool pyro_names(const __u8 *generations, __u32 generation)
{
  return generations && (*generations >> generation & 1);
}

/* True if the generation wants `cgroup` or one of its ancestors. */
static __always_inline bool pyro_below_wanted(struct cgroup *cgroup, __u32 generation, bool typed)
{
  for (int depth = 0; depth < PYRO_MAX_CGROUP_DEPTH && cgroup; ++depth) {
    const __u64 id = pyro_cgroup_id(cgroup, typed);
    if (pyro_names(bpf_map_lookup_elem(&wanted_cgroups, &id), generation)) return true;
    cgroup = pyro_parent_cgroup(cgroup, typed);
  }
  return false;
}

static __always_inline bool pyro_in_wanted_cgroup(__u32 generation)
{
  const __u32 hierarchy = cgroup_hierarchies[generation];
  if (hierarchy) return pyro_below_wanted(pyro_v1_cgroup(hierarchy - 1), generation, false);
  return pyro_below_wanted(pyro_cgroup(), generation, PYRO_HAS_TYPED_TASK);
}

/* True if the filter of `active` wants the sample. */
static __always_inline bool pyro_wanted(const struct pyro_sample_key *key, __u32 active)
{
  if (!(active & PYRO_ACTIVE_FILTERS)) return true;
  const __u32 generation = active >> PYRO_ACTIVE_GENERATION_SHIFT & (PYRO_FILTER_GENERATIONS - 1);
  if (active & PYRO_ACTIVE_PIDS &&
      pyro_names(bpf_map_lookup_elem(&wanted_pids, &key->pid), generation))
    return true;
  if (active & PYRO_ACTIVE_COMMS &&
      (pyro_names(bpf_map_lookup_elem(&wanted_comms, key->comm), generation) ||
       pyro_names(bpf_map_lookup_elem(&wanted_comms, key->thread), generation)))
    return true;
  return active & PYRO_ACTIVE_CGROUPS && pyro_in_wanted_cgroup(generation);
}

/* Makes the children of wanted processes wanted. */
static __always_inline void pyro_want_child(__u32 parent_pid, __u32 child_pid)
{
  const __u32 generations = pid_generations;
  if (!generations) return;
  const __u8 *of_parent = bpf_map_lookup_elem(&wanted_pids, &parent_pid);
  if (!of_parent) return;
  const __u8 of_child = *of_parent & generations;
  if (of_child && bpf_map_update_elem(&wanted_pids, &child_pid, &of_child, BPF_ANY))
    __sync_fetch_and_add(&missed_children, 1);
}

#endif
