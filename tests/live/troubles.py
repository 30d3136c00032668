# SPDX-License-Identifier: Apache-2.0
"""Everything that was ever too much for a recorder, each as something that begins on a Stage and goes
on until it is left; and the bystanders that it must not harm."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys

from packages import Missing, need

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "tests", "programs")
sys.path.append(os.path.join(ROOT, "tests", "shared"))

from hung_mount import HungMount  # noqa: E402  (tests/shared)
from waiting import read_line  # noqa: E402

FLAGS = ["-D_GNU_SOURCE", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
         "-fno-ipa-icf", '-DPROGRAM_NAME="soak"', "-I" + PROGRAMS]  # fmt: skip
# Works most of the time; a process that lives 5 ms, 20 times a second; one of a new file each
# second; one on each overlay mount, for 0.2 ms each second.
BYSTANDERS = ("plain", "short_lived", "newcomer", "napper")
LONGEST_LIFE_SECONDS = 7200  # of a napper, should all who know it be gone
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def compile_all(stage):
    def compile_one(name, *sources_and_flags):
        stage.run(need("gcc", "gcc"), *FLAGS, "-o", stage.path(name), *sources_and_flags)

    work = os.path.join(PROGRAMS, "work.c")
    for name in ("plain", "many_mappings", "short_lived"):
        compile_one(name, os.path.join(PROGRAMS, name + ".c"), work)
    compile_one("napper", os.path.join(os.path.dirname(__file__), "napper.c"), work)
    for name, other in (("ping", "pong"), ("pong", "ping")):
        compile_one(name, os.path.join(PROGRAMS, "exec_hop.c"), work, "-DHOP_SELF=" + name,
                    "-DHOP_OTHER=" + other, "-Wl,--build-id=none", "-fno-pie", "-no-pie")  # fmt: skip
    compile_one("hung_fuse", os.path.join(PROGRAMS, "hung_fuse.c"))


def mount_overlay(layers, where):
    if _libc.mount(b"overlay", where.encode(), b"overlay", 0, ("lowerdir=" + layers).encode()) != 0:
        raise Missing("no overlay mounts: " + os.strerror(ctypes.get_errno()))


def overlays(stage, stack, count):
    """A napper on each of so many mounts that show the same directory."""
    for name in ("lower", "empty"):
        os.mkdir(stage.path(name))
    shutil.copy(stage.path("napper"), stage.path("lower"))
    for number in range(count):
        place = stage.path("overlay-%d" % number)
        os.mkdir(place)
        mount_overlay("%s:%s" % (stage.path("lower"), stage.path("empty")), place)
        stack.callback(_libc.umount2, place.encode(), MNT_DETACH)
    # Not all at once: with 500 threads that want to run, the recorder does not for seconds.
    shell = stage.start("sh", "-c", "for place in overlay-*; do $place/napper %d & sleep 0.02; done; "
                        "wait" % LONGEST_LIFE_SECONDS, stdout=subprocess.PIPE)  # fmt: skip
    await_ready(shell, "the programs on overlay mounts do not start", count)


def await_ready(process, otherwise, count=1):
    """Until it has said so on its `stdout`, so often. Raises Missing."""
    with contextlib.closing(process.stdout) as output:
        for _ in range(count):
            if read_line(output) != b"READY":
                raise Missing(otherwise)


def program_on_mount(stage, stack, name):
    """The HungMount on which a program of that name runs, which needs nothing of it any more."""
    backing = stage.path("backing-" + name)
    os.mkdir(backing)
    shutil.copy(stage.path("napper"), os.path.join(backing, name))
    mount = stack.enter_context(HungMount(stage.path("hung_fuse"), backing))
    process = stage.start(mount.join(name), str(LONGEST_LIFE_SECONDS), stdout=subprocess.PIPE)
    await_ready(process, "no program runs on a FUSE mount")
    return mount


def loop(stage, *commands):
    """These, one after the other, again and again."""
    stage.start("sh", "-c", "while :; do %s; done" % "; ".join(commands))


def bystanders(stage):
    # No program of tests/programs works for longer than two minutes.
    loop(stage, "./plain 100")
    loop(stage, "./short_lived 5", "sleep 0.045")  # which is a new process, too
    loop(stage, "cp short_lived newcomer", "./newcomer 50", "sleep 1", "rm newcomer")


def mapping_storm(stage):
    loop(stage, "./many_mappings 0.2 330")


def fork_bomb(stage, forks):
    """Of processes with 30,000 mappings, which is more than are kept, and with 5,000."""
    loop(stage, *("timeout 60 ./many_mappings 1 %d %d; sleep 10" % (mappings, forks)
                  for mappings in (30_000, 5_000)))  # fmt: skip


def overwritten_executable(stage):
    loop(stage, *("cat %s > changing; chmod +x changing; ./changing 0 100; sleep 1" % content
                  for content in ("ping", "pong")))  # fmt: skip
