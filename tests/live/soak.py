#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorders on a machine that does everything at once that was ever too much for one.

    tests/live/soak.py [--seconds 1800] [--overlays 2000] [--forks 50]

Overlay mounts of one directory with a process on each; 20 new processes a second; a new executable each
second; processes that map 330 files each; forks of processes with 5,000 and 30,000 mappings; an
executable that is overwritten in place again and again; two processes whose file system does not
answer, of which one began to hang later than the recording. One recorder wants everything, so its
profile grows all the time. Another one has to know all that, too, but wants a single program, so that
its memory must not grow at all.

Prints every 10 seconds what they hold, and at the end what the first one knows of those who did
nothing of that. Exit status 1 if

- one of them holds more in the last quarter of the time than ever in the first half: BPF maps, open
  files, threads, processes, kernel memory, and heap (for the first one, more than its profile explains);
- its account differs from the kernel's count of the runs of its program, or more than 1 % are lost;
- one change in a hundred takes longer than --latency to reach the kernel side;
- it takes longer than 40 s to end;
- less than --right percent of any kind of bystanders' samples have a complete stack.

77 if nothing can be recorded here.
"""

import contextlib
import dataclasses
import statistics
import sys
import time

import churn
import kernel
import recording
import troubles
import workloads
from pyrometer_harness import stats_of

LOOK_SECONDS = 10
MOST_LOST_PERCENT = 1
MOST_ENDING_SECONDS = 40
EVERYTHING = "everything"
RECORDERS = {EVERYTHING: (), "one program": ("--comm", "plain")}  # and their options
LATENCY = "publish_latency_us{quantile=%s}"


@dataclasses.dataclass
class Held:
    """By the recorder, at one moment or the median of several."""

    maps: float
    files: float
    threads: float
    processes: float  # that open files for it
    kernel_mb: float
    heap_mb: float

    @classmethod
    def by(cls, recorder):
        maps, files = recorder.holds()
        pid = recorder.pid
        return cls(maps, files, kernel.threads_of(pid), kernel.descendants_of(pid),
                   kernel.kernel_memory_of(pid) / 1e6, kernel.anonymous_memory_of(pid) / 1e6)  # fmt: skip

    @classmethod
    def most(cls, several):
        return cls(*map(max, zip(*map(dataclasses.astuple, several))))

    @classmethod
    def median(cls, several):
        return cls(*map(statistics.median, zip(*map(dataclasses.astuple, several))))


# It may hold a twentieth more than it did, and this: forks of large processes come and go, and some
# twenty threads that ask file systems are started when there is work.
SLACK = Held(maps=8, files=32, threads=16, processes=4, kernel_mb=2, heap_mb=8)
# A profile grows with each process that is sampled for the first time, by so much, and less evenly.
PROFILE_BYTES = 6000


def watch(recorders, seconds):
    """For each of `recorders`, by name: [(second, Held)]"""
    print("| after | recorder | BPF maps | files | threads | processes | kernel memory | heap |\n" + "|---" * 8 + "|")
    looks = {name: [] for name in recorders}
    begin = time.monotonic()
    while (left := begin + seconds - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_SECONDS))
        for name, recorder in recorders.items():
            second, held = time.monotonic() - begin, Held.by(recorder)
            looks[name].append((second, held))
            print("| %.0f s | %s | %d | %d | %d | %d | %.1f MB | %.1f MB |" % (
                second, name, *dataclasses.astuple(held)), flush=True)  # fmt: skip
    return looks


def growth(looks, seconds, processes):
    """What a recorder held more of in the last quarter of the time than ever in the first half, in
    words. The samples of so many `processes` were kept in all of it."""
    first = Held.most([held for second, held in looks if second <= seconds / 2])
    last = Held.median([held for second, held in looks if second >= seconds * 3 / 4])
    for name, before in dataclasses.asdict(first).items():
        now, most = getattr(last, name), before * 1.05 + getattr(SLACK, name)
        if name == "heap_mb":
            most += PROFILE_BYTES * processes / 2 / 1e6
        if now > most:
            yield "%s grew from %.1f to %.1f" % (name, before, now)


def judge_bystanders(profile, least_right):
    """What is wrong, in words; prints the table."""
    print("\n| bystander | samples | right | others |\n|---|---|---|---|")
    for comm in troubles.BYSTANDERS:
        found = churn.judge(profile, (comm,), roots=("from_root",))
        samples = sum(found.values())
        percents = {what: 100 * count / max(samples, 1) for what, count in found.most_common()}
        right = percents.pop("right", 0)
        others = ", ".join("%s %.2f %%" % other for other in list(percents.items())[:4])
        print("| %s | %d | %.2f %% | %s |" % (comm, samples, right, others))
        if samples < churn.FEWEST_SAMPLES or right < least_right:
            yield "of %d samples of %s %.2f %% are right" % (samples, comm, right)


def judge_accounts(recorded, most_latency):
    """What is wrong, in words."""
    accounting, cost = recorded.accounting, recorded.cost
    stats = stats_of(recorded.said)
    latency = [stats[LATENCY % quantile] / 1e3 for quantile in ("0.5", "0.99", "1")]
    print("%s" % accounting)
    print("published after %.1f ms in the median, %.1f ms at 99 %%, %.0f ms at most" % (*latency,))
    print("%.1f %% of a core, %.1f us a tick, %.1f s to end" % (
        cost.sampling_percent(), cost.tick_ns / 1e3, cost.ending), flush=True)  # fmt: skip
    # What is mapped by others, for the first time, is a reason for more memory in the kernel.
    print("%d unwind tables in the kernel at the end, of %d contents, in %d chunks of 256 KiB" % (
        *(stats["kernel_table" + what] for what in ("s", "_contents", "_chunks")),))  # fmt: skip
    if accounting.ticks() != cost.ticks:
        yield "of %d ticks %d are accounted for" % (cost.ticks, accounting.ticks())
    if churn.lost_percent(accounting) > MOST_LOST_PERCENT:
        yield "%.2f %% are lost" % churn.lost_percent(accounting)
    if latency[1] > 1e3 * most_latency:
        yield "changes take long to be published"
    if cost.ending > MOST_ENDING_SECONDS:
        yield "it took %.0f s to end" % cost.ending


def soak(chosen, stage):
    """What is wrong, in words."""
    troubles.compile_all(stage)
    # A recorder that waits for a mount ends no sooner than that, so mounts are left first.
    with contextlib.ExitStack() as running, contextlib.ExitStack() as mounts:
        troubles.program_on_mount(stage, mounts, "hangs_first").hang("all")
        hangs_later = troubles.program_on_mount(stage, mounts, "hangs_later")
        recorders = {
            name: running.enter_context(recording.recorder(chosen, "soak " + name, "--stats=json", *only))
            for name, only in RECORDERS.items()
        }
        troubles.bystanders(stage)
        troubles.overlays(stage, mounts, chosen.overlays)
        troubles.mapping_storm(stage)
        troubles.fork_bomb(stage, chosen.forks)
        troubles.overwritten_executable(stage)
        hangs_later.hang("all")
        looks = watch(recorders, chosen.seconds)
        recorded = {name: recorder.finish() for name, recorder in recorders.items()}
        # Their executables are looked at, so they must still be there.
        wrong = list(judge_bystanders(recorded[EVERYTHING].profile, chosen.right))
        for name, one in recorded.items():
            print("\n%s:" % name)
            found = [*judge_accounts(one, chosen.latency),
                     *growth(looks[name], chosen.seconds, one.accounting.processes)]  # fmt: skip
            wrong += ["%s: %s" % (name, what) for what in found]
        return wrong


def main():
    parser = recording.argument_parser(__doc__, seconds=1800, frequency=99)
    parser.add_argument("--overlays", type=int, default=2000, help="mounts (%(default)s)")
    parser.add_argument("--forks", type=int, default=50, help="of a large process (%(default)s)")
    parser.add_argument("--right", type=float, default=99, help="percent of samples (%(default)s)")
    parser.add_argument("--latency", type=float, default=1, help="seconds, at 99 %% (%(default)s)")
    chosen = recording.arguments(parser)
    try:
        with workloads.Workload("soak", (), lambda stage: stage).at_work() as stage:
            wrong = soak(chosen, stage)
    except (workloads.Missing, recording.Failure) as problem:
        print(problem, file=sys.stderr)
        return 1 if isinstance(problem, recording.Failure) else recording.SKIPPED
    print("\n".join(wrong) if wrong else "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
