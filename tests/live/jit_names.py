#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which share of the frames of JIT compilers' code has a name, by what they tell of it themselves.

    tests/live/jit_names.py [--only NAME]... [--seconds 10] [--frequency 499]

Installs what is missing, records each program in turn, and prints a table. Exit status 1 if a program
has less than 98 %, 77 if nothing can be recorded here, or no program can be had.
"""

import collections
import os
import subprocess
import sys
import tempfile
import time

import recording
import workloads
from packages import Missing, need

FEWEST_FRAMES = 200
AT_LEAST = 98.0
JIT = "[jit]"
WARM_UP_SECONDS = 6  # until most is compiled


def node(option):
    def command(directory):
        with open(os.path.join(directory, "load.js"), "w") as file:
            file.write(workloads.NODE)
        return [need("node", "nodejs"), option, "load.js"]

    return command


def java(directory):
    with open(os.path.join(directory, "Load.java"), "w") as file:
        file.write(workloads.JAVA)
    return [need("java", "openjdk-17-jdk-headless"), "-XX:+PreserveFramePointer", "Load.java"]


def write_java_map(pid):
    jcmd = need("jcmd", "openjdk-17-jdk-headless")
    subprocess.run([jcmd, str(pid), "Compiler.perfmap"], check=True, stdout=subprocess.DEVNULL)


# How to start each, and what to do once it is warm.
PROGRAMS = {
    "node --perf-prof": (node("--perf-prof"), None),
    "node --perf-basic-prof": (node("--perf-basic-prof"), None),
    "java, jcmd Compiler.perfmap": (java, write_java_map),
}


def arguments():
    parser = recording.argument_parser(__doc__, seconds=10, frequency=499)
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(PROGRAMS),
                        help="one of: " + ", ".join(PROGRAMS))  # fmt: skip
    return recording.arguments(parser)


def recorded(name, chosen):
    """The pid and the profile of the program."""
    command, when_warm = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="pyrometer-live-") as directory:
        process = subprocess.Popen(command(directory), cwd=directory, stdout=subprocess.DEVNULL)
        try:
            time.sleep(WARM_UP_SECONDS)
            if when_warm:
                when_warm(process.pid)
            with recording.recorder(chosen, name, "--pid", str(process.pid)) as running:
                time.sleep(chosen.seconds)
                return running.finish().profile
        finally:
            process.kill()
            process.wait()
            path = "/tmp/perf-%d.map" % process.pid
            if os.path.exists(path):
                os.unlink(path)


def counted(profile):
    """Counter of "named", "lines" (of these) and "unnamed", in frames times samples."""
    counts = collections.Counter()
    for sample in profile.samples:
        for frame in sample.frames:
            if frame.mapping == JIT:
                counts["named"] += sample.values[0]
                counts["lines"] += sample.values[0] * (frame.line != 0)
            elif frame.function == "[unknown]":
                counts["unnamed"] += sample.values[0]
    return counts


def main():
    chosen = arguments()
    print("| program | frames | named | with a line | at least | |\n|---|---|---|---|---|---|")
    verdicts = []
    for name in chosen.only or PROGRAMS:
        try:
            counts = counted(recorded(name, chosen))
        except (Missing, recording.Failure, subprocess.CalledProcessError) as problem:
            print("%s: %s" % (name, problem), file=sys.stderr)
            verdicts.append("FAILED" if not isinstance(problem, Missing) else "missing")
            continue
        frames = counts["named"] + counts["unnamed"]
        named = 100 * counts["named"] / max(frames, 1)
        verdict = "TOO FEW" if frames < FEWEST_FRAMES else "ok" if named >= AT_LEAST else "MISSED"
        verdicts.append(verdict)
        lines = 100 * counts["lines"] / max(counts["named"], 1)
        print("| %s | %d | %.2f %% | %.2f %% | %.0f %% | %s |"
              % (name, frames, named, lines, AT_LEAST, verdict), flush=True)  # fmt: skip
    if all(verdict == "missing" for verdict in verdicts):
        return recording.SKIPPED
    return 0 if all(verdict in ("ok", "missing") for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
