// SPDX-License-Identifier: Apache-2.0
// runs_bpf: loads a BPF program called "burn", which the kernel compiles, and has it run for ever.
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct bpf_insn program[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 20000},
    {.code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = BPF_REG_0, .imm = 1664525},
    {.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
    {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_1, .off = -3, .imm = 0},
    {.code = BPF_JMP | BPF_EXIT},
};

static int bpf(int command, union bpf_attr* attributes) {
  return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

int main(void) {
  union bpf_attr load;
  memset(&load, 0, sizeof(load));
  load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  load.insns = (__u64)(unsigned long)program;
  load.insn_cnt = sizeof(program) / sizeof(program[0]);
  load.license = (__u64)(unsigned long)"GPL";
  strcpy(load.prog_name, "burn");
  const int loaded = bpf(BPF_PROG_LOAD, &load);
  if (loaded < 0) {
    perror("runs_bpf: loading");
    return 1;
  }
  static char packet[64];
  for (;;) {
    union bpf_attr run;
    memset(&run, 0, sizeof(run));
    run.test.prog_fd = (__u32)loaded;
    run.test.data_in = (__u64)(unsigned long)packet;
    run.test.data_size_in = sizeof(packet);
    run.test.repeat = 1000;
    if (bpf(BPF_PROG_TEST_RUN, &run) < 0) {
      perror("runs_bpf: running");
      return 1;
    }
  }
}
