#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which share of the user stacks of well-known programs under load is complete.

    tests/live/completeness.py [--only NAME]... [--seconds 10] [--frequency 499]

Installs what is missing, records each program in turn, and prints a table. Complete: without a mark
of where it was cut, and beginning where a thread begins (the entry point of a program, or a function
whose return address is undefined). Exit status 1 if a program has less than its limit, 77 if nothing
can be recorded here, or no program can be had. One that cannot be had is named and left out.
"""

import sys

import recording
import stacks
import workloads

FEWEST_SAMPLES = 200  # a percentage of fewer says nothing about half a percent


def arguments():
    parser = recording.argument_parser(__doc__, seconds=10, frequency=499)
    names = [workload.name for workload in workloads.PROGRAMS]
    parser.add_argument("--only", metavar="NAME", action="append", choices=names,
                        help="one of: " + ", ".join(names))  # fmt: skip
    return recording.arguments(parser)


def measure(workload, chosen):
    """The Completeness, in which a stack that ends at no entry is not complete."""
    with workload.at_work():
        workload.wait_until_busy()
        recorded = recording.record(chosen, workload.name)
    found = stacks.completeness(recorded.folded, workload.comms)
    rootless, frames = stacks.false_roots(recorded.profile, workload.comms)
    found.complete -= rootless
    for frame, count in frames.items():
        found.reasons["ends at " + frame] += count
    return found


def verdict(workload, found):
    if found.samples < FEWEST_SAMPLES:
        return "TOO FEW"
    if workload.complete_percent is None:
        return "-"
    return "ok" if found.percent() >= workload.complete_percent else "MISSED"


def main():
    chosen = arguments()
    print("| program | user stacks | complete | at least | | stopped |\n|---|---|---|---|---|---|")
    verdicts = []
    for workload in workloads.PROGRAMS:
        if chosen.only and workload.name not in chosen.only:
            continue
        try:
            found = measure(workload, chosen)
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | - | | | %s | |" % (workload.name, problem), flush=True)
            if isinstance(problem, recording.Failure):
                verdicts.append("FAILED")
            continue
        limit = workload.complete_percent
        verdicts.append(verdict(workload, found))
        print("| %s | %d | %.2f %% | %s | %s | %s |" % (
            workload.name, found.samples, found.percent(), "%g %%" % limit if limit else "",
            verdicts[-1], found.reasons_text()), flush=True)  # fmt: skip
    if not verdicts:
        return recording.SKIPPED
    return 0 if set(verdicts) <= {"ok", "-"} else 1


if __name__ == "__main__":
    sys.exit(main())
