#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which share of the user frames of well-known programs under load has a name, and why the others
have none.

    tests/live/naming.py [--only NAME]... [--seconds 10] [--frequency 499] [--unnamed 5]

Installs what is missing, records each program in turn, and prints a table: shares of all user
frames, and of the innermost ones, by time; and how many of the different frames have no name, as they
are shown and as if each address were a frame of its own. A frame that a symbol of its file covers, as
readelf shows them, must have a name. Exit status 1 if one has none, 77 if nothing can be recorded
here, or no program can be had. One that cannot be had is named and left out.
"""

import os
import sys

import names
import recording
import workloads

PROGRAMS = [workloads.POSTGRESQL, workloads.REDIS, workloads.NGINX, workloads.NODE_JS, workloads.GCC]
FEWEST_FRAMES = 1000  # a percentage of fewer says nothing about a thousandth


def arguments():
    parser = recording.argument_parser(__doc__, seconds=10, frequency=499)
    known = [workload.name for workload in workloads.PROGRAMS]
    parser.add_argument("--only", metavar="NAME", action="append", choices=known,
                        default=None, help="one of: " + ", ".join(known))  # fmt: skip
    parser.add_argument("--unnamed", type=int, default=5,
                        help="of how many frames without a name to tell (%(default)s)")  # fmt: skip
    return recording.arguments(parser)


def measure(workload, chosen):
    with workload.at_work():
        workload.wait_until_busy()
        recorded = recording.record(chosen, workload.name)
    return names.judge(recorded.profile, workload.comms)


def tell(name, found, most):
    total = sum(found.frames[key] for key in (names.NAMED, *names.REASONS))
    verdict = "TOO FEW" if total < FEWEST_FRAMES else "MISSED" if found.missed else "ok"
    shares = " | ".join("%.2f %%" % found.percent(key)
                        for key in (names.NAMED, names.STUBS, *names.REASONS))  # fmt: skip
    distinct = " | ".join("%d of %d" % counts
                          for counts in (found.distinct(), found.distinct_by_address()))  # fmt: skip
    print("| %s | %d | %s | %.2f %% | %s | %s |"
          % (name, total, shares, found.percent(names.NAMED, found.leaves), distinct, verdict), flush=True)  # fmt: skip
    for what, frames in (("unnamed", found.unnamed), ("missed", found.missed)):
        for (function, mapping), count in frames.most_common(most):
            print("  %s: %.2f %% %s in %s"
                  % (what, 100 * count / total, function, os.path.basename(mapping) or "no file"),
                  file=sys.stderr)  # fmt: skip
    return verdict


def main():
    chosen = arguments()
    heads = ("program", "user frames", names.NAMED, "of these " + names.STUBS, *names.REASONS,
             "innermost named", "different ones unnamed", "by address", "")  # fmt: skip
    print("| %s |\n|%s" % (" | ".join(heads), "---|" * len(heads)))
    verdicts = []
    for workload in workloads.PROGRAMS if chosen.only else PROGRAMS:
        if chosen.only and workload.name not in chosen.only:
            continue
        try:
            verdicts.append(tell(workload.name, measure(workload, chosen), chosen.unnamed))
        except (workloads.Missing, recording.Failure) as problem:
            print("| %s | - | %s |" % (workload.name, problem), flush=True)
            if isinstance(problem, recording.Failure):
                verdicts.append("FAILED")
    if not verdicts:
        return recording.SKIPPED
    return 0 if set(verdicts) == {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main())
