# SPDX-License-Identifier: Apache-2.0
"""Every tick is accounted for, and the samples agree with what the scheduler has booked.

That runs of the BPF program equal exported + idle + filtered + lost exactly is shown where the
program's run_cnt can be read at the moment of detaching; here it is the sum over all CPUs that
must fill the time of the recording.
"""


import os
import subprocess

from pyrometer_harness import (
    CPUS, BpfTestCase, Running, count_where, describe, in_time, main, not_judged, program, record,
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
            bound = ("taskset", "--cpu-list", str(cpu), program("plain"), "0")
            yield self.enterContext(Running(*bound))

    def test_with_every_cpu_busy_throughout(self):
        list(self.busy_processes())
        recording = record(self.directory, "--duration", "4s", hertz=99)
        accounting = recording.accounting
        self.assert_periods_filled(recording)
        self.assertEqual(accounting.filtered, 0)
        # No CPU has nothing to run, however slow it is.
        self.assertEqual(accounting.idle, 0, recording.stderr)
        if accounting.undelivered > 0.01 * accounting.ticks():
            not_judged("that busy CPUs get all their ticks: %d were not delivered" % accounting.undelivered)

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
        # How much of it is the slices of work depends on how long the machine takes to move threads.
        for part in ("thread_slice", "move_on", "pthread_barrier_wait"):
            known = [s for s in samples if s.calls(part)]
            if part == "pthread_barrier_wait" and not in_time(known):
                continue  # which takes a few milliseconds in all
            self.assert_each(known, lambda s, part=part: s.has_chain(["from_root", "thread_loop", part]), part)

    def test_filtered_ticks_are_those_of_other_processes(self):
        list(self.busy_processes())
        with Running(program("plain"), "0") as target:
            recording = self.record_working([target], "--pid", str(target.pid))
            self.assert_periods_filled(recording)
            self.assertEqual({s.labels["pid"] for s in recording.samples}, {target.pid})
            self.assertGreater(recording.accounting.filtered, 0)

    def test_samples_agree_with_the_scheduler(self):
        recorder = self.start_recording()
        processes = [
            subprocess.Popen([program(name), "1.5"], stdout=subprocess.DEVNULL)
            for name in ("plain", "rootless", "system_calls")
        ]
        booked = {}
        for process in processes:
            usage = os.wait4(process.pid, 0)[2]
            process.returncode = 0
            booked[process.pid] = (usage.ru_utime + usage.ru_stime) * 1e9
        recording = recorder.interrupt().finish()
        for pid, cpu_ns in booked.items():
            samples = recording.of_pid(pid)
            self.assert_cpu_time(recording, samples, cpu_ns, "process %d" % pid)


class MachineAtRest(BpfTestCase):
    def test_idle_ticks_are_no_samples(self):
        recording = record(self.directory, "--duration", "1s", hertz=99)
        profile = recording.profile
        idle = [s for s in recording.samples
                if s.labels.get("pid") == 0 or s.comm.startswith("swapper")]

        def serves_no_interrupt(sample):  # which is work, though nobody's
            return not any("softirq" in frame for frame in sample.frames)

        self.assertEqual(count_where(idle, serves_no_interrupt), 0, describe(idle))
        accounting = recording.accounting
        expected = profile.duration_nanos * CPUS / profile.period
        found = accounting.ticks() + accounting.undelivered
        self.assert_between(found, (0.98 * expected - 4, 1.02 * expected + 4), recording.stderr)


if __name__ == "__main__":
    main()
