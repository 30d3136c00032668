# SPDX-License-Identifier: Apache-2.0
"""The file system of the tests about hung files: it runs programs, and hangs as it is told."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from pyrometer_harness import Running, cpu_ns_of, main, program, skip_or_fail, wait_for
from hung_mount import HungMount


def state_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(") ")[2][0]


class HungMountTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            skip_or_fail("not root, or no /dev/fuse")
        self.processes = []
        self.addCleanup(self.reap)
        # Closed before that: who waits for the file system does not end.
        self.stack = stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        backing = stack.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-backing-"))
        os.mkdir(os.path.join(backing, "directory"))
        shutil.copy(program("plain_static"), os.path.join(backing, "directory", "program"))
        os.symlink("directory/program", os.path.join(backing, "link"))
        self.mount = stack.enter_context(HungMount(program("hung_fuse"), backing))

    def reap(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def start(self, *command, stdin=subprocess.DEVNULL):
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        self.processes.append(process)
        return process

    def assert_hangs(self, *command):
        """Until it is answered."""
        before = self.mount.held()
        process = self.start(*command)
        wait_for(lambda: self.mount.held() > before, "a request")
        self.assertIsNone(process.poll())
        self.mount.answer()
        self.assertEqual(process.wait(60), 0)

    def test_shows_the_files(self):
        self.assertEqual(sorted(os.listdir(self.mount.path)), ["directory", "link"])
        self.assertEqual(os.readlink(self.mount.join("link")), "directory/program")
        with open(self.mount.join("link"), "rb") as shown, open(program("plain_static"), "rb") as own:
            self.assertEqual(shown.read(), own.read())
        with self.assertRaises(FileNotFoundError):
            os.stat(self.mount.join("directory", "nothing"))

    def test_hangs_where_it_is_told_to(self):
        file, link = self.mount.join("directory", "program"), self.mount.join("link")
        for what, command in {
            "read": ["cat", file],  # first: what was read once is in the page cache
            "open": ["cat", file],
            "readlink": ["stat", "-L", link],
            "root": ["ls", self.mount.path],
            "all": ["stat", file],
        }.items():
            with self.subTest(what):
                self.mount.hang(what)
                self.assert_hangs(*command)

    def test_does_the_rest_meanwhile(self):
        self.mount.hang("open")
        self.assertEqual(os.stat(self.mount.join("link")).st_mode & 0o111, 0o111)
        self.mount.hang("readlink")
        with open(self.mount.join("directory", "program"), "rb") as file:
            self.assertEqual(file.read(4), b"\x7fELF")

    def test_leaves_a_program_running_whose_file_hangs(self):
        with Running(self.mount.join("directory", "program"), "0") as running:
            for what in ("open", "read", "readlink", "root", "all"):
                self.mount.hang(what)
                goal = cpu_ns_of(running.pid) + 50_000_000
                wait_for(lambda: cpu_ns_of(running.pid) >= goal, "CPU time while it hangs")
            # Something of the file was never needed, and must be read.
            self.mount.hang("read")
            self.assert_hangs("cat", self.mount.join("directory", "program"))

    def test_keeps_a_process_of_which_one_thread_waits(self):
        """What a program has to reckon with that opens files of others: exit() does not help."""
        script = "import os, sys, threading; " \
                 "threading.Thread(target=open, args=(sys.argv[1],), daemon=True).start(); " \
                 "sys.stdin.read(1); os._exit(0)"
        self.mount.hang("open")
        process = self.start(sys.executable, "-c", script, self.mount.join("link"),
                             stdin=subprocess.PIPE)
        wait_for(lambda: self.mount.held() > 0, "a request")
        process.stdin.close()
        wait_for(lambda: state_of(process.pid) == "Z", "it to have called exit()")
        self.assertIsNone(process.poll())
        self.mount.answer()
        self.assertEqual(process.wait(60), 0)

    def test_frees_who_waits_at_its_end(self):
        self.mount.hang("open")
        process = self.start("cat", self.mount.join("link"))
        wait_for(lambda: self.mount.held() > 0, "a request")
        self.stack.close()
        self.assertNotEqual(process.wait(60), 0)
        self.assertFalse(os.path.exists(self.mount.path))


if __name__ == "__main__":
    main()
