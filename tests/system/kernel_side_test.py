# SPDX-License-Identifier: Apache-2.0
"""What the kernel side holds for the recorder: as little as is promised."""

import os
import signal

from pyrometer_harness import (
    CPUS, BpfTestCase, Running, main, program, wait_for,
)
import kernel
from waiting import read_line

ROWS = "pyro_rows"  # the maps of unwind rows, which are made as they are needed
FORKS = 15_000


def limit():
    """In bytes, of all that is taken at the start."""
    of_cpus = 40_000_000 + 110_000_000 * (max(CPUS, 2) - 2) // 254
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    least = 20_000_000 + 40_000 * possible_cpus()
    return max(least, min(of_cpus, memory // 32))


def possible_cpus():
    """How many there may ever be."""
    with open("/sys/devices/system/cpu/possible") as file:
        return int(file.read().split("-")[-1]) + 1


def dead_among(pids):
    return {pid for pid in pids if not os.path.exists("/proc/%d" % pid)}


class KernelSide(BpfTestCase):
    def test_memory(self):
        for hertz in (99, 999, 4999):
            recorder = self.start_recording(hertz=hertz)
            pid = recorder.process.pid

            def held(pid=pid):
                """Bytes at a moment: of all else, and of rows."""
                rows = memory = 0

                def is_one_moment():
                    nonlocal rows, memory
                    rows = kernel.bytes_of_maps_of(pid, ROWS)
                    memory = kernel.kernel_memory_of(pid)
                    return kernel.bytes_of_maps_of(pid, ROWS) == rows

                wait_for(is_one_moment, "no map of rows to come or go meanwhile")
                return memory - rows, rows

            before, _ = held()
            with Running(program("shares"), "60", "0") as busy:
                self.wait_for_cpu_time([busy], 0.5)
                after, rows = held()
                # The kernel's own share of a map moves: what was taken for a moment, it gives back.
                wait_for(lambda before=before: held()[0] == before, "no more to be held than before")
            self.assertEqual(recorder.interrupt().finish().status, 0)
            print("at %d Hz: %.1f MB, %.1f before, and %.1f MB of rows" % (
                hertz, after / 1e6, before / 1e6, rows / 1e6))  # fmt: skip
            self.assertLessEqual(after, limit(), "at %d Hz" % hertz)

    def test_forks_while_the_recorder_stands_still(self):
        recorder = self.start_recording(hertz=99)
        pid = recorder.process.pid
        with Running(program("fork_storm"), str(FORKS)) as parent:
            wait_for(lambda: parent.pid in kernel.keys_of(pid, "processes"), "it to be known")
            recorder.process.send_signal(signal.SIGSTOP)
            os.kill(parent.pid, signal.SIGUSR1)
            self.assertEqual(read_line(parent.process.stdout), b"DONE")
            recorder.process.send_signal(signal.SIGCONT)

            # Twice: what it still read of them, it may have told the kernel side by the second time.
            for _ in range(2):
                self.wait_for_cpu_time([parent], 0.5)
                dead = dead_among(kernel.keys_of(pid, "processes"))
                wait_for(
                    lambda dead=dead: not dead.intersection(kernel.keys_of(pid, "processes")),
                    "%d dead to be forgotten" % len(dead),
                )
            self.assertIn(parent.pid, kernel.keys_of(pid, "processes"))
        recording = recorder.interrupt().finish()
        self.assertEqual(recording.status, 0, recording.stderr)


if __name__ == "__main__":
    main()
