#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the recorder takes while it records servers, a build, short-lived processes and nothing.

    tests/live/recorder_cpu.py [--seconds 20] [--frequency 99]

CPU is a share of one core. `sampling`: while it samples, by its own clock; `whole run`: user and
system time by wait4(2), its start and its end included, over the time that it sampled. `tick` is the
mean time of the BPF program, which the kernel books to whom it hits, `ticks` their share of one core.
Exit status 1 if `sampling` or the memory (peak resident set, maps and perf buffers) is over its
limit, 77 if nothing can be recorded here.
"""

import sys

import recording
import workloads

MEMORY_LIMIT = 85e6  # bytes
# (workload, percent of one core)
LOADS = [(workloads.IDLE, 0.1), (workloads.POSTGRESQL, 0.7), (workloads.REDIS, 0.7),
         (workloads.NGINX, 0.7), (workloads.BUILD, 2.0), (workloads.BURSTS, 2.0)]  # fmt: skip


def measure(workload, chosen):
    with workload.at_work():
        workload.wait_until_busy()
        return recording.record(chosen, "cpu-" + workload.name)


def print_row(name, cost, limit, ticks_per_second, over):
    print("| %s | %.2f %% | %g %% | %.2f %% | %.1f us | %.2f %% | %.1f MB | %.1f MB | %s |" % (
        name, cost.sampling_percent(), limit, 100 * cost.total_cpu / cost.seconds,
        cost.tick_ns / 1e3, cost.tick_ns * ticks_per_second / 1e7,
        cost.resident / 1e6, cost.kernel_memory / 1e6, "MISSED" if over else "ok"), flush=True)  # fmt: skip


def main():
    chosen = recording.arguments(recording.argument_parser(__doc__, seconds=20, frequency=99))
    missed = False
    print("| load | sampling | at most | whole run | tick | ticks | resident | kernel memory | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for workload, limit in LOADS:
        try:
            cost = measure(workload, chosen).cost
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | %s |" % (workload.name, problem), flush=True)
            missed |= isinstance(problem, recording.Failure)
            continue
        over = cost.sampling_percent() > limit or cost.resident + cost.kernel_memory > MEMORY_LIMIT
        missed |= over
        print_row(workload.name, cost, limit, chosen.frequency * recording.CPUS, over)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
