#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is known of processes that come and go: a build, and 200 a second that live 1 to 30 ms.

    tests/live/churn.py [--seconds 10] [--frequency 499]

The recording begins before the first of them. A sample is right if no frame lies in the executable
of another program than the process's own, and its stack is complete. Exit status 1 if fewer than
99 % are right, if there are too few to tell, or if more than 1 % of all were lost; 77 if nothing can be
recorded here, or neither load can be had. One that cannot be had is named and left out.

A second recording of each load shows whether the recorder gives back what it took for processes that
are gone: BPF maps (unwind tables are in maps that are made as needed) and open files. Exit status 1 if
it does not within a minute, or if resident and kernel memory exceed 85 MB.
"""

import collections
import os
import re
import sys
import time

import recording
import stacks
import workloads

FEWEST_SAMPLES = 200  # a percentage of fewer says nothing about one percent
MOST_LOST_PERCENT = 1

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


def judge(profile, comms, roots=()):
    """A Counter of what the samples with a user stack are; `right` among them. `roots`: functions
    without call frame information that a thread may begin in."""
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
        elif frames[0].function not in roots and stacks.is_entry(frames[0]) is False:
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


GIVEN_BACK_SECONDS = 60
MEMORY_LIMIT = 85e6  # bytes


def exceeds(holds, others):
    return any(a > b for a, b in zip(holds, others))


def settled(recorder):
    """holds() when it has not changed for two seconds: what is mapped anyway has its tables."""
    last = None
    deadline = time.monotonic() + recording.DEADLINE_SECONDS
    while last != (now := recorder.holds()):
        if time.monotonic() > deadline:
            raise recording.Failure("the recorder takes more and more, though nothing was started")
        last = now
        time.sleep(2)
    return now


def measure_leftovers(workload, chosen):
    """holds() before the load, at its end, and when all is given back or the time is over; the Cost"""
    with recording.recorder(chosen, workload.name + " leftovers") as recorder:
        before = settled(recorder)
        with workload.at_work():
            time.sleep(chosen.seconds)
            during = recorder.holds()
        deadline = time.monotonic() + GIVEN_BACK_SECONDS
        while exceeds(after := recorder.holds(), before) and time.monotonic() < deadline:
            time.sleep(0.5)
        return before, during, after, recorder.finish().cost


def print_leftovers(chosen):
    """A verdict for each load: "MISSED" if something was left behind, or too much was taken."""
    verdicts = []
    print("\n| load | maps, files before | during | after | memory | |\n|---|---|---|---|---|---|")
    for workload in (workloads.BUILD, workloads.BURSTS):
        try:
            before, during, after, cost = measure_leftovers(workload, chosen)
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | %s |" % (workload.name, problem), flush=True)
            if isinstance(problem, recording.Failure):
                verdicts.append("FAILED")
            continue
        memory = cost.resident + cost.kernel_memory
        # A load for which nothing was taken would show nothing.
        wrong = exceeds(after, before) or not exceeds(during, before) or memory > MEMORY_LIMIT
        verdicts.append("MISSED" if wrong else "ok")
        print("| %s | %d, %d | %d, %d | %d, %d | %.1f MB | %s |" % (
            workload.name, *before, *during, *after, memory / 1e6, verdicts[-1]), flush=True)  # fmt: skip
    return verdicts


def lost_percent(accounting):
    """Of the ticks that should have become samples."""
    return 100 * accounting.lost / max(accounting.samples + accounting.lost, 1)


def verdict(samples, right_percent, lost, workload):
    if samples < FEWEST_SAMPLES:
        return "TOO FEW"
    if right_percent < workload.complete_percent or lost > MOST_LOST_PERCENT:
        return "MISSED"
    return "ok"


def print_right(chosen):
    """A verdict for each load."""
    verdicts = []
    print("| load | samples | right | at least | lost | | others |\n|---|---|---|---|---|---|---|")
    for workload in (workloads.BUILD, workloads.BURSTS):
        try:
            found, recorded = measure(workload, chosen)
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | - | | | | | %s |" % (workload.name, problem), flush=True)
            if isinstance(problem, recording.Failure):
                verdicts.append("FAILED")
            continue
        samples = sum(found.values())
        percents = {what: 100 * count / samples for what, count in found.most_common()}
        right = percents.pop("right", 0)
        lost = lost_percent(recorded.accounting)
        verdicts.append(verdict(samples, right, lost, workload))
        print("| %s | %d | %.2f %% | %g %% | %.2f %% | %s | %s |" % (
            workload.name, samples, right, workload.complete_percent, lost, verdicts[-1],
            ", ".join("%s %.2f %%" % other for other in list(percents.items())[:4])), flush=True)  # fmt: skip
        print("%s: %s" % (workload.name, recorded.accounting), file=sys.stderr)
    return verdicts


def main():
    chosen = recording.arguments(recording.argument_parser(__doc__, seconds=10, frequency=499))
    verdicts = print_right(chosen) + print_leftovers(chosen)
    if not verdicts:
        return recording.SKIPPED
    return 0 if set(verdicts) == {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main())
