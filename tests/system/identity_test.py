# SPDX-License-Identifier: Apache-2.0
"""A sample belongs to the program that ran: not to the one before it in the same process, not to
another one that had the same pid, and it is not lost because its process was over after 5 ms."""

import json
import os
import shutil
import subprocess

from pyrometer_harness import (
    PAGE_FAULTS, BpfTestCase, count_where, describe, main, pages, parse_truths, program, record, stats_of,
)

OTHER = {"exec_ping": "pong_work", "exec_pong": "ping_work"}
OWN = {"exec_ping": "ping_work", "exec_pong": "pong_work"}
PAGES = 20  # of each program


def every_sample(_):
    return True


class Identity(BpfTestCase):
    def assert_never_crossed(self, samples, programs):
        """Each of so many programs of either kind has its pages, and none of the other's."""
        for comm, other in OTHER.items():
            of_comm = [s for s in samples if s.comm == comm]
            crossed = [s for s in of_comm if s.calls(other)]
            self.assertEqual(count_where(crossed, every_sample), 0, describe(crossed))
            own = [s for s in of_comm if s.calls(OWN[comm])]
            whole = [s for s in own if s.is_chain(["from_root", "loop", OWN[comm]])]
            self.assertEqual((count_where(own, every_sample), count_where(whole, every_sample)),
                             (programs * PAGES, programs * PAGES), comm + describe(of_comm))

    def test_exec_separates_what_came_before_from_what_comes_after(self):
        recording = record(self.directory, command=[program("exec_ping"), "39", pages(PAGES)], event=PAGE_FAULTS)
        (truth,) = recording.truths
        self.assert_never_crossed(recording.of_pid(truth.pid), programs=20)

    def test_programs_under_one_pid_do_not_take_each_others_names(self):
        command = [program("same_pid"), "10", pages(PAGES), program("exec_ping"), program("exec_pong")]
        for _ in range(3):  # Another process may take the pid in between; then once more.
            recording = record(self.directory, command=command, event=PAGE_FAULTS)
            if recording.status == 0:
                break
        self.assertEqual(recording.status, 0, recording.stderr)
        reused = next(json.loads(line)["reused"] for line in recording.stdout.splitlines()
                      if "reused" in line)
        samples = recording.of_pid(reused)
        self.assertEqual({truth.pid for truth in recording.truths[:-1]}, {reused})
        self.assert_never_crossed(samples, programs=10)

    def test_ticks_of_all_programs_in_one_process_are_its_cpu_time(self):
        recording = record(self.directory, command=[program("exec_ping"), "39", "25"])
        (truth,) = recording.truths
        self.assert_cpu_time(recording, recording.of_pid(truth.pid), truth.cpu_ns, "40 programs in one process")


class Overwritten(BpfTestCase):
    """A file without a build id whose content changes under the same name and inode.

    What was in it before it changed is gone when its symbols are to be read: only the last content
    surely has names."""

    def test_executable_never_keeps_the_old_names(self):
        path = os.path.join(self.directory, "changing")
        recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
        names = {}
        for name in 5 * ["exec_ping_no_id", "exec_pong_no_id"]:
            with open(program(name), "rb") as content, open(path, "wb") as file:
                shutil.copyfileobj(content, file)
            os.chmod(path, 0o755)
            run = subprocess.run([path, "0", pages(PAGES)], stdout=subprocess.PIPE, text=True, check=True)
            names[parse_truths(run.stdout)[0].pid] = name[:-len("_no_id")]
        recording = recorder.interrupt().finish()
        for pid, name in names.items():
            samples = recording.of_pid(pid)
            crossed = [s for s in samples if s.calls(OTHER[name])]
            self.assertEqual(count_where(crossed, every_sample), 0, describe(crossed))
        last_pid, last_name = list(names.items())[-1]
        samples = recording.of_pid(last_pid)
        named = count_where(samples, lambda s: s.is_chain(["from_root", "loop", OWN[last_name]]))
        self.assertEqual(named, PAGES, describe(samples))
        self.assertGreater(stats_of(recording.stderr)["files_overwritten_total"], 0)


class ShortLived(BpfTestCase):
    """Programs that are over at once, one after the other."""

    COUNT = 250

    def assert_all_named(self, recording, name):
        """All carry the program's name and nothing but resolved frames, and each page has its stack; one that
        is missing was counted as lost.

        A frame of the dynamic linker or libc is resolved if it has a name or reads
        `libc.so.6+0x...`: these files come without a symbol table. The program's own have one.
        """
        own = program(name)
        samples = recording.of_comm(name)

        def resolved(sample):
            return not any(
                frame in ("", "[unknown]") or frame.startswith("0x")
                or mapping == own and "+0x" in frame
                for frame, mapping in zip(sample.frames, sample.mappings)
            )

        bad = [s for s in samples if not resolved(s)]
        self.assertEqual(count_where(bad, every_sample), 0, describe(bad) + recording.stderr)
        working = [s for s in samples if s.calls("short_work")]
        whole = [s for s in working if s.is_chain(["from_root", "loop", "short_work"])]
        self.assertEqual(describe(s for s in working if s not in whole), "")
        missing = self.COUNT * PAGES - count_where(whole, every_sample)
        self.assert_between(missing, (0, recording.accounting.lost), "missing samples")

    def command(self, name, parallel, amount):
        return [program("spawn_loop"), str(self.COUNT), str(parallel), program(name), amount]

    def test_are_named_from_the_first_one_on(self):
        for name in ("short_lived", "short_lived_static"):
            with self.subTest(name):
                recording = record(self.directory, "--stats=json", command=self.command(name, 1, pages(PAGES)),
                                   event=PAGE_FAULTS)
                self.assert_all_named(recording, name)

    def test_have_all_their_ticks(self):
        recording = record(self.directory, command=self.command("short_lived", 1, "5"))
        (truth,) = recording.truths
        samples = [*recording.of_comm("short_lived"), *recording.of_comm("spawn_loop")]
        self.assert_cpu_time(recording, samples, truth.cpu_ns, "programs that live 5 ms")

    def test_are_named_when_the_whole_machine_is_recorded(self):
        recorder = self.start_recording(event=PAGE_FAULTS)
        command = self.command("short_lived", 2, pages(PAGES))
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        recording = recorder.interrupt().finish()
        self.assert_all_named(recording, "short_lived")


if __name__ == "__main__":
    main()
