# SPDX-License-Identifier: Apache-2.0
"""A sample belongs to the program that ran: not to the one before it in the same process, not to
another one that had the same pid, and it is not lost because its process was over after 5 ms."""

import json
import os
import shutil
import subprocess

from pyrometer_harness import (
    BpfTestCase, count_where, describe, main, parse_truths, program, record, stats_of,
)

OTHER = {"exec_ping": "pong_work", "exec_pong": "ping_work"}
OWN = {"exec_ping": "ping_work", "exec_pong": "pong_work"}


def every_sample(_):
    return True


class Identity(BpfTestCase):
    def assert_never_crossed(self, samples):
        for comm, other in OTHER.items():
            of_comm = [s for s in samples if s.comm == comm]
            crossed = [s for s in of_comm if s.calls(other)]
            self.assertEqual(count_where(crossed, every_sample), 0, describe(crossed))
            named = count_where(of_comm, lambda s, comm=comm: s.calls(OWN[comm]))
            # The rest is exec itself, and the dynamic linker.
            self.assertGreaterEqual(named, 0.9 * count_where(of_comm, every_sample),
                                    comm + describe(s for s in of_comm if not s.calls(OWN[comm])))
            self.assertGreater(named, 200, comm)

    def test_exec_separates_what_came_before_from_what_comes_after(self):
        recording = record(self.directory, command=[program("exec_ping"), "39", "25"])
        (truth,) = recording.truths
        samples = recording.of_pid(truth.pid)
        self.assert_never_crossed(samples)
        self.assert_cpu_time(recording, samples, truth.cpu_ns, "all 40 programs in one process")

    def test_programs_under_one_pid_do_not_take_each_others_names(self):
        command = [program("same_pid"), "10", "50", program("exec_ping"), program("exec_pong")]
        for _ in range(3):  # Another process may take the pid in between; then once more.
            recording = record(self.directory, command=command)
            if recording.status == 0:
                break
        self.assertEqual(recording.status, 0, recording.stderr)
        reused = next(json.loads(line)["reused"] for line in recording.stdout.splitlines()
                      if "reused" in line)
        samples = recording.of_pid(reused)
        self.assertEqual({truth.pid for truth in recording.truths[:-1]}, {reused})
        self.assert_never_crossed(samples)
        self.assert_cpu_time(recording, samples, sum(t.cpu_ns for t in recording.truths[:-1]),
                             "all 20 programs under one pid")


class Overwritten(BpfTestCase):
    """A file without a build id whose content changes under the same name and inode.

    What was in it before it changed is gone when its symbols are to be read: only the last content
    has names."""

    def test_executable_never_keeps_the_old_names(self):
        path = os.path.join(self.directory, "changing")
        recorder = self.start_recording("--stats=json")
        names = {}
        for name in 5 * ["exec_ping_no_id", "exec_pong_no_id"]:
            with open(program(name), "rb") as content, open(path, "wb") as file:
                shutil.copyfileobj(content, file)
            os.chmod(path, 0o755)
            run = subprocess.run([path, "0", "100"], stdout=subprocess.PIPE, text=True, check=True)
            names[parse_truths(run.stdout)[0].pid] = name[:-len("_no_id")]
        recording = recorder.interrupt().finish()
        for pid, name in names.items():
            samples = recording.of_pid(pid)
            crossed = [s for s in samples if s.calls(OTHER[name])]
            self.assertEqual(count_where(crossed, every_sample), 0, describe(crossed))
        last_pid, last_name = list(names.items())[-1]
        samples = recording.of_pid(last_pid)
        named = count_where(samples, lambda s: s.calls(OWN[last_name]))
        self.assertGreaterEqual(named, 0.8 * count_where(samples, every_sample), describe(samples))
        self.assertGreater(stats_of(recording.stderr)["frames_overwritten_total"], 0)


class ShortLived(BpfTestCase):
    """Programs that live 5 ms each, one after the other."""

    def assert_all_named(self, samples, name):
        """At least 99 % carry the program's name and nothing but resolved frames.

        A frame of the dynamic linker or libc is resolved if it has a name or reads
        `libc.so.6+0x...`: these files come without a symbol table. The program's own have one.
        """
        own = program(name)

        def resolved(sample):
            return not any(
                frame in ("", "[unknown]") or frame.startswith("0x")
                or mapping == own and "+0x" in frame
                for frame, mapping in zip(sample.frames, sample.mappings)
            )

        total = count_where(samples, every_sample)
        self.assertGreater(total, 500, "samples of " + name)
        bad = [s for s in samples if not resolved(s)]
        self.assertLessEqual(count_where(bad, every_sample), 0.01 * total, describe(bad))
        # The work is 5 ms of each life; starting and ending a process is the rest.
        working = count_where(samples, lambda s: s.has_chain(["from_root", "loop", "short_work"]))
        self.assertGreaterEqual(working, 0.75 * total,
                                describe(s for s in samples if not s.calls("short_work")))

    def test_are_named_from_the_first_one_on(self):
        for name in ("short_lived", "short_lived_static"):
            with self.subTest(name):
                command = [program("spawn_loop"), "250", "1", program(name), "5"]
                recording = record(self.directory, command=command)
                samples = recording.of_comm(name)
                self.assert_all_named(samples, name)
                own = recording.of_comm("spawn_loop")
                (truth,) = recording.truths
                self.assert_cpu_time(recording, samples + own, truth.cpu_ns, name)

    def test_are_named_when_the_whole_machine_is_recorded(self):
        recorder = self.start_recording()
        # Ends when all of them have had their 5 ms, however busy the machine is.
        loop = [program("spawn_loop"), "250", "2", program("short_lived"), "5"]
        subprocess.run(loop, stdout=subprocess.DEVNULL, check=True)
        recording = recorder.interrupt().finish()
        self.assert_all_named(recording.of_comm("short_lived"), "short_lived")


if __name__ == "__main__":
    main()
