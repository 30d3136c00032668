# SPDX-License-Identifier: Apache-2.0
"""A process that holds the lock of its memory for ever, so that nobody can read /proc/PID/maps of it,
costs what is to be known of it, and nothing else."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time

import pprof_reader
from agent_harness import AgentTestCase
from pyrometer_harness import (
    PAGE_FAULTS, Running, main, pages_when_told, program, rests, samples_of, stats_of, wait_for,
)
from hung_mount import HungMount
from shares_test import chain
from waiting import read_line

UNANSWERED = "pyrometer_processes_unanswered"
DEPTH = 60
PAGES = 300
# From Ctrl-C or SIGTERM to the end. It would be never.
IN_TIME_SECONDS = 120


class Holder:
    """A hold_memory that maps a library which nobody else has."""

    def __init__(self, mount, home):
        self.mount = mount
        library = os.path.join(home, "library-%d" % time.monotonic_ns())
        with open(program("plain"), "rb") as source, open(library, "wb") as copy:
            copy.write(source.read())
        self.process = subprocess.Popen([program("hold_memory"), mount.join("page"), library],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.await_line("READY")

    def await_line(self, line):
        assert read_line(self.process.stdout) == line.encode()

    def hold(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        wait_for(lambda: self.mount.held() > 0, "the lock to be held")

    def free(self):
        self.mount.answer()
        self.await_line("FREE")

    def end(self):
        """REQUIRES: its file system answers, or is gone."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class HungMemory(AgentTestCase):
    def setUp(self):
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        backing = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-backing-"))
        with open(os.path.join(backing, "page"), "wb") as file:
            file.write(b"\0" * os.sysconf("SC_PAGESIZE"))
        holders = stack.enter_context(contextlib.ExitStack())  # they end once the mount is gone
        self.mount = stack.enter_context(HungMount(program("hung_fuse"), backing))
        self.mount.hang("write")
        self.holder = Holder(self.mount, self.home)
        holders.callback(self.holder.end)

    def record_beside(self, before=lambda: None, meanwhile=lambda: None):
        """Records the machine until a bystander has worked, and returns the statistics after all that
        must hold."""
        before()
        with Running(program("shares"), str(DEPTH), pages_when_told(PAGES)) as bystander:
            recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
            wait_for(lambda: rests(recorder.process.pid, "table-loader"), "the unwind tables")
            meanwhile()
            with Running(program("shares"), str(DEPTH), pages_when_told(PAGES)) as latecomer:
                truths = {process.pid: process.work() for process in (bystander, latecomer)}
                recording = recorder.interrupt().finish(IN_TIME_SECONDS)
        self.assertEqual(recording.status, 0, recording.stderr)
        for pid, truth in truths.items():
            self.assert_pages(recording.of_pid(pid), truth, lambda leaf: [*chain(DEPTH), leaf], "a bystander")
        return stats_of(recording.stderr)

    def test_held_at_the_start(self):
        stats = self.record_beside(before=self.holder.hold)
        self.assertGreaterEqual(stats["processes_unanswered"], 1)

    def test_held_while_it_records(self):
        """From a moment on at which what it maps is to be looked at."""
        stats = self.record_beside(meanwhile=self.holder.hold)
        self.assertGreaterEqual(stats["processes_unanswered"], 1)

    def test_is_known_once_it_answers(self):
        self.holder.hold()
        agent = self.agent([])
        wait_for(lambda: agent.metrics()[UNANSWERED] == 1, "it and no other", pause=0.1)
        self.holder.free()
        wait_for(lambda: agent.metrics()[UNANSWERED] == 0, "it to be read again", pause=0.1)
        agent.stop()

    def test_beside_an_agent(self):
        self.holder.hold()
        with Running(program("shares"), str(DEPTH), "0") as bystander:
            agent = self.agent([])
            status, body = agent.get("/debug/pprof/profile?seconds=2&pid=%d" % bystander.pid)
            self.assertEqual(status, 200, body)
            samples = samples_of(pprof_reader.parse(body))
            whole = [sample for sample in samples if sample.has_chain(chain(DEPTH))]
            self.assertGreater(len(whole), 0, samples)
            wait_for(lambda: agent.metrics()[UNANSWERED] == 1, "it and no other", pause=0.1)
            for late in ("process_answers_late_total", "processes_unreadable_total",
                         'environments_total{outcome="late"}'):
                wait_for(lambda: agent.metrics()["pyrometer_" + late] > 0, late, pause=0.1)
            agent.process.send_signal(signal.SIGTERM)
            self.assertEqual(agent.process.wait(IN_TIME_SECONDS), 0, agent.said())


if __name__ == "__main__":
    main()
