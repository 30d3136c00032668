# SPDX-License-Identifier: Apache-2.0
"""A file system that stops answering when it is told to: tests/programs/hung_fuse at work."""

import ctypes
import os
import subprocess
import tempfile

from waiting import read_line

MNT_DETACH = 2


class HungMount:
    """A context manager: a view of `backing` at `path`, until it is left.

    Whoever waits for it then gets an error; before, not even SIGKILL frees one whose request the
    server has taken, and no process ends of which one thread is such a one. So leave it before you
    wait for the end of those."""

    def __init__(self, server, backing):
        self._server = server
        self._backing = backing

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="pyrometer-hung-")
        os.chmod(self.path, 0o755)
        self._process = subprocess.Popen(
            [self._server, self._backing, self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            self._expect("READY")
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Its end ends all waiting for it, so it comes first, whatever state it is in.
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        ctypes.CDLL(None).umount2(self.path.encode(), MNT_DETACH)
        os.rmdir(self.path)

    def join(self, *names):
        return os.path.join(self.path, *names)

    def hang(self, what):
        """From now on requests wait: "open", "read", "write", "readlink", "root" (what begins at the
        root directory) or "all"."""
        self._order("hang " + what)
        self._expect("OK")

    def answer(self):
        """What waits, and what comes."""
        self._order("answer")
        self._expect("OK")

    def held(self):
        """How many requests wait."""
        self._order("held")
        return int(self._line())

    def _order(self, text):
        os.write(self._process.stdin.fileno(), text.encode() + b"\n")

    def _expect(self, wanted):
        line = self._line()
        if line != wanted:
            raise AssertionError("hung_fuse said %r, not %s" % (line, wanted))

    def _line(self):
        line = read_line(self._process.stdout)
        if line is None:
            raise AssertionError("hung_fuse ended or hangs itself")
        return line.decode()
