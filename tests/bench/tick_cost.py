# SPDX-License-Identifier: Apache-2.0
"""What a tick costs at 99 Hz, when neither the program nor what it reads is in the caches any more:
beside the bpftrace one-liner, in the same run, over programs as people run them."""

import contextlib
import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time

for sibling in ("live", "shared"):
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", sibling))

import kernel  # noqa: E402
import recorders  # noqa: E402
import tables  # noqa: E402
import workloads  # noqa: E402

HERTZ = 99
# Until the unwind tables of what runs are loaded and its names are known.
SETTLE_SECONDS = 5


@dataclasses.dataclass
class Load:
    title: str
    workloads: tuple
    target: float  # of our time over bpftrace's

    @contextlib.contextmanager
    def at_work(self):
        with contextlib.ExitStack() as stack:
            for workload in self.workloads:
                stack.enter_context(workload.at_work())
            for workload in self.workloads:
                workload.wait_until_busy()
            yield


LOADS = [
    Load("two busy programs", (workloads.PYTHON3, workloads.PERL5), 0.6),
    Load("servers", (workloads.POSTGRESQL, workloads.REDIS, workloads.NGINX), 0.6),
    Load("a build", (workloads.SMALL_BUILD,), 1.0),
]


class Beside(recorders.Bpftrace):
    """Without the name of the process, which pyrometer's sample has besides."""

    def command(self, hertz, directory, target=None):
        text = "profile:hz:%d { @[ustack, kstack] = count(); }" % hertz
        return ["bpftrace", "-o", os.path.join(directory, "bpftrace.txt"), "-e", text]


class _Running:
    """A recorder at work, and what the kernel books for its program."""

    def __init__(self, bench, recorder, stack):
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-bench-"))
        spent = stack.enter_context(bench.spent(recorder.command(HERTZ, directory), directory))
        self._program = bench.wait_until_sampling(recorder, spent, stack)
        self.pid = spent.pid

    def books(self):
        return self._program.runs(), self._program.run_ns()


@dataclasses.dataclass
class Part:
    """Of a tick. Times in nanoseconds, without the clock's own."""

    name: str
    times: float  # in a tick
    ns: float  # in a tick


@dataclasses.dataclass
class Ticks:
    """Under one load. Mean ticks in microseconds, one for each repetition."""

    ours: list
    theirs: list
    parts: list

    def ratio(self):
        """Ours over theirs, the median over the repetitions."""
        return statistics.median(our / their for our, their in zip(self.ours, self.theirs))


def _mean_us(before, after):
    return (after[1] - before[1]) / max(after[0] - before[0], 1) / 1e3


def parts_of(lines):
    """What tick_anatomy has printed."""
    counts = {}
    for line in lines.splitlines():
        name, ns, count = line.split("\t")
        counts[name] = int(ns), int(count)
    ticks = counts.pop("-")[1]
    mark_ns, marks = counts.pop("mark")
    mark = mark_ns / max(marks, 1)
    return [Part(name, count / ticks, (ns - count * mark) / ticks) for name, (ns, count) in counts.items()]


def _ticks(bench, pyrometer, seconds, repetitions):
    """The recorders run beside each other: each leaves the caches alone for most of the time before
    another's tick."""
    with contextlib.ExitStack() as stack:
        running = [_Running(bench, recorder, stack) for recorder in (pyrometer, Beside())]
        time.sleep(SETTLE_SECONDS)
        means = [[], []]
        for _ in range(repetitions):
            before = [recorder.books() for recorder in running]
            time.sleep(seconds / repetitions)
            for mean, recorder, begin in zip(means, running, before):
                mean.append(_mean_us(begin, recorder.books()))
        anatomy = [bench.program("tick_anatomy"), str(running[0].pid), str(seconds / 2)]
        lines = subprocess.run(anatomy, stdout=subprocess.PIPE, text=True, check=True).stdout
        return Ticks(*means, parts_of(lines))


def measure(bench, pyrometer, seconds, repetitions, say):
    """{Load.title: Ticks}"""
    results = {}
    for load in LOADS:
        say("tick: " + load.title)
        try:
            with load.at_work():
                results[load.title] = _ticks(bench, pyrometer, seconds, repetitions)
        except workloads.Missing as problem:
            say("%s is left out: %s" % (load.title, problem))
    return results


def report(results):
    rows = [["load", "pyrometer us", "bpftrace us", "ratio"], None]
    for title, ticks in results.items():
        rows.append([title, tables.with_spread(ticks.ours), tables.with_spread(ticks.theirs),
                     "%.2f" % ticks.ratio()])  # fmt: skip
    return tables.table(rows)


def report_parts(results):
    """A row for each part, two columns for each load."""
    rows = [["part", *(title for load in results for title in (load + ": ns", "times"))], None]
    for parts in zip(*(ticks.parts for ticks in results.values())):
        cells = [("%.0f" % part.ns, "%.1f" % part.times) for part in parts]
        rows.append([parts[0].name, *(cell for pair in cells for cell in pair)])
    return tables.table(rows)


def verdicts(results):
    """(what, value, target, unit)"""
    return [("a tick over bpftrace's, " + load.title, results[load.title].ratio(), load.target, "")
            for load in LOADS if load.title in results]  # fmt: skip
