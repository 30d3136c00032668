# SPDX-License-Identifier: Apache-2.0
"""What a recorder itself takes: CPU time, memory and disk, for a recording of the whole machine."""

import tables

# Until the first windows have been drained and the names of what runs all the time are known.
SETTLE_SHARE = 0.25
# (title, shape of the load, samples per second and CPU)
LOADS = [
    ("idle, 99 Hz", (), 99),
    ("busy, one stack, 99 Hz", ("stack", 20, 32), 99),
    ("busy, random stacks, 99 Hz", ("paths",), 99),
    ("busy, random stacks, 999 Hz", ("paths",), 999),
]


def measure(bench, recorders, seconds, say):
    """{title of the load: {recorder: Recorded}}"""
    results = {}
    for title, shape, hertz in LOADS:
        for recorder in recorders:
            say("recorder: %s, %s" % (title, recorder.name))
            run = recorder.try_to(
                lambda r=recorder: bench.record(r, shape, hertz, seconds * SETTLE_SHARE, seconds),
                say,
            )
            if run:
                results.setdefault(title, {})[recorder.name] = run
    return results


def steady_percent(run):
    return run.steady_cpu / run.steady_seconds * 100


def seconds_per_million(run):
    """All the CPU time, whatever it was for, over all the samples."""
    return (run.total_cpu + run.name_cpu) / run.samples * 1e6 if run.samples else float("nan")


def report(results):
    rows = [["load", "recorder", "samples", "start s", "steady %", "record s", "end s", "names s",
             "s/1M", "ratio", "tick us", "resident MB", "kernel MB", "B/sample"]]  # fmt: skip
    for title, runs in results.items():
        rows.append(None)
        ours = seconds_per_million(runs["pyrometer"])
        for name, run in runs.items():
            rows.append([
                title, name, str(run.samples), "%.2f" % run.start_cpu,
                "%.2f" % steady_percent(run), "%.3f" % run.record_cpu, "%.3f" % run.end_cpu,
                "%.2f" % run.name_cpu, "%.0f" % seconds_per_million(run),
                "%.1f" % (seconds_per_million(run) / ours),
                "%.1f" % (run.books.run_ns / 1e3 / run.books.runs) if run.books.runs else "-",
                tables.megabytes(run.peak), tables.megabytes(run.kernel_memory),
                "%.0f" % (run.written / max(run.samples, 1)),
            ])  # fmt: skip
    return tables.table(rows)
