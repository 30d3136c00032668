#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is known of processes that come and go: a build, and 200 a second that live 1 to 30 ms.

    tests/live/churn.py [--seconds 10] [--frequency 499]

The recording begins before the first of them. A sample is right if no frame lies in the executable
of another program than the process's own, and its stack is complete. Exit status 1 if fewer than
99 % are right, 77 if nothing can be recorded here. A load that cannot be had is named and left out.
"""

import collections
import os
import re
import sys
import time

import recording
import stacks
import workloads

# Program of the build -> last part of the path of its executable.
TOOLS = {"cc1": r"cc1", "as": r".*-as", "gcc": r".*-gcc(-\d+)?", "collect2": r"collect2",
         "ld": r".*-ld(\.bfd)?", "make": r"make"}  # fmt: skip


def executable_of(comm):
    return TOOLS.get(comm, re.escape(comm))


def is_library(mapping):
    name = os.path.basename(mapping)
    return ".so" in name or not mapping.startswith("/")


def is_right_program(sample):
    """Whether its frames lie in its own executable, if in any, and in libraries."""
    pattern = re.compile(executable_of(sample.labels["comm"]))
    return all(
        is_library(frame.mapping) or pattern.fullmatch(os.path.basename(frame.mapping))
        for frame in stacks.user_frames(sample)
    )


def judge(profile, comms):
    """A Counter of what the samples with a user stack are; `right` among them."""
    verdicts = collections.Counter()
    for sample in profile.samples:
        if sample.labels.get("comm") not in comms:
            continue
        frames = stacks.user_frames(sample)
        if not frames and not stacks.is_cut(sample):
            continue
        if not is_right_program(sample):
            verdict = "another program"
        elif stacks.is_cut(sample):
            verdict = sample.frames[0].function.strip("[]")
        elif stacks.is_entry(frames[0]) is False:
            verdict = "ends at %s in %s" % (frames[0].function, os.path.basename(frames[0].mapping))
        else:
            verdict = "right"
        verdicts[verdict] += sample.values[0]
    return verdicts


def measure(workload, chosen):
    """(judge()'s Counter, the Recording)"""
    with recording.recorder(chosen, workload.name) as recorder:
        with workload.at_work():
            time.sleep(chosen.seconds)
            # The processes' executables are looked at below, so they must still be there.
            recorded = recorder.finish()
            return judge(recorded.profile, workload.comms), recorded


def main():
    chosen = recording.arguments(recording.argument_parser(__doc__, seconds=10, frequency=499))
    missed = False
    print("| load | samples | right | at least | others |\n|---|---|---|---|---|")
    for workload in (workloads.BUILD, workloads.BURSTS):
        try:
            verdicts, recorded = measure(workload, chosen)
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | - | | | %s |" % (workload.name, problem), flush=True)
            missed |= isinstance(problem, recording.Failure)
            continue
        total = max(sum(verdicts.values()), 1)
        right = 100 * verdicts.pop("right", 0) / total
        missed |= right < workload.complete_percent
        print("| %s | %d | %.2f %% | %g %% | %s |" % (
            workload.name, total, right, workload.complete_percent,
            ", ".join("%s %.2f %%" % (v, 100 * n / total) for v, n in verdicts.most_common(4))))  # fmt: skip
        print("%s: %s" % (workload.name, recorded.accounting), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
