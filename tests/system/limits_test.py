# SPDX-License-Identifier: Apache-2.0
"""What one program does takes neither the recorder's memory nor the others' stacks."""

import contextlib

from pyrometer_harness import (
    PAGE_FAULTS, BpfTestCase, Running, main, pages_when_told, program, stats_of,
)
from shares_test import chain

MOST_KB = 150_000  # resident, of a debug build
DEPTH = 60
BYSTANDER = [program("shares"), str(DEPTH), pages_when_told(300)]


def peak_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


class Limits(BpfTestCase):
    def record_with_bystander(self, *commands):
        """The recording of a machine where a bystander, these, and another bystander are started one after
        the other and then work; the Truth of each of these, and the recorder's highest memory. Both
        bystanders are judged."""
        # Of all processes it knows the mappings. What others do on the machine is not to be in its memory.
        only = ["--comm", "shares", "--comm", "many_mappings"]
        recorder = self.start_recording("--stats=json", *only, event=PAGE_FAULTS)
        with contextlib.ExitStack() as running:
            processes = [running.enter_context(Running(*command)) for command in (BYSTANDER, *commands, BYSTANDER)]
            truths = [process.work() for process in processes]
            peak = peak_kb(recorder.process.pid)
        recording = recorder.interrupt().finish()
        self.assertEqual(recording.status, 0, recording.stderr)
        for truth in (truths[0], truths[-1]):
            samples = recording.of_pid(truth.pid)
            self.assert_pages(samples, truth, lambda leaf: [*chain(DEPTH), leaf], "the bystander")
            working = [s for s in samples if any(map(s.calls, truth.iterations))]
            self.assert_cut_only_when_late(recording, working)
        return recording, truths[1:-1], peak

    def test_three_processes_that_map_330_files_each(self):
        command = [program("many_mappings"), pages_when_told(100), "330"]
        recording, truths, _ = self.record_with_bystander(command, command, command)
        stats = stats_of(recording.stderr)
        self.assertEqual(stats["kernel_processes_refused_total"], 0)
        for truth in truths:
            self.assert_pages(recording.of_pid(truth.pid), truth, lambda leaf: ["from_root", "loop", leaf],
                              "330 mappings")

    def test_a_process_with_30000_mappings(self):
        _, _, peak = self.record_with_bystander([program("many_mappings"), pages_when_told(100), "30000"])
        self.assertLess(peak, MOST_KB)

    def test_60_forks_of_a_large_process(self):
        _, _, peak = self.record_with_bystander([program("many_mappings"), pages_when_told(100), "3000", "60"])
        self.assertLess(peak, MOST_KB)


if __name__ == "__main__":
    main()
