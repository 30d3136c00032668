# SPDX-License-Identifier: Apache-2.0
"""Containers of one image have the same files, and yet each has files of its own: what is made of
them is made once."""

import contextlib
import os
import shutil
import subprocess

from pyrometer_harness import BpfTestCase, Running, main, pages_when_told, program, skip_or_fail, stats_of


class Overlay(BpfTestCase):
    def setUp(self):
        if os.geteuid() != 0:
            skip_or_fail("not root")
        self.lower = os.path.join(self.directory, "lower")
        os.makedirs(os.path.join(self.directory, "empty"))
        os.makedirs(self.lower)
        shutil.copy(program("plain_static"), os.path.join(self.lower, "program"))

    @contextlib.contextmanager
    def container(self, name):
        """The path of the program in an overlay mount of its own."""
        where = os.path.join(self.directory, name)
        os.mkdir(where)
        layers = "lowerdir=%s:%s" % (os.path.join(self.directory, "empty"), self.lower)
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, where],
                                 capture_output=True, text=True, check=False)  # fmt: skip
        if mounted.returncode != 0:
            skip_or_fail("no overlay mounts: " + mounted.stderr)
        try:
            yield os.path.join(where, "program")
        finally:
            subprocess.run(["umount", "-l", where], check=True)

    def test_two_mounts_of_one_file_share_what_is_made_of_it(self):
        with self.container("one") as one, self.container("two") as two:
            self.assertNotEqual(os.stat(one).st_dev, os.stat(two).st_dev)
            with Running(one, pages_when_told(300)) as first, Running(two, pages_when_told(300)) as second:
                recording, truths = self.record_pages([first, second], "--stats=json")
        for truth in truths:
            self.assert_pages(recording.of_pid(truth.pid), truth, lambda leaf: ["from_root", "loop", "outer", leaf],
                              "in an overlay")
        stats = stats_of(recording.stderr)
        # Its unwind table and its symbols, if no other files of this machine are equal.
        self.assertGreaterEqual(stats["artifacts_shared_total"], 2)
        self.assertGreaterEqual(stats["kernel_tables"], stats["kernel_table_contents"] + 1)


if __name__ == "__main__":
    main()
