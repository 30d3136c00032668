#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the unwinder's stacks with gdb's, of servers stopped at random moments under load.

    tests/live/gdb_agreement.py --reader build/dev/tests/oracle/stack_reader [--moments 200]

gdb stays attached and interrupts the process again and again; at each moment gdb_moments.py asks
both. A stack agrees if it has the same functions in the same order as gdb's, down to where gdb gives
up, if it does: gdb guesses where there is no call frame information, and stops where it cannot.
Exit status 1 if any stack disagrees or fewer than 99.5 % are complete, 77 if nothing can be compared
here. A program that cannot be had is named and left out.
"""

import argparse
import json
import os
import subprocess
import sys

import workloads
from packages import Missing, need
from recording import SKIPPED, Failure

MOMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gdb_moments.py")
COMPLETE_PERCENT = 99.5
TIMEOUT_SECONDS = 500


def compare(workload, reader, moments):
    """The counts that gdb_moments.py prints. Raises Missing, or Failure if it prints none."""
    with workload.at_work() as pid:
        environment = dict(os.environ, STACK_READER=reader, MOMENTS=str(moments),
                           DEBUGINFOD_URLS="", PYTHONDONTWRITEBYTECODE="1")  # fmt: skip
        command = [need("gdb", "gdb"), "-nx", "-q", "-batch", "-iex", "set auto-load off",
                   "-p", str(pid), "-x", MOMENTS]  # fmt: skip
        result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=TIMEOUT_SECONDS)  # fmt: skip
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise Failure("gdb said: " + (result.stdout + result.stderr).strip()[-500:])
    return json.loads(lines[-1])


def print_row(name, found):
    print("| {0} | {moments} | {same} | {gdb_stopped} | {different} | {complete} |".format(
        name, **found), flush=True)  # fmt: skip
    for example in found["examples"]:
        print(example, file=sys.stderr)


def is_good(found, moments):
    enough = found["complete"] * 100 >= found["moments"] * COMPLETE_PERCENT
    return found["moments"] == moments and not found["different"] and enough


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reader", required=True, help="the built tests/oracle/stack_reader")
    parser.add_argument("--moments", type=int, default=200, help="of each program (%(default)s)")
    chosen = parser.parse_args()
    print("| program | moments | same as gdb | same until gdb stops | different | complete |")
    print("|---|---|---|---|---|---|")
    verdicts = []
    for workload in (workloads.POSTGRESQL, workloads.REDIS):
        try:
            found = compare(workload, os.path.abspath(chosen.reader), chosen.moments)
        except (Missing, Failure) as problem:
            print("%s: %s" % (workload.name, problem), file=sys.stderr)
            if isinstance(problem, Failure):
                verdicts.append(False)
            continue
        print_row(workload.name, found)
        verdicts.append(is_good(found, chosen.moments))
    if not verdicts:
        return SKIPPED
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
