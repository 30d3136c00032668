# SPDX-License-Identifier: Apache-2.0
"""Frames in other BPF programs have their names, whether a program was there before the recording or
came while it ran."""

import re
import subprocess

from pyrometer_harness import BpfTestCase, count_where, main, program, wait_for

BURN = re.compile(r"bpf_prog_[0-9a-f]{16}_burn$")


def burning():
    """The programs of `runs_bpf` that the kernel's own list names."""
    with open("/proc/kallsyms") as file:
        names = {line.split()[2] for line in file if line.rstrip().endswith("[bpf]")}
    return set(filter(BURN.match, names))


class BpfPrograms(BpfTestCase):
    def load_program(self):
        """A process in which one runs nearly all the time."""
        process = subprocess.Popen([program("runs_bpf")])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(burning, "a BPF program")
        return process

    def assert_named(self, recording):
        samples = recording.of_comm("runs_bpf")
        total = count_where(samples, lambda s: True)
        inside = [s for s in samples if BURN.match(s.frames[-1])]
        self.assertGreater(count_where(inside, lambda s: True), 0.8 * total)
        self.assertEqual({s.mappings[-1] for s in inside}, {"[bpf]"})
        folded = [s for s in recording.folded if BURN.match(s.frames[-1])]
        self.assertTrue(folded and all(s.kernel[-1] for s in folded), "frames of the kernel")
        unnamed = [s for s in samples if any(f.startswith("[kernel]+") for f in s.frames)]
        self.assertEqual(count_where(unnamed, lambda s: True), 0)

    def test_that_were_there_before_have_names(self):
        self.assert_named(self.record_working([self.load_program()]))

    def test_that_come_while_it_records_have_names(self):
        recorder = self.start_recording()
        self.wait_for_cpu_time([self.load_program()], 0.5)
        self.assert_named(recorder.interrupt().finish())


if __name__ == "__main__":
    main()
