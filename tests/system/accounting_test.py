# SPDX-License-Identifier: Apache-2.0
"""Every tick is accounted for, and the samples agree with what the scheduler has booked.

That runs of the BPF program equal exported + idle + filtered + lost exactly is shown where the
program's run_cnt can be read at the moment of detaching; here it is the sum over all CPUs that
must fill the time of the recording.
"""


from pyrometer_harness import (
    CPUS, BpfTestCase, Running, all_at_once, count_where, cpu_ns_of, describe, main,
    program, record,
)


def every_sample(_):
    return True


class Accounting(BpfTestCase):
    def assert_periods_filled(self, recording):
        """All ticks, with those not delivered, are the periods that the recording lasted."""
        profile, accounting = recording.profile, recording.accounting
        expected = profile.duration_nanos * CPUS / profile.period
        found = accounting.ticks() + accounting.undelivered
        # Beginning and end fall between two ticks on each CPU.
        margin = 0.01 * expected + 2 * CPUS
        self.assert_between(found, (expected - margin, expected + margin), recording.stderr)
        self.assertEqual(accounting.lost, 0, recording.stderr)

    def busy_processes(self, count=CPUS):
        """Endlessly working programs, bound to one CPU each."""
        for cpu in range(count):
            yield self.enterContext(Running("taskset", "--cpu-list", str(cpu), program("plain"), "0"))

    def test_with_every_cpu_busy_throughout(self):
        list(self.busy_processes())
        recording = record(self.directory, "--duration", "4s", hertz=99)
        accounting = recording.accounting
        self.assert_periods_filled(recording)
        self.assertEqual(accounting.filtered, 0)
        self.assertLess(accounting.undelivered, 0.01 * accounting.ticks(), recording.stderr)
        self.assertLess(accounting.idle, 0.01 * accounting.ticks(), recording.stderr)

    def test_with_two_hundred_short_lived_processes(self):
        command = [program("spawn_loop"), "200", str(CPUS), program("short_lived"), "5"]
        recording = record(self.directory, command=command)
        self.assert_periods_filled(recording)
        (truth,) = recording.truths
        self.assertGreaterEqual(recording.accounting.processes, 150)
        self.assert_cpu_time(recording, recording.samples, truth.cpu_ns, "all processes together")

    def test_with_threads_that_change_cpus_all_the_time(self):
        recording = record(self.directory, command=[program("threads"), "2", "hop"])
        self.assert_periods_filled(recording)
        (truth,) = recording.truths
        samples = recording.of_pid(truth.pid)
        self.assert_cpu_time(recording, samples, truth.cpu_ns, "threads that hop")
        working = [s for s in samples if s.calls("thread_slice")]
        self.assertGreaterEqual(
            count_where(working, every_sample), 0.95 * count_where(samples, every_sample),
            describe(s for s in samples if s not in working),
        )

    def test_filtered_ticks_are_those_of_other_processes(self):
        list(self.busy_processes())
        with Running(program("plain"), "0") as target:
            recording = record(self.directory, "--pid", str(target.pid), "--duration", "2s")
            self.assert_periods_filled(recording)
            self.assertEqual({s.labels["pid"] for s in recording.samples}, {target.pid})
            self.assertGreater(recording.accounting.filtered, 0)

    def test_samples_agree_with_the_scheduler(self):
        others = list(self.busy_processes())
        with Running(program("plain"), "0") as third:
            processes = [*others, third]
            recorder = self.start_recording("--duration", "3s")
            before = {process.pid: cpu_ns_of(process.pid) for process in processes}
            recorder.process.wait()
            after = {process.pid: cpu_ns_of(process.pid) for process in processes}
            recording = recorder.finish()
        for pid, began in before.items():
            # Steps of /proc/PID/stat and the moments of reading it: 40 ms are 1.3 % of 3 s.
            self.assert_cpu_time(recording, recording.of_pid(pid), after[pid] - began,
                                 "process %d" % pid, tolerance=0.03)


class MachineAtRest(BpfTestCase):
    def test_idle_ticks_are_no_samples(self):
        recording = record(self.directory, "--duration", "1s", hertz=99)
        profile = recording.profile
        idle = [s for s in recording.samples if s.labels.get("pid") == 0 or s.comm.startswith("swapper")]
        self.assertEqual(count_where(idle, every_sample), 0, describe(idle))
        accounting = recording.accounting
        expected = profile.duration_nanos * CPUS / profile.period
        found = accounting.ticks() + accounting.undelivered
        self.assert_between(found, (0.98 * expected - 4, 1.02 * expected + 4), recording.stderr)


if __name__ == "__main__":
    main()
