# SPDX-License-Identifier: Apache-2.0
"""Runs inside of gdb, attached to a process: see gdb_agreement.py. Prints one line of JSON."""

import json
import os
import random
import signal
import subprocess
import threading

import gdb  # there is one inside of gdb

MOMENTS = int(os.environ["MOMENTS"])
LONGEST_RUN_SECONDS = 0.05
EXAMPLES = 5
SYSCALL = b"\x0f\x05"
REGISTERS = ["rip", "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
             *("r%d" % n for n in range(8, 16)), "orig_rax"]  # fmt: skip


class StackReader:
    """Our unwinder, on the process that gdb has stopped."""

    def __init__(self, pid):
        self._process = subprocess.Popen([os.environ["STACK_READER"], str(pid)], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip

    def read(self, registers):
        """(how the stack ended, [pc], leaf first)"""
        words = ["%s=%d" % item for item in registers.items()]
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        end, _, frames = self._process.stdout.readline().rstrip("\n").partition("\t")
        return end, [int(frame.split(":")[0], 16) for frame in frames.split()]

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def run_and_stop(pid):
    """Lets the process run for a random moment."""
    timer = threading.Timer(random.uniform(0.001, LONGEST_RUN_SECONDS), os.kill, (pid, signal.SIGINT))
    timer.start()
    gdb.execute("continue", to_string=True)
    timer.join()


def registers_of(frame):
    mask = (1 << 64) - 1
    values = {name: int(frame.read_register(name)) & mask for name in REGISTERS}
    # At the start of a signal handler it is still that of the interrupted system call.
    before = bytes(gdb.selected_inferior().read_memory(values["rip"] - 2, 2))
    if values["orig_rax"] >> 63 or before != SYSCALL:
        values["orig_rax"] = -1
    return values


def frames_of_gdb():
    """([pc to look up], whether gdb reached the end), leaf first."""
    pcs = []
    frame = gdb.newest_frame()
    follows_signal = True  # the leaf's pc is no return address either
    while True:
        # Neither has a place on the stack: they are made up from debugging information.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc() - (0 if follows_signal else 1))
            follows_signal = frame.type() == gdb.SIGTRAMP_FRAME
        older = frame.older()
        if older is None:
            return pcs, frame.unwind_stop_reason() in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST)
        frame = older


def function_at(pc):
    """By gdb's symbols, so that both stacks are named alike; the address where it has none."""
    text = gdb.execute("info symbol 0x%x" % pc, to_string=True).strip()
    if text.startswith("No symbol"):
        return "0x%x" % pc
    name, _, rest = text.partition(" ")
    return name if not rest.startswith("+") else name + " in" + rest.partition("in section")[2]


def same_functions(ours, theirs):
    return all(a == b or function_at(a) == function_at(b) for a, b in zip(ours, theirs))


def judge(end, ours, theirs, gdb_reached_end):
    # In a system call our pc stands on the instruction, gdb's behind it.
    if not same_functions(ours[1:], theirs[1:]) or abs(ours[0] - theirs[0]) > 1:
        return "different"
    if len(ours) == len(theirs):
        return "same"
    if len(theirs) < len(ours):
        return "different" if gdb_reached_end else "gdb_stopped"
    # Fewer frames than gdb: an honest cut is a loss, not an error.
    return "different" if end == "complete" else "cut"


def describe(end, ours, theirs):
    lines = ["ours (%s):" % end] + ["  " + function_at(pc) for pc in ours]
    return "\n".join(lines + ["gdb:"] + ["  " + function_at(pc) for pc in theirs])


def main():
    for setting in ("pagination off", "confirm off", "backtrace past-main on",
                    "backtrace past-entry on", "backtrace limit 600"):  # fmt: skip
        gdb.execute("set " + setting)
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    for name in ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGURG", "SIGTERM"):
        gdb.execute("handle %s nostop noprint pass" % name, to_string=True)
    pid = gdb.selected_inferior().pid
    counts = {"moments": 0, "same": 0, "gdb_stopped": 0, "different": 0, "cut": 0, "complete": 0,
              "examples": []}  # fmt: skip
    reader = StackReader(pid)
    for _ in range(MOMENTS):
        run_and_stop(pid)
        end, ours = reader.read(registers_of(gdb.newest_frame()))
        theirs, gdb_reached_end = frames_of_gdb()
        verdict = judge(end, ours, theirs, gdb_reached_end)
        counts["moments"] += 1
        counts[verdict] += 1
        counts["complete"] += end == "complete"
        if verdict in ("different", "cut") and len(counts["examples"]) < EXAMPLES:
            counts["examples"].append(describe(end, ours, theirs))
    reader.close()
    print(json.dumps(counts))


main()
