# SPDX-License-Identifier: Apache-2.0
"""The recorders that are compared: how each is called, and what it says that it has recorded.

All sample the user and the kernel stack on every CPU, and end, their output written, at SIGINT.
"""

import dataclasses
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import collapsed  # noqa: E402


class Failure(Exception):
    """A measurement that cannot be made; the text says why."""


@dataclasses.dataclass
class Target:
    """What is to be sampled, for recorders that can be told."""

    comm: str
    pids: tuple = ()


class Yardstick:
    """A recorder of others. They have bugs that are not ours to find: perf 6.1 crashes now and then
    on kernels much newer than itself ("stack smashing detected")."""

    tries = 3

    def try_to(self, measure, say):
        """What `measure()` returns, or None if it keeps failing."""
        for left in reversed(range(self.tries)):
            try:
                return measure()
            except Failure as failure:
                say("%s: %s" % ("trying again" if left else "left out", str(failure).rstrip()))
        return None


def _written(directory, name):
    return os.path.getsize(os.path.join(directory, name))


OUTCOME_EXPORTED = 0  # enum pyro_outcome
OUTCOMES = 8


class Pyrometer:
    name = "pyrometer"
    filters = True  # it can be told to sample only one program
    counts_runs = True  # its cost is that of a BPF program, which the kernel books

    def __init__(self, program):
        self.program = program

    def try_to(self, measure, _):
        return measure()

    def version(self):
        return subprocess.run(
            [self.program, "version"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[0]

    def command(self, hertz, directory, target=None):
        words = [self.program, "record", "--quiet", "--frequency", str(hertz)]
        if target:
            words += ["--comm", target.comm]
        for name in ("pyrometer.pb.gz", "pyrometer.folded") if target else ("pyrometer.pb.gz",):
            words += ["--output", os.path.join(directory, name)]
        return words

    def samples(self, _, stderr):
        return int(re.search(r"^samples=(\d+) ", stderr, re.M).group(1))

    def samples_so_far(self, program):
        return sum(program.counters("outcomes")[OUTCOME_EXPORTED::OUTCOMES])  # of both halves

    def cold_so_far(self, program):
        """Samples that the BPF program could not unwind, or not to the end."""
        variables = program.variables()
        return sum(variables["cold_shipped"]) + variables["cold_refused"]

    def bytes_written(self, directory):
        return _written(directory, "pyrometer.pb.gz")

    def frames(self, directory):
        """Of the most frequent stack."""
        with open(os.path.join(directory, "pyrometer.folded")) as file:
            stacks = [(count, len(frames)) for _, frames, count in map(collapsed.split, file)]
        return max(stacks)[1] if stacks else 0


class Bpftrace(Yardstick):
    name = "bpftrace"
    filters = True
    counts_runs = True

    def version(self):
        return subprocess.run(["bpftrace", "--version"], capture_output=True, text=True).stdout.strip()

    def command(self, hertz, directory, target=None):
        condition = '/comm == "%s"/ ' % target.comm if target else ""
        text = "profile:hz:%d %s{ @[ustack, kstack, comm] = count(); }" % (hertz, condition)
        return ["bpftrace", "-o", os.path.join(directory, "bpftrace.txt"), "-e", text]

    def samples(self, directory, _):
        # An entry of the map spans lines and ends in "]: COUNT".
        with open(os.path.join(directory, "bpftrace.txt"), errors="replace") as file:
            return sum(int(count) for count in re.findall(r"\]: (\d+)$", file.read(), re.M))

    def bytes_written(self, directory):
        return _written(directory, "bpftrace.txt")


class EmptyTick(Bpftrace):
    """What a tick costs that does nothing: the interrupt, and the way to a program and back."""

    name = "empty tick"
    filters = False

    def command(self, hertz, directory, target=None):
        text = "profile:hz:%d { }" % hertz
        return ["bpftrace", "-o", os.path.join(directory, "bpftrace.txt"), "-e", text]


class Perf(Yardstick):
    name = "perf record"
    filters = False
    counts_runs = False

    def version(self):
        return subprocess.run(["perf", "--version"], capture_output=True, text=True).stdout.strip()

    def command(self, hertz, directory, target=None):
        return ["perf", "record", "-F", str(hertz), "-g", "-a",
                "-o", os.path.join(directory, "perf.data")]  # fmt: skip

    def samples(self, _, stderr):
        match = re.search(r"\((\d+) samples\)", stderr)
        return int(match.group(1)) if match else 0

    def bytes_written(self, directory):
        return _written(directory, "perf.data")

    @staticmethod
    def command_to_name(directory):
        """What has to follow before perf's samples have names; the others have done it by then."""
        return ["perf", "script", "--no-inline", "-i", os.path.join(directory, "perf.data")]


class PerfDwarf(Perf):
    """perf as it records programs without frame pointers: with a piece of the user stack, 8 KiB by
    default, which `perf script` unwinds afterwards. Told to sample nothing else than its target."""

    name = "perf --call-graph dwarf"
    works_while_sampling = True  # it would lose samples beside a load that lets nothing else run

    def command(self, hertz, directory, target=None):
        scope = ["-p", ",".join(map(str, target.pids))] if target else ["-a"]
        return ["perf", "record", "-F", str(hertz), "--call-graph", "dwarf", *scope,
                "-o", os.path.join(directory, "perf.data")]  # fmt: skip

    @staticmethod
    def command_to_name(directory):
        # By default it shows 127 frames, however many it has unwound.
        return ["perf", "script", "--no-inline", "--max-stack", "1024", "-F", "comm,ip,sym",
                "-i", os.path.join(directory, "perf.data")]  # fmt: skip
