# SPDX-License-Identifier: Apache-2.0
"""A file system that stops answering costs the names of what lies on it, and nothing else: the
recording begins, ends in time, and everything else is named."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile

from pyrometer_harness import (
    PAGE_FAULTS, BpfTestCase, Running, count_where, is_cut, main, pages_when_told, program, rests, stats_of,
    wait_for,
)
from hung_mount import HungMount
from shares_test import chain

# From Ctrl-C to the end: what is left to do has 10 s by itself, and what hangs 2 s of them. What waits for a
# file system for ever never ends.
IN_TIME_SECONDS = 120
DEPTH = 60
PAGES = 300


def libraries_of(path):
    """The absolute paths of what the dynamic linker loads for it, itself included."""
    output = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", output)


class HungFiles(BpfTestCase):
    def backing(self, names, links=()):
        """A directory with these programs, all they need to run with it as their root directory,
        and symbolic links."""
        directory = tempfile.mkdtemp(prefix="pyrometer-backing-")
        self.addCleanup(shutil.rmtree, directory)
        os.chmod(directory, 0o755)
        for name in names:
            shutil.copy(program(name), directory)
            for library in libraries_of(program(name)):
                os.makedirs(directory + os.path.dirname(library), exist_ok=True)
                shutil.copy(library, directory + library)
        for link, target in links:
            os.makedirs(directory + os.path.dirname(link), exist_ok=True)
            os.symlink(target, directory + link)
        return directory

    @contextlib.contextmanager
    def mounted(self, *backing, **more):
        """The mount. What waits for it ends with it, so all processes have to be ended outside."""
        with contextlib.ExitStack() as processes:
            self.processes = processes
            with HungMount(program("hung_fuse"), self.backing(*backing, **more)) as mount:
                yield mount

    def run_below(self, mount, name, *options, chrooted=False):
        """A program on the mount that waits for a word, with the mount as its root directory if wanted."""
        command = [name, pages_when_told(PAGES), *options]
        if chrooted:
            command = ["chroot", mount.path, "/" + command[0], *command[1:]]
        else:
            command = [mount.join(command[0]), *command[1:]]
        return self.processes.enter_context(Running(*command))

    def record_beside(self, mount, *targets, hang=None, hang_later=None):
        """Records the machine while `mount` hangs, until each of `targets` and a bystander have
        worked, and returns the recording after all that must hold for it: of the targets all is there,
        whatever can be told of it, and the bystander's stacks are whole."""
        with Running(program("shares"), str(DEPTH), pages_when_told(PAGES)) as bystander:
            if hang:
                mount.hang(hang)
            recorder = self.start_recording("--stats=json", event=PAGE_FAULTS)
            wait_for(lambda: rests(recorder.process.pid, "table-loader"), "the unwind tables")
            if hang_later:
                mount.hang(hang_later)
            target_truths = [target.work() for target in targets]
            truth = bystander.work()
            recording = recorder.interrupt().finish(IN_TIME_SECONDS)
        self.assertEqual(recording.status, 0, recording.stderr)
        samples = recording.of_pid(bystander.pid)
        self.assert_pages(samples, truth, lambda leaf: [*chain(DEPTH), leaf], "the bystander")
        for target in target_truths:
            self.assertGreaterEqual(count_where(recording.of_pid(target.pid), lambda s: True),
                                    sum(target.pages().values()))
        return recording

    def assert_counted(self, recording):
        stats = stats_of(recording.stderr)
        # A recording may end before a question is given up.
        unanswered = ("file_questions_late_total", "file_questions_refused_total",
                      "objects_waiting")  # fmt: skip
        self.assertGreater(sum(stats[name] for name in unanswered), 0)

    def assert_none_is_whole(self, samples):
        """What rules its program has cannot be told: a frame pointer may be that of a caller further up."""
        self.assertEqual([s for s in samples if not any(map(is_cut, s.frames))], [])

    def test_open(self):
        with self.mounted(["plain"]) as mount:
            target = self.run_below(mount, "plain")
            recording = self.record_beside(mount, target, hang="open")
        self.assert_counted(recording)
        self.assert_none_is_whole(recording.of_pid(target.pid))

    def test_read(self):
        with self.mounted(["plain"]) as mount:
            target = self.run_below(mount, "plain")
            recording = self.record_beside(mount, target, hang="read")
        self.assert_counted(recording)
        self.assert_none_is_whole(recording.of_pid(target.pid))

    def test_link(self):
        """Where perf maps and debug files of the processes would lie."""
        links = [("/tmp", "elsewhere"), ("/usr/lib/debug", "elsewhere")]
        with self.mounted(["jit", "debug_frame"], links=links) as mount:
            targets = [self.run_below(mount, "jit", chrooted=True),
                       self.run_below(mount, "debug_frame", chrooted=True)]
            self.assert_counted(self.record_beside(mount, *targets, hang="readlink"))

    def test_root_directory(self):
        """Of which nothing is asked: its program is known by what it has mapped."""
        with self.mounted(["plain"]) as mount:
            target = self.run_below(mount, "plain", chrooted=True)
            recording = self.record_beside(mount, target, hang="root")
        whole = [s for s in recording.of_pid(target.pid) if s.calls("from_root") and s.calls("outer")]
        self.assertGreaterEqual(count_where(whole, lambda s: not any(map(is_cut, s.frames))), PAGES)

    def test_everything(self):
        with self.mounted(["plain", "jit"]) as mount:
            targets = [self.run_below(mount, "plain"),
                       self.run_below(mount, "jit", chrooted=True)]
            self.assert_counted(self.record_beside(mount, *targets, hang="all"))

    def test_everything_while_it_records(self):
        with self.mounted(["plain", "jit"]) as mount:
            targets = [self.run_below(mount, "plain"),
                       self.run_below(mount, "jit", chrooted=True)]
            self.record_beside(mount, *targets, hang_later="all")


if __name__ == "__main__":
    main()
