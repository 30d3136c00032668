# SPDX-License-Identifier: Apache-2.0
"""The processes that read foreign files: which there are, what they take, and files to harm them."""

import contextlib
import os
import re
import struct
import subprocess
import sys
import threading
import time
import zlib

from waiting import wait_for

FDES = 2_000_000


def _status(pid, key):
    try:
        with open("/proc/%s/status" % pid, encoding="utf-8") as file:
            return re.search(r"^%s:\t(\S+)" % key, file.read(), re.MULTILINE)[1]
    except (OSError, TypeError):
        return ""  # it has just ended


def _memory_of(pid):
    """Bytes of physical memory; what several processes have in common counts for each by its part."""
    try:
        with open("/proc/%d/smaps_rollup" % pid, encoding="utf-8") as file:
            return int(re.search(r"^Pss: +(\d+) kB", file.read(), re.MULTILINE)[1]) << 10
    except (OSError, TypeError):
        return 0  # it has just ended


def _stats():
    """(pid, name, parent, session) of every process."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            fields = rest.split()
            yield int(pid), name, int(fields[1]), int(fields[3])


class RecorderProcesses:
    """A `pyrometer` that has begun, and the processes that are forked for it from then on: each that it
    forks itself has a session, in which also those are whose parents have been killed."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._sessions = set()

        def has_all():
            self._sessions = {pid for pid, _, parent, session in _stats() if parent == recorder and pid == session}
            return len(self._sessions) == 2

        wait_for(has_all, "the processes for foreign files")

    def of_sandbox(self):
        """The pids of those that read foreign files, and of those that have forked them."""
        return [pid for pid, name, _, session in _stats() if session in self._sessions and name == "pyrometer-read"]

    def memory(self):
        """Bytes that all take together."""
        ours = [pid for pid, _, _, session in _stats() if session in self._sessions]
        return sum(map(_memory_of, [self._recorder, *ours]))

    def readers(self):
        """The processes that read now, and the one that has forked them. Only the former have a filter of
        their own."""
        own = _status("self", "Seccomp_filters")
        of_sandbox = self.of_sandbox()
        readers = [pid for pid in of_sandbox if _status(pid, "Seccomp_filters") not in ("", own)]
        parents = {_status(pid, "PPid") for pid in readers}
        return readers + [pid for pid in of_sandbox if str(pid) in parents]

    def nurseries(self):
        """The processes that have forked others, be it one that is to take their place."""
        ours = [(pid, parent) for pid, _, parent, session in _stats() if session in self._sessions]
        parents = {parent for _, parent in ours}
        return [pid for pid, _ in ours if pid in parents]

    def await_readers(self):
        """Until some read, if they rested before."""
        wait_for(self._work, "somebody to read something")

    def _work(self):
        return any(_status(pid, "State") in ("R", "D") for pid in self.of_sandbox())

    def await_rest(self):
        """Until none of them has read anything for a second."""
        since = None

        def have_rested():
            nonlocal since
            if self._work():
                since = None
                return False
            since = since or time.monotonic()
            return time.monotonic() - since >= 1

        wait_for(have_rested, "what is to be read")


class MemoryWatch:
    """The most that all processes of a recorder took together while this was entered, in bytes."""

    def __init__(self, processes):
        self.most = 0
        self._processes = processes
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        while not self._ended.wait(0.02):
            self.most = max(self.most, self._processes.memory())

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()


def _hostile_file():
    """An ELF file whose call frame information is compressed: two million functions of three rows each."""
    text = 0x1000
    # A CIE: version 3, the CFA at rsp + 8, the return address at CFA - 8.
    frames = [struct.pack("<IIBBBBBBBBBBxx", 16, 0xFFFFFFFF, 3, 0, 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1)]
    for number in range(FDES):
        # advance 1, CFA at rsp + 16 and more; advance 2, CFA at rsp + 8
        frames.append(struct.pack("<IIQQBBBBBBBB", 28, 0, text + 8 * number, 8,
                                  0x41, 0x0E, 16 + number % 8 * 8, 0x42, 0x0E, 8, 0, 0))
    frames = b"".join(frames)
    packed = struct.pack("<IIQQ", 1, 0, len(frames), 8) + zlib.compress(frames, 1)
    names = b"\0.debug_frame\0.shstrtab\0"
    headers = 64 + 56
    sections = headers + len(packed) + len(names)
    size = max(text + 8 * FDES, sections + 3 * 64)
    section = struct.Struct("<IIQQQQIIQQ")
    return b"".join([
        b"\x7fELF\2\1\1", bytes(9),
        struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections, 0, 64, 56, 1, 64, 3, 2),
        struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 0x1000),
        packed, names, bytes(64),
        section.pack(1, 1, 0x800, 0, headers, len(packed), 0, 0, 8, 0),
        section.pack(14, 3, 0, 0, headers + len(packed), len(names), 0, 0, 1, 0),
    ]).ljust(size, b"\0")


def write_hostile_files(directory, count):
    """The paths of so many, each with other bytes."""
    content = _hostile_file()
    paths = []
    for number in range(count):
        paths.append(os.path.join(directory, "hostile%d.so" % number))
        with open(paths[-1], "wb") as file:
            file.write(content[:9] + bytes([number]) + content[10:])
    return paths


MAP_FILES = """
import mmap, os, sys, time
os.setuid(65534)
executable = mmap.PROT_READ | mmap.PROT_EXEC
maps = [mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=executable) for path in sys.argv[1:]]
print(flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def map_files(paths):
    """Has them mapped as code by a process of a user without any rights."""
    command = [sys.executable, "-c", MAP_FILES, *paths]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as mapper:
        try:
            if mapper.stdout.readline() != b"\n":
                raise AssertionError("the files cannot be mapped")
            yield
        finally:
            mapper.kill()
