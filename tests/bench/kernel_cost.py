# SPDX-License-Identifier: Apache-2.0
"""What one sample costs in the kernel, by the depth of the stack and the size of its frames."""

import dataclasses
import statistics

import tables

HERTZ = 1999
SECONDS = 1.2
NOBODY = "nobody_at_all"
SHAPES = [(0, 32)] + [(depth, size) for size in (32, 192) for depth in (20, 40, 120, 400)]
# Without the samples of a busy CPU a repetition says nothing.
FEWEST_SAMPLES = 200


@dataclasses.dataclass
class Costs:
    """Of one shape, one entry per repetition, None where it was left out; times in microseconds."""

    frame_bytes: int = 0
    frames: int = 0  # recorded
    sample: dict = dataclasses.field(default_factory=dict)  # recorder -> run time of its program
    pause: dict = dataclasses.field(default_factory=dict)  # recorder -> how long the load stood


def filtered_us(bench, recorder):
    """What a run of the program takes that finds that it is not asked for."""
    run = bench.cost(recorder, ("stack", *SHAPES[0]), HERTZ, SECONDS, comm=NOBODY)
    return run.books.run_ns / 1e3 / run.books.runs


def sample_us(run, filtered):
    """A run that takes a sample of the load: what is left when the others are taken off."""
    books = run.books
    return (books.run_ns / 1e3 - (books.runs - books.samples) * filtered) / books.samples


def measure(bench, recorders, repetitions, say):
    """Costs by shape. The recorders take turns, so that what changes meanwhile hits all."""
    costs = {shape: Costs() for shape in SHAPES}
    for repetition in range(repetitions):
        filtered = {
            r.name: r.try_to(lambda r=r: filtered_us(bench, r), say) for r in recorders if r.filters
        }
        for shape in SHAPES:
            say("kernel: repetition %d of %d, depth %d" % (repetition + 1, repetitions, shape[0]))
            for recorder in recorders:
                run = recorder.try_to(
                    lambda r=recorder: bench.cost(r, ("stack", *shape), HERTZ, SECONDS), say
                )
                _add(costs[shape], recorder, run, filtered.get(recorder.name))
    return costs


def _add(costs, recorder, run, filtered):
    """One repetition; `run` and `filtered` are None if they were left out."""
    pause = sample = None
    if run:
        costs.frame_bytes = max(load["frame_bytes"] for load in run.load)
        costs.frames = run.frames or costs.frames
        # The median of each CPU's program, as a tick hits each CPU at its own time.
        pause = statistics.mean(load["median_ns"] / 1e3 for load in run.load)
        if filtered is not None and run.books.samples >= FEWEST_SAMPLES:
            sample = sample_us(run, filtered)
    costs.pause.setdefault(recorder.name, []).append(pause)
    costs.sample.setdefault(recorder.name, []).append(sample)


def report(costs, recorders):
    """The table, and what a frame costs."""
    counted = [r.name for r in recorders if r.filters]
    rows = [["frame", "calls", "frames", *counted, "ratio", *("pause: " + r.name for r in recorders)]]
    rows.append(None)
    for (depth, _), cost in costs.items():
        samples = [cost.sample[name] for name in counted]
        rows.append([
            "%d B" % cost.frame_bytes if cost.frame_bytes else "-", str(depth), str(cost.frames),
            *map(tables.with_spread, samples), tables.ratio(samples[1], samples[0]),
            *(tables.median(cost.pause[r.name], "%.2f") for r in recorders),
        ])  # fmt: skip
    return tables.table(rows) + "\n\n" + "\n".join(_lines(costs))


def _lines(costs):
    """Fixed part and slope of our own cost, for each size of frames."""
    for size in (32, 192):
        points = [
            (cost.frames, statistics.median(samples))
            for shape, cost in costs.items()
            if shape[1] == size and (samples := tables.measured(cost.sample["pyrometer"]))
        ]
        if len(points) > 1:
            fixed, slope = tables.line_through(points)
            yield "pyrometer, frames of %d bytes: %.2f us and %.1f ns a frame" % (
                size, fixed, slope * 1e3)  # fmt: skip
