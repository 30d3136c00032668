# SPDX-License-Identifier: Apache-2.0
"""What it takes to read foreign files: the memory of all processes of a recording together, and the time
until a recording begins."""

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import tables
from foreign_processes import MemoryWatch, RecorderProcesses, map_files, write_hostile_files

PROGRAMS = 300
HOSTILE_FILES = 60
STARTS = 9


@contextlib.contextmanager
def nothing(_):
    yield


@contextlib.contextmanager
def programs(directory):
    """Each its own file, and asleep: files are read when they are mapped."""
    running = []
    try:
        for number in range(PROGRAMS):
            path = shutil.copy("/bin/sleep", os.path.join(directory, "program%d" % number))
            running.append(subprocess.Popen([path, "600"]))
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@contextlib.contextmanager
def hostile_files(directory):
    with map_files(write_hostile_files(directory, HOSTILE_FILES)):
        yield


def measure_memory(program, files, say):
    """{title of a load: bytes of all processes together at most}"""
    loads = {"idle": nothing, "%d programs begin" % PROGRAMS: programs,
             "%d hostile files" % HOSTILE_FILES: hostile_files}  # fmt: skip
    for path in files:
        loads[os.path.basename(path)] = lambda _, path=path: map_files([path])
    most = {}
    for title, load in loads.items():
        say("memory: " + title)
        with tempfile.TemporaryDirectory(prefix="pyrometer-bench-") as directory:
            os.chmod(directory, 0o755)
            recorder = subprocess.Popen([program, "record", "--quiet", "--output", os.path.join(directory, "x.folded")],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            try:
                processes = RecorderProcesses(recorder.pid)
                processes.await_rest()
                with MemoryWatch(processes) as watch, load(directory):
                    processes.await_rest()
                most[title] = watch.most
            finally:
                recorder.terminate()
                recorder.wait()
    return most


def measure_start(program, say):
    """Seconds until COMMAND begins, each time."""
    say("start-up")
    times = []
    with tempfile.TemporaryDirectory(prefix="pyrometer-bench-") as directory:
        output = os.path.join(directory, "x.folded")
        for _ in range(STARTS):
            begun = time.time()
            result = subprocess.run([program, "record", "--quiet", "--output", output, "--", "date", "+%s.%N"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
            times.append(float(result.stdout.split()[0]) - begun)
    return times


def report(most, times):
    rows = [("load", "all processes, MB")]
    rows += [(title, "%.0f" % (memory / 1e6)) for title, memory in most.items()]
    lines = tables.table(rows)
    return "%s\n\nuntil COMMAND begins: %.2f s (median of %d, %.2f to %.2f)" % (
        lines, statistics.median(times), len(times), min(times), max(times))
