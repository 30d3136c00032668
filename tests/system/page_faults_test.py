# SPDX-License-Identifier: Apache-2.0
"""`record --event page-faults`: every fault of a program that touches a known number of fresh pages
is there, in its function and with its whole stack; no more and no less, on any machine."""

import contextlib
import gzip
import os
import re
import shutil
import signal

from pyrometer_harness import (
    BpfTestCase, NOT_READY, PAGE_FAULTS as EVENT, Running, count_where, describe, main, program, record, refused,
)
from foreign_processes import RecorderProcesses
from waiting import wait_for

# So few that all of them can be left to user space at once, if nothing is known of the program yet.
FEW = 300
MANY = 10_000
# As root first; the function that touches the pages follows.
CHAIN = ["from_root", "all", "level_3", "level_2", "level_1"]


def every_sample(_):
    return True


def stacks_of(function, may_be_cut):
    """What the stack of a fault in `function` may be."""
    whole = [*CHAIN, function]
    return [whole, [NOT_READY, *whole]] if may_be_cut else [whole]


class PageFaults(BpfTestCase):
    def touch_when_recorded(self, pages, *options, meanwhile=lambda recorder: None):
        """A recording of the whole machine, or of what `options` say, and the program's truth."""
        with Running(program("page_faults"), str(pages), "told") as target:
            pid = [word.replace("PID", str(target.pid)) for word in options]
            recorder = self.start_recording(*pid, event=EVENT)
            target.process.send_signal(signal.SIGUSR1)
            truth = target.stop()
            meanwhile(recorder)
            return recorder.interrupt().finish(), truth

    def have_a_reader_begin(self, recorder):
        """Whose memory is new, so it has faults, which a process that has run for a while may not have."""
        processes = RecorderProcesses(recorder.process.pid)
        before = set(processes.readers())
        for pid in before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        new_file = shutil.copy(program("page_faults"), os.path.join(self.directory, "to-be-read"))
        with Running(new_file, "1", "told"):
            wait_for(lambda: set(processes.readers()) - before, "one that reads it")

    def assert_every_page(self, samples, truth, may_be_cut=False):
        """Each function of `truth` has a sample for each of its pages, all of them with the chain
        and nothing else; below a marker only if too many were to be unwound in user space at once."""
        for function, pages in truth.iterations.items():
            ours = [sample for sample in samples if sample.calls(function)]
            whole = [sample for sample in ours if sample.frames in stacks_of(function, may_be_cut)]
            self.assertGreater(pages, 0)
            self.assertEqual(
                (count_where(ours, every_sample), count_where(whole, every_sample)),
                (pages, pages), "%s: %s" % (function, describe(ours)),
            )

    def assert_all_accounted_for(self, recording):
        accounting = recording.accounting
        self.assertEqual((accounting.idle, accounting.lost), (0, 0))
        self.assertEqual(recording.status, 0, recording.stderr)

    def test_of_a_running_process(self):
        recording, truth = self.touch_when_recorded(FEW, "--pid", "PID")
        self.assert_all_accounted_for(recording)
        self.assertEqual({s.labels["pid"] for s in recording.samples}, {truth.pid})
        self.assert_every_page(recording.samples, truth)

    def test_of_the_whole_machine_its_own_included(self):
        recording, truth = self.touch_when_recorded(MANY, meanwhile=self.have_a_reader_begin)
        self.assert_all_accounted_for(recording)
        self.assertEqual(recording.accounting.filtered, 0)
        self.assert_every_page(recording.of_pid(truth.pid), truth, may_be_cut=True)
        # It sees its own processes, and comes to an end.
        self.assertGreater(len(recording.of_comm("pyrometer-read")), 0)

    def test_of_a_command_from_its_first_instruction(self):
        recording = record(self.directory, command=[program("page_faults"), str(FEW)], event=EVENT)
        self.assert_all_accounted_for(recording)
        (truth,) = recording.truths
        self.assert_every_page(recording.of_pid(truth.pid), truth)
        # The loader's are there, too: they come before anything is known of the program.
        loading = [s for s in recording.of_pid(truth.pid)
                   if s.mappings and os.path.basename(s.mappings[-1] or "").startswith("ld-")]
        self.assertGreater(count_where(loading, every_sample), 0, describe(recording.samples))

    def test_of_one_for_every_ten(self):
        period = 10
        recording = record(self.directory, command=[program("page_faults"), str(MANY)],
                           event=EVENT, period=period)
        self.assert_all_accounted_for(recording)
        (truth,) = recording.truths
        (switches,) = map(int, re.findall(r"^SWITCHES (\d+)$", recording.stdout, re.MULTILINE))
        # Each CPU counts every fault on it. Of those that follow each other without another's between
        # them every tenth is sampled, and another's can only come where the program leaves the CPU.
        most_off = 1 + switches
        for function, touched in truth.iterations.items():
            samples = [s for s in recording.samples if s.frames in stacks_of(function, True)]
            found = count_where(samples, every_sample)
            self.assertLess(abs(found - touched / period), most_off, function)
            print("%s: %d samples of %d faults, %d switches" % (function, found, touched, switches))


class Outputs(BpfTestCase):
    def test_speak_of_page_faults_and_not_of_time(self):
        page = os.path.join(self.directory, "faults.html")
        text = os.path.join(self.directory, "faults.txt")
        recording = record(self.directory, "--output", page, "--output", text, event=EVENT,
                           period=2, command=[program("page_faults"), str(FEW)])
        with open(text, encoding="utf-8") as file:
            header, *rest = file.read().splitlines()
        samples = recording.accounting.samples
        self.assertRegex(
            header, r"^%s samples in [0-9.]+ s for every 2 of %s page faults"
            % (format(samples, ","), format(2 * samples, ",")))
        self.assertNotIn("CPU", "\n".join(rest))
        with open(page, encoding="utf-8") as file:
            self.assertIn("<title>Page fault profile</title>", file.read())

    def test_of_a_recording_without_samples_are_of_page_faults_all_the_same(self):
        with Running(program("plain"), "0") as target:
            recorder = self.start_recording("--comm", "nobody-has-it", event=EVENT)
            target.stop()
            recording = recorder.interrupt().finish()
        self.assertEqual(recording.samples, [])
        self.assertIn("no samples", recording.stderr)
        with gzip.open(os.path.join(self.directory, "recorded.pb.gz")) as file:
            self.assertNotIn(b"nanoseconds", file.read())


class WrongUsage(BpfTestCase):
    def test_says_which_option_goes_with_which_event(self):
        cases = {
            ("--event", "faults"): "choose cpu-clock or page-faults",
            ("--event", EVENT, "--frequency", "99"): "--period instead of --frequency",
            ("--period", "10"): "--period is for events that are counted",
            ("--event", EVENT, "--period", "0"): "'0' is not a period",
        }
        for options, reason in cases.items():
            with self.subTest(options):
                result = refused("record", *options, "--", "true")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(reason, result.stderr)


if __name__ == "__main__":
    main()
