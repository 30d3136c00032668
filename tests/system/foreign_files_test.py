# SPDX-License-Identifier: Apache-2.0
"""Files of profiled programs are read by processes that can do nothing else: what a file does to its
reader nobody else notices, and all of them together take no more memory than they may."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from pyrometer_harness import (
    PAGE_FAULTS, PYROMETER, BpfTestCase, Running, count_where, main, pages_when_told, program, refused, skip_or_fail,
    stats_of,
)
from foreign_processes import MemoryWatch, RecorderProcesses, map_files, write_hostile_files
from shares_test import chain

# Of all processes of a recording together, in bytes.
MOST_MEMORY = 256 << 20
HOSTILE_FILES = 6
DEPTH = 60
PAGES = 300
MOST_KILLED = 20
MINUTE = 60
REFUSED = 3
JITS = 24
JIT_FUNCTIONS = 850_000
JIT_CHAIN = ["from_root", "loop", "enter_jit"]
JIT_CHAIN_ENDS = ("jit_hot", "jit_cold")


class ForeignFiles(BpfTestCase):
    def bystander(self):
        return Running(program("shares"), str(DEPTH), pages_when_told(PAGES))

    def assert_whole(self, recording, truth, what):
        self.assert_pages(recording.of_pid(truth.pid), truth, lambda leaf: [*chain(DEPTH), leaf], what)

    def test_made_to_take_much_memory_do_not_get_it(self):
        paths = write_hostile_files(self.directory, HOSTILE_FILES)
        with self.bystander() as bystander:
            # Files of all processes are read; page faults of all processes would take more memory than these.
            recorder = self.start_recording("--stats=json", "--pid", str(bystander.pid), event=PAGE_FAULTS)
            processes = RecorderProcesses(recorder.process.pid)
            processes.await_rest()
            with MemoryWatch(processes) as watch, map_files(paths):
                processes.await_readers()
                processes.await_rest()
                truth = bystander.work()
                recording = recorder.interrupt().finish()
        print("all processes: %d MB at most" % (watch.most >> 20))
        self.assertLess(watch.most, MOST_MEMORY)
        # Of other files one may have failed, too.
        self.assertGreaterEqual(stats_of(recording.stderr)["artifacts_failed_total"], HOSTILE_FILES)
        self.assert_whole(recording, truth, "a bystander")

    def write_perf_maps(self, jits):
        """A perf map of 47 MB for all of them, whose first line names everything and whose last ones their code."""
        path, *links = ["/tmp/perf-%d.map" % jit.pid for jit in jits]
        self.addCleanup(os.unlink, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write("0 7fffffffffff stolen\n")
            for number in range(JIT_FUNCTIONS):
                file.write("%x 40 function_of_a_program_that_runs_for_days_%d\n" % (number << 6, number))
            for jit in jits:
                code = json.loads(jit.before_ready)
                for name in JIT_CHAIN_ENDS:
                    file.write("%s %x %s\n" % (code[name], code["size"], name))
        self.assertGreater(os.path.getsize(path), 47e6)
        for link in links:
            os.link(path, link)
            self.addCleanup(os.unlink, link)

    def test_large_perf_maps_take_little_memory_and_their_newest_lines_count(self):
        with contextlib.ExitStack() as stack:
            jits = [stack.enter_context(Running(program("jit"), pages_when_told(PAGES))) for _ in range(JITS)]
            self.write_perf_maps(jits)
            recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
            processes = RecorderProcesses(recorder.process.pid)
            processes.await_rest()
            with MemoryWatch(processes) as watch:
                truths = [jit.work() for jit in jits]
                recording = recorder.interrupt().finish()
        print("all processes: %d MB at most" % (watch.most >> 20))
        self.assertLess(watch.most, MOST_MEMORY)
        for truth in truths:
            self.assert_pages(recording.of_pid(truth.pid), truth, lambda leaf: [*JIT_CHAIN, leaf], "a JIT")
        self.assertFalse([s for s in recording.samples if s.calls("stolen")])

    def test_are_read_again_when_their_readers_are_killed(self):
        late = shutil.copy(program("shares"), os.path.join(self.directory, "late"))
        with self.bystander() as bystander:
            recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
            processes = RecorderProcesses(recorder.process.pid)
            processes.await_rest()
            started = killed = 0
            while killed < MOST_KILLED:
                # Each maps a file that must be read; so readers are killed in the middle, too.
                copy = shutil.copy(program("shares"), os.path.join(self.directory, "copy%d" % started))
                started += 1
                with Running(copy, str(DEPTH), pages_when_told(PAGES)):
                    for pid in processes.readers():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                            killed += 1
                os.unlink(copy)
            with Running(late, str(DEPTH), pages_when_told(PAGES)) as other:
                processes.await_rest()
                truths = [bystander.work(), other.work()]
                recording = recorder.interrupt().finish()
        for truth in truths:
            self.assert_whole(recording, truth, "who runs when it is over")

    def test_are_only_named_late_if_who_opens_and_reads_them_is_killed_each_second_of_a_minute(self):
        late = shutil.copy(program("shares"), os.path.join(self.directory, "late"))
        truths = []
        with self.bystander() as bystander:
            recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
            processes = RecorderProcesses(recorder.process.pid)
            processes.await_rest()
            end = time.monotonic() + MINUTE
            while (next_one := time.monotonic() + 1) < end:
                copy = shutil.copy(program("shares"), os.path.join(self.directory, "copy%d" % len(truths)))
                with Running(copy, str(DEPTH), pages_when_told(PAGES)) as other:
                    for pid in processes.readers() + processes.nurseries():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    truths.append(other.work())
                os.unlink(copy)
                time.sleep(max(next_one - time.monotonic(), 0))
            with Running(late, str(DEPTH), pages_when_told(PAGES)) as other:
                processes.await_rest()
                named = [bystander.work(), other.work()]
                recording = recorder.interrupt().finish()
        for truth in truths:
            faults = count_where(recording.of_pid(truth.pid), lambda s: True)
            self.assertGreaterEqual(faults, sum(truth.pages().values()), recording.stderr)
        for truth in named:
            self.assert_whole(recording, truth, "who runs when it is over")

    def test_are_read_by_processes_that_are_profiled_like_all_others(self):
        recorder = self.start_recording("--stats=json")
        processes = RecorderProcesses(recorder.process.pid)
        with map_files(write_hostile_files(self.directory, 1)):
            processes.await_readers()
            processes.await_rest()
        recording = recorder.interrupt().finish()
        # No path leads to a file in their root.
        stats = stats_of(recording.stderr)
        self.assertLess(stats["file_questions_total"], 1.5 * stats["objects"], recording.stderr)
        samples = recording.of_comm("pyrometer-read")
        self.assert_cut_only_when_late(recording, samples)
        compiling = [sample for sample in samples if sample.calls("pyrometer::CompileUnwindTable")]
        self.assert_each(compiling, lambda s: s.calls("main") and s.calls("pyrometer::ServeReader"), "a reader")

    def reads_in_recording(self, *command):
        """What the process with the privileges reads and maps while it records `command`, and what others do."""
        log = os.path.join(self.directory, "calls")
        calls = "read,pread64,readv,preadv,preadv2,mmap,sendfile,copy_file_range,splice,clone,clone3"
        traced = subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-y", "-e", "trace=" + calls, "-o", log, PYROMETER, "record",
             "--output", os.path.join(self.directory, "traced.folded"), "--", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)  # fmt: skip
        self.assertEqual(traced.returncode, 0, traced.stderr)
        by_recorder, by_others = [], []
        threads, making = set(), set()
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                task, call = line.split(None, 1)
                threads = threads or {task}
                # A call is one line, or two with others between them.
                if task in threads and "CLONE_THREAD" in call:
                    making.add(task)
                made = re.search(r"clone.*= (\d+)$", call)
                if made and task in making:
                    making.remove(task)
                    threads.add(made[1])
                if "PROT_EXEC" not in call:
                    (by_recorder if task in threads else by_others).append(line)
        return by_recorder, by_others

    def assert_read_by_others_only(self, path, reads):
        by_recorder, by_others = ([line for line in lines if path + ">" in line] for lines in reads)
        self.assertEqual(by_recorder, [])
        self.assertNotEqual(by_others, [], "nobody has read %s: this test sees nothing" % path)

    def test_are_not_read_by_the_process_with_the_privileges(self):
        if not shutil.which("strace"):
            skip_or_fail("no strace")
        binary = shutil.copy(program("shares"), os.path.join(self.directory, "profiled"))
        self.assert_read_by_others_only(binary, self.reads_in_recording(binary, str(DEPTH), "1"))
        told = os.path.join(self.directory, "pid")
        reads = self.reads_in_recording("sh", "-c", 'echo $$ > "$0"; exec "$@"', told, program("jit"), "1", "map")
        with open(told, encoding="utf-8") as file:
            perf_map = "/tmp/perf-%d.map" % int(file.read())
        self.addCleanup(os.unlink, perf_map)
        self.assert_read_by_others_only(perf_map, reads)


def forbid_filters():
    """Has the kernel refuse seccomp(2), also as prctl(2), to this process."""
    def statement(code, value, yes=0, no=0):
        return struct.pack("<HBBI", code, yes, no, value)
    load, equal, answer = 0x20, 0x15, 0x06
    refuse, allow = 0x00050001, 0x7FFF0000
    program_bytes = b"".join([
        statement(load, 0),               # the call's number
        statement(equal, 317, 3, 0),      # seccomp
        statement(equal, 157, 0, 3),      # prctl
        statement(load, 16),              # its first argument
        statement(equal, 22, 0, 1),       # PR_SET_SECCOMP
        statement(answer, refuse),
        statement(answer, allow),
    ])
    buffer = ctypes.create_string_buffer(program_bytes)
    filter_program = struct.pack("<HxxxxxxQ", len(program_bytes) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, filter_program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@unittest.skipUnless(os.uname().machine == "x86_64", "its numbers of system calls")
class WithoutSandbox(BpfTestCase):
    def run_refused(self, *arguments):
        return refused(*arguments, preexec_fn=forbid_filters)

    def test_nothing_is_recorded_unless_that_is_asked_for(self):
        output = os.path.join(self.directory, "profile.folded")
        result = self.run_refused("record", "--duration", "200ms", "--output", output)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertIn("--no-sandbox", result.stderr)
        self.assertFalse(os.path.exists(output))
        asked = self.run_refused("record", "--no-sandbox", "--output", output, "--", program("shares"), "5", "1")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertIn("pyrometer: sandbox off: ", asked.stderr)
        with open(output, encoding="utf-8") as file:
            self.assertIn("shares::Loop", file.read())

    def test_no_agent_starts_unless_that_is_configured(self):
        config = os.path.join(self.directory, "pyrometer.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("server: { listen: \"\" }\n")
        result = self.run_refused("agent", "--config", config)
        self.assertEqual(result.returncode, REFUSED, result.stderr)
        self.assertIn("sandbox: off", result.stderr)

    def test_doctor_tells_it(self):
        result = self.run_refused("doctor")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"sandbox\b.*seccomp")


if __name__ == "__main__":
    main()
