# SPDX-License-Identifier: Apache-2.0
"""What one program does takes neither the recorder's memory nor the others' stacks."""

from pyrometer_harness import (
    BpfTestCase, Running, count_where, describe, main, program, stats_of,
)

MOST_KB = 150_000  # resident, of a debug build
BYSTANDER = [program("shares"), "60", "0"]


def every_sample(_):
    return True


def peak_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


class Limits(BpfTestCase):
    def record_beside(self, *commands, cpu_seconds=1):
        """The recording of a machine where these are started one after the other and then work,
        bystanders judged, and the recorder's highest memory."""
        recorder = self.start_recording("--stats=json")
        running = []
        try:
            for command in commands:
                running.append(Running(*command))
                if command == BYSTANDER:
                    self.wait_for_cpu_time(running[-1:], cpu_seconds)
            self.wait_for_cpu_time(running, cpu_seconds)
            peak = peak_kb(recorder.process.pid)
            truths = [process.stop() for process in running]
        finally:
            for process in running:
                process.__exit__()
        recording = recorder.interrupt().finish()
        self.assertEqual(recording.status, 0, recording.stderr)
        for process, command, truth in zip(running, commands, truths):
            if command == BYSTANDER:
                samples = recording.of_pid(process.pid)
                self.assert_shares(samples, truth, "the bystander")
                self.assert_cut_only_when_late(recording, samples)
        return recording, peak

    def test_three_processes_that_map_330_files_each(self):
        command = [program("many_mappings"), "0", "330"]
        recording, _ = self.record_beside(command, command, command, BYSTANDER)
        stats = stats_of(recording.stderr)
        self.assertEqual(stats["kernel_processes_refused_total"], 0)
        busy = recording.of_comm("many_mappings")
        named = [s for s in busy if s.has_chain(["from_root", "loop", "busy"])]
        self.assertGreater(count_where(named, every_sample),
                           0.9 * count_where(busy, every_sample), describe(busy))

    def test_a_process_with_30000_mappings(self):
        _, peak = self.record_beside(BYSTANDER, [program("many_mappings"), "0", "30000"])
        self.assertLess(peak, MOST_KB)

    def test_60_forks_of_a_large_process(self):
        _, peak = self.record_beside(BYSTANDER, [program("many_mappings"), "0", "3000", "60"])
        self.assertLess(peak, MOST_KB)


if __name__ == "__main__":
    main()
