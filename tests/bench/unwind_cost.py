# SPDX-License-Identifier: Apache-2.0
"""What a user stack costs by its depth: unwound by frame pointers, by call frame information (CFI),
and by perf, which copies a piece of it and unwinds that afterwards."""

import dataclasses
import os
import statistics

import kernel_cost
import load_variants
import recorders
import stack_check
import tables

HERTZ = kernel_cost.HERTZ
SECONDS = kernel_cost.SECONDS
FUNCTIONS = {32: "small_frame", 192: "large_frame"}  # by the bytes of a frame
DEPTHS = (5, 20, 60, 120, 300, 500)
SHAPES = [(depth, size) for size in FUNCTIONS for depth in DEPTHS]
# The names that the tables have, and the program that can be unwound in this way only.
WAYS = {"frame pointers": load_variants.BY_FRAME_POINTER, "CFI": load_variants.BY_CFI}
# So many samples may be something else: the load, as it ends.
FEW_PERCENT = 1
FEW = 10
# Something may have happened to the machine meanwhile; to a wrong program it happens every time.
TRIES = 3


@dataclasses.dataclass
class Unwound:
    """By one of WAYS, in the kernel. One entry per repetition, None where it was left out, each for
    one sample, but the pause."""

    frames: int = 0  # of the user stack
    sample_ns: list = dataclasses.field(default_factory=list)  # run time of the BPF program
    recorder_us: list = dataclasses.field(default_factory=list)  # CPU of `record`, warm, and its end
    bytes: list = dataclasses.field(default_factory=list)  # of the output
    pause_us: list = dataclasses.field(default_factory=list)  # how long a tick stops the load


@dataclasses.dataclass
class Copied:
    """By `perf record --call-graph dwarf`; the same of the program with CFI."""

    bytes: list = dataclasses.field(default_factory=list)
    recorder_us: list = dataclasses.field(default_factory=list)  # CPU of perf record, its start apart
    script_us: list = dataclasses.field(default_factory=list)  # CPU of perf script, which unwinds
    pause_us: list = dataclasses.field(default_factory=list)
    whole_percent: list = dataclasses.field(default_factory=list)  # of the samples


@dataclasses.dataclass
class Costs:
    """Of one shape."""

    unwound: dict = dataclasses.field(default_factory=lambda: {way: Unwound() for way in WAYS})
    copied: Copied = dataclasses.field(default_factory=Copied)


def _require(condition, shape, text):
    if not condition:
        raise recorders.Failure("%d frames of %d bytes: %s" % (*shape, text))


def _pause_us(run):
    return statistics.mean(load["median_ns"] / 1e3 for load in run.load)


def _unwind(bench, pyrometer, shape, program):
    """A Recorded whose stacks are all there, and were unwound in the kernel."""
    depth, size = shape
    expected = stack_check.expected_frames(depth, FUNCTIONS[size])

    def judge(directory):
        with open(os.path.join(directory, "pyrometer.folded")) as folded:
            return stack_check.check_folded(folded, program, expected)

    run = bench.cost(
        pyrometer, ("stack", *shape), HERTZ, SECONDS, program=program, judge=judge)  # fmt: skip
    check, books = run.judgement, run.books
    _require(books.samples, shape, "%s: no samples" % program)
    few = max(FEW, books.samples * FEW_PERCENT / 100)
    _require(check.samples - check.whole <= run.early_cold + few, shape,
             "%s: %d of %d stacks have them all" % (program, check.whole, check.samples))  # fmt: skip
    _require(books.cold <= few, shape,
             "%s: user space unwound %d of %d" % (program, books.cold, books.samples))  # fmt: skip
    sizes = {load["frame_bytes"] for load in run.load}
    _require(sizes == {size}, shape, "%s: its frames have %s bytes" % (program, sizes))
    return run


def _unwind_undisturbed(bench, pyrometer, shape, program, say):
    for left in reversed(range(TRIES)):
        try:
            return _unwind(bench, pyrometer, shape, program)
        except recorders.Failure as failure:
            if not left:
                raise
            say("trying again: %s" % failure)


def _copy(bench, perf, shape):
    """A Recorded of perf's; its judgement is the StackCheck, and its name_cpu is set."""
    depth, size = shape
    expected = stack_check.expected_frames(depth, FUNCTIONS[size])
    program = load_variants.BY_CFI

    def judge(directory):
        text = os.path.join(directory, "perf.txt")
        cpu = bench.naming_cpu(perf, directory, text)
        with open(text, errors="replace") as script:
            return stack_check.check_perf_script(script, program, expected), cpu

    run = bench.cost(perf, ("stack", *shape), HERTZ, SECONDS, program=program, judge=judge)
    run.judgement, run.name_cpu = run.judgement
    _require(run.samples, shape, "perf has no samples")
    return run


def measure(bench, pyrometer, repetitions, say):
    """{shape: Costs}. They take turns, so that what changes meanwhile hits all."""
    load_variants.require_as_named(*(bench.program(name) for name in (
        load_variants.BY_CFI, load_variants.BY_FRAME_POINTER)))  # fmt: skip
    perf = recorders.PerfDwarf()
    costs = {shape: Costs() for shape in SHAPES}
    for repetition in range(repetitions):
        filtered = kernel_cost.filtered_us(bench, pyrometer)
        for shape in SHAPES:
            say("unwind: repetition %d of %d, %d frames of %d bytes" % (
                repetition + 1, repetitions, *shape))  # fmt: skip
            for way, program in WAYS.items():
                run = _unwind_undisturbed(bench, pyrometer, shape, program, say)
                _add_unwound(costs[shape].unwound[way], run, filtered)
            run = perf.try_to(lambda s=shape: _copy(bench, perf, s), say)
            _add_copied(costs[shape].copied, run)
    return costs


def _add_unwound(unwound, run, filtered):
    """One repetition."""
    unwound.frames = run.judgement.user_frames
    if run.books.samples < kernel_cost.FEWEST_SAMPLES:
        _leave_out(unwound.sample_ns, unwound.recorder_us, unwound.bytes, unwound.pause_us)
        return
    unwound.sample_ns.append(kernel_cost.sample_us(run, filtered) * 1e3)
    own_cpu = run.steady_cpu + run.end_cpu
    unwound.recorder_us.append(own_cpu / run.books.samples * 1e6)
    unwound.bytes.append(run.written / run.samples)
    unwound.pause_us.append(_pause_us(run))


def _add_copied(copied, run):
    """One repetition; `run` is None if it was left out."""
    if not run:
        _leave_out(copied.bytes, copied.recorder_us, copied.script_us, copied.pause_us,
                   copied.whole_percent)  # fmt: skip
        return
    copied.bytes.append(run.written / run.samples)
    own_cpu = run.record_cpu + run.end_cpu
    copied.recorder_us.append(own_cpu / run.samples * 1e6)
    copied.script_us.append(run.name_cpu / run.samples * 1e6)
    copied.pause_us.append(_pause_us(run))
    copied.whole_percent.append(run.judgement.percent())


def _leave_out(*figures):
    for numbers in figures:
        numbers.append(None)


def line(costs, way, size):
    """(ns of a sample without frames, ns of a frame), or None without two depths."""
    points = [
        (cost.unwound[way].frames, statistics.median(samples))
        for shape, cost in costs.items()
        if shape[1] == size and (samples := tables.measured(cost.unwound[way].sample_ns))
    ]
    return tables.line_through(points) if len(points) > 1 else None


def worst_line(costs, way):
    """The same, each the greater of those of the two sizes of frames."""
    lines = [found for size in FUNCTIONS if (found := line(costs, way, size))]
    if not lines:
        raise recorders.Failure("too few samples of the load: others need the CPUs")
    return [max(numbers) for numbers in zip(*lines)]


def report(costs):
    rows = [["frame", "calls", "frames", *(way + ", ns" for way in WAYS), "ratio"], None]
    for (depth, size), cost in costs.items():
        by_frame_pointer, by_cfi = (cost.unwound[way] for way in WAYS)
        rows.append([
            "%d B" % size, str(depth), str(by_cfi.frames),
            tables.with_spread(by_frame_pointer.sample_ns, "%.0f"),
            tables.with_spread(by_cfi.sample_ns, "%.0f"),
            tables.ratio(by_cfi.sample_ns, by_frame_pointer.sample_ns),
        ])  # fmt: skip
    return tables.table(rows) + "\n\n" + "\n".join(_lines(costs))


def _lines(costs):
    for size in FUNCTIONS:
        for way in WAYS:
            if found := line(costs, way, size):
                yield "%s, frames of %d bytes: %.0f ns and %.1f ns a frame" % (way, size, *found)


def report_copied(costs):
    """pyrometer by CFI beside perf, over the same program."""
    rows = [["frame", "calls",
             "pyrometer: BPF us", "record us", "B/sample", "pause us",
             "perf: record us", "script us", "B/sample", "pause us", "whole %", "ratio"], None]  # fmt: skip
    for (depth, size), cost in costs.items():
        ours, copied = cost.unwound["CFI"], cost.copied
        bpf_us = [None if ns is None else ns / 1e3 for ns in ours.sample_ns]
        columns = (bpf_us, ours.recorder_us, ours.bytes, ours.pause_us, copied.recorder_us,
                   copied.script_us, copied.bytes, copied.pause_us, copied.whole_percent)  # fmt: skip
        rows.append([
            "%d B" % size, str(depth), *map(tables.median, columns),
            tables.ratio(_sums(copied.recorder_us, copied.script_us),
                         _sums(bpf_us, ours.recorder_us)),
        ])  # fmt: skip
    return tables.table(rows)


def _sums(first, second):
    return [None if None in pair else sum(pair) for pair in zip(first, second)]
