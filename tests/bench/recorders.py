# SPDX-License-Identifier: Apache-2.0
"""The recorders that are compared: how each is called, and what it says that it has recorded.

All three sample the user and the kernel stack with frame pointers on every CPU, and end, their
output written, at SIGINT.
"""

import os
import re
import subprocess


class Failure(Exception):
    """A measurement that cannot be made; the text says why."""


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

    def command(self, hertz, directory, comm=None):
        words = [self.program, "record", "--quiet", "--frequency", str(hertz)]
        if comm:
            words += ["--comm", comm]
        for name in ("pyrometer.pb.gz", "pyrometer.folded") if comm else ("pyrometer.pb.gz",):
            words += ["--output", os.path.join(directory, name)]
        return words

    def samples(self, _, stderr):
        return int(re.search(r"^samples=(\d+) ", stderr, re.M).group(1))

    def bytes_written(self, directory):
        return _written(directory, "pyrometer.pb.gz")

    def frames(self, directory):
        """Of the most frequent stack."""
        with open(os.path.join(directory, "pyrometer.folded")) as file:
            counts = {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in file)}
        return max(counts, key=counts.get).count(";") if counts else 0


class Bpftrace(Yardstick):
    name = "bpftrace"
    filters = True
    counts_runs = True

    def version(self):
        return subprocess.run(["bpftrace", "--version"], capture_output=True, text=True).stdout.strip()

    def command(self, hertz, directory, comm=None):
        condition = '/comm == "%s"/ ' % comm if comm else ""
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

    def command(self, hertz, directory, comm=None):
        text = "profile:hz:%d { }" % hertz
        return ["bpftrace", "-o", os.path.join(directory, "bpftrace.txt"), "-e", text]


class Perf(Yardstick):
    name = "perf record"
    filters = False
    counts_runs = False

    def version(self):
        return subprocess.run(["perf", "--version"], capture_output=True, text=True).stdout.strip()

    def command(self, hertz, directory, _=None):
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
