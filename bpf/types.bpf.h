/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types that the kernel side reads, with only the members it reads. Offsets are
 * relocated at load against the running kernel's BTF (CO-RE), so neither order nor size matter
 * here and no generated vmlinux.h is needed to build.
 */
#ifndef PYROMETER_TYPES_BPF_H
#define PYROMETER_TYPES_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
  int counter;
} atomic_t;

struct mm_struct {
  unsigned long exec_vm; /* pages of mappings that are executable and not writable */
};

struct signal_struct {
  atomic_t live; /* threads of the group that have not begun to exit */
};

struct kernfs_node {
  __u64 id; /* a plain u64 since 5.5; on 64-bit machines it is the inode number */
};

struct cgroup;

struct cgroup_subsys_state {
  struct cgroup *cgroup;
  struct cgroup_subsys_state *parent;
};

struct cgroup {
  struct cgroup_subsys_state self;
  struct kernfs_node *kn;
};

struct css_set {
  struct cgroup *dfl_cgrp;
  struct cgroup_subsys_state *subsys[16]; /* by enum cgroup_subsys_id */
};

struct task_struct {
  unsigned int flags;
  int pid;
  int tgid;
  __u64 start_boottime; /* since 5.5; before, real_start_time */
  __u64 self_exec_id;   /* u64 since 5.7 */
  struct task_struct *group_leader;
  struct mm_struct *mm;
  void *stack;
  struct signal_struct *signal;
  struct css_set *cgroups;
  unsigned int kasan_depth; /* with CONFIG_KASAN only */
  char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
  struct seq_file *seq;
};

struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000

#endif
