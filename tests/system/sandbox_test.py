# SPDX-License-Identifier: Apache-2.0
"""The bytes of profiled programs are read in processes that can do nothing else."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile

from pyrometer_harness import (
    PYROMETER, BpfTestCase, Running, count_where, describe, main, program, skip_or_fail, stats_of,
    wait_for,
)

CPU_SECONDS = 0.5


def readers():
    """The processes that read for somebody, and the nurseries that they come from."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
                if comm.read() != "pyrometer-index\n":
                    continue
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                found.add((int(pid), "Seccomp:\t2" in status.read()))
        except OSError:
            continue
    return found


def tasks_that(pattern, lines):
    """The tasks of a trace that made a call like this."""
    wanted = re.compile(pattern)
    return {int(line.split(None, 1)[0]) for line in lines if wanted.search(line)}


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Sandbox(BpfTestCase):
    def test_only_its_processes_read_files_of_profiled_programs(self):
        strace = shutil.which("strace")
        if not strace:
            skip_or_fail("no strace to see who reads what")
        directory = tempfile.mkdtemp(prefix="pyrometer-sandbox-")
        self.addCleanup(shutil.rmtree, directory)
        trace = os.path.join(directory, "trace")
        folded = os.path.join(directory, "recorded.folded")
        watched = shutil.copy(program("shares"), os.path.join(directory, "watched"))
        with Running(watched, "60", "0") as worker, Running(program("jit"), "0", "map") as jit, \
                Running(program("jit_dump"), "60", directory) as dumping:
            self.addCleanup(os.unlink, f"/tmp/perf-{jit.pid}.map")
            subprocess.run(
                [strace, "-f", "-y", "-o", trace,
                 "-e", "trace=read,pread64,readv,preadv,preadv2,mmap,prctl",
                 PYROMETER, "record", "--pid", str(worker.pid), "--pid", str(jit.pid),
                 "--pid", str(dumping.pid), "--duration", "2s", "--quiet", "--output", folded],
                check=True, stdin=subprocess.DEVNULL, timeout=100)
        with open(folded, encoding="utf-8") as stacks:
            self.assertIn("watched;", stacks.read())
        with open(trace, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
        sandboxed = tasks_that(r"prctl\(PR_SET_DUMPABLE, SUID_DUMP_DISABLE", lines)
        for name in ("watched", f"perf-{jit.pid}.map", f"jit-{dumping.pid}.dump"):
            tasks = tasks_that(r" (p?read\w*|mmap)\(.*/%s>" % re.escape(name), lines)
            self.assertTrue(tasks, f"nobody has read {name}")
            self.assertLessEqual(tasks, sandboxed, name)

    def test_a_recording_goes_on_when_its_processes_are_killed(self):
        directory = tempfile.mkdtemp(prefix="pyrometer-sandbox-")
        self.addCleanup(shutil.rmtree, directory)
        late = shutil.copy(program("shares"), os.path.join(directory, "late"))
        before = readers()
        with Running(program("shares"), "60", "0") as first:
            recorder = self.start_recording("--stats=json")
            mine = [pid for pid, sandboxed in (readers() - before) if sandboxed]
            self.assertTrue(mine)
            for pid in mine:
                # What has answered its only question has ended by itself.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # A file that is being read when its reader ends is taken for the cause.
            wait_for(lambda: not any(map(is_alive, mine)), "the end of what was killed")
            # Has to be read by a new process.
            with Running(late, "60", "0") as second:
                self.wait_for_cpu_time([first, second], CPU_SECONDS)
                recording = recorder.interrupt().finish()
        stats = stats_of(recording.stderr)
        self.assertGreater(stats["file_readers_started_total"], len(mine))
        for comm in ("shares", "late"):
            samples = recording.of_comm(comm)
            self.assertTrue(samples)
            named = count_where(samples, lambda s: s.calls("from_root"))
            self.assertGreater(named, 0.9 * count_where(samples, lambda s: True),
                               describe(samples))

    def test_can_be_given_up(self):
        recorder = self.start_recording("--no-sandbox", "--stats=json")
        recording = recorder.interrupt().finish()
        self.assertEqual(stats_of(recording.stderr)["file_readers_started_total"], 0)

    def test_leaves_no_process_behind(self):
        before = readers()
        recorder = self.start_recording()
        self.assertTrue(readers() - before)
        recorder.kill()
        wait_for(lambda: not readers() - before, "its processes to end")


if __name__ == "__main__":
    main()
