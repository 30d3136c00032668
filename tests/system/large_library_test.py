# SPDX-License-Identifier: Apache-2.0
"""A library as large as TensorFlow's or ClickHouse's costs neither stacks nor memory."""

import os
import signal

from pyrometer_harness import (
    BpfTestCase, Running, await_rest, count_where, describe, is_cut, main, program, stats_of, wait_for,
)

# Resident memory at its highest: of a debug build, which is the larger one.
MOST_KB = 150_000
# The library's unwind table has 19 MB; no other file without a name has as many before symbols are read.
LEAST_TABLE_BYTES = 16_000_000


def peak_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def largest_nameless_file(pid):
    """Bytes of the largest file that this process keeps open and that has no name, or 0."""
    largest = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).endswith(" (deleted)"):
                largest = max(largest, os.stat(path).st_size)
        except OSError:
            continue  # it has just been closed
    return largest


class LargeLibrary(BpfTestCase):
    def test_is_unwound_whole_and_compiled_once(self):
        with Running(program("large"), "0") as target:
            os.kill(target.pid, signal.SIGSTOP)
            recorder = self.start_recording("--stats=json", hertz=199)
            # Threads that rest may not have begun: on a busy machine the library is reached late.
            wait_for(lambda: largest_nameless_file(recorder.process.pid) >= LEAST_TABLE_BYTES, "the table")
            await_rest(recorder.process.pid, ("questions", "table-loader"), "the unwind tables")
            os.kill(target.pid, signal.SIGCONT)
            self.wait_for_cpu_time([target], 4)
            peak = peak_kb(recorder.process.pid)
            recording = recorder.interrupt().finish()
        samples = recording.of_pid(target.pid)
        total = count_where(samples, lambda s: True)
        self.assert_cut_only_when_late(recording, samples)
        deep = [s for s in samples if s.has_chain(["from_root", "work"] + 11 * ["far_frames"])]
        self.assertGreater(count_where(deep, lambda s: True), 0.5 * total, describe(samples))
        self.assertLess(peak, MOST_KB)
        stats = stats_of(recording.stderr)
        # What failed may come later, and what is being made at the end is given up.
        again = stats["tables_made_total"] - stats["tables_kept"]
        self.assertLessEqual(again, stats["tables_failed_total"])

    def test_has_whole_stacks_as_soon_as_the_kernel_has_its_table(self):
        # Stacks of 440 KB are what the kernel side has unwound before ticks end: of a cold sample no
        # more than 64 KiB are there, however long its table is waited for.
        recorder = self.start_recording("--stats=json", hertz=199)
        with Running(program("large"), "0") as target:
            self.wait_for_cpu_time([target], 0.5)  # of which samples come before the table
            wait_for(lambda: largest_nameless_file(recorder.process.pid) >= LEAST_TABLE_BYTES, "the table")
            await_rest(recorder.process.pid, ("questions", "table-loader"), "the unwind tables")
            self.wait_for_cpu_time([target], 1)
            recording = recorder.interrupt().finish()
        samples = recording.of_pid(target.pid)
        deep = [s for s in samples if s.has_chain(["from_root", "work"] + 11 * ["far_frames"])]
        whole = [s for s in deep if not any(map(is_cut, s.frames))]
        self.assertGreater(count_where(whole, lambda s: True), 0, describe(samples))
        # Those from before miss their root, and say so: none is short and counts as whole.
        short = [s for s in samples if s.calls("far_frames") and not s.calls("from_root")]
        self.assertEqual([s for s in short if not any(map(is_cut, s.frames))], [], recording.stderr)


if __name__ == "__main__":
    main()
