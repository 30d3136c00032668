# SPDX-License-Identifier: Apache-2.0
"""How good the user stacks of a recording are."""

import collections
import dataclasses
import functools
import os
import re
import struct
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import collapsed  # noqa: E402

KERNEL_MAPPING = "[kernel.kallsyms]"
# The first frame below the process of a stack that is not complete.
MARK = re.compile(r"\[truncated\]$|\[[a-z ]+: [^\]]*\]$")


@dataclasses.dataclass
class Completeness:
    samples: int = 0  # with a user stack
    complete: int = 0
    reasons: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def percent(self):
        return 100 * self.complete / self.samples if self.samples else 0.0

    def reasons_text(self, most=3):
        return ", ".join(
            "%s %.2f %%" % (reason.strip("[]"), 100 * count / self.samples)
            for reason, count in self.reasons.most_common(most)
        )


def completeness(folded, comms):
    """Of the processes with these names, by the marks of collapsed stacks."""
    result = Completeness()
    for line in folded.splitlines():
        comm, frames, count = collapsed.split(line)
        if comm not in comms or not frames:
            continue
        mark = frames[0] if MARK.match(frames[0]) else None
        if not mark and all(map(collapsed.is_kernel, frames)):
            continue  # A kernel thread, or a process without memory of its own.
        result.samples += count
        if mark:
            result.reasons[mark] += count
        else:
            result.complete += count
    return result


def user_frames(sample):
    """Root first; without the mark."""
    frames = [frame for frame in sample.frames if frame.mapping != KERNEL_MAPPING]
    return frames[1:] if is_cut(sample) else frames


def is_cut(sample):
    return bool(sample.frames) and MARK.match(sample.frames[0].function) is not None


# Whether the outermost frame of a complete stack is one.

ENTRY_SIZE = 64  # of _start, which may have no call frame information
MACHINE_64 = b"\x7fELF\x02"


@functools.cache
def entry_ranges(path):
    """[(first, end)]: where a thread of this ELF file can have begun, as its own address space has
    it: its entry point, and the functions whose return address is undefined to the debugger. None if
    the file cannot be read."""
    try:
        with open(path, "rb") as file:
            header = file.read(64)
    except OSError:
        return None
    if not header.startswith(MACHINE_64):
        return None
    (entry,) = struct.unpack_from("<Q", header, 24)
    ranges = [(entry, entry + ENTRY_SIZE)] if entry else []
    frames = subprocess.run(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace").stdout  # fmt: skip
    return ranges + _functions_without_caller(frames.splitlines())


CIE = re.compile(r"([0-9a-f]{8}) [0-9a-f]{16} [0-9a-f]{8} CIE ")
FDE = re.compile(r"FDE cie=([0-9a-f]{8}) pc=([0-9a-f]+)\.\.([0-9a-f]+)")


def _functions_without_caller(lines):
    """From readelf's rows of registers; the return address is the last column, `u` if undefined. A
    CIE's row holds for its FDEs."""
    functions = []
    undefined_cies = set()
    cie = function = None
    for line in lines:
        words = line.split()
        if match := CIE.match(line):
            cie, function = match.group(1), None
        elif match := FDE.search(line):
            cie, function = None, tuple(int(group, 16) for group in match.groups()[1:])
            if match.group(1) in undefined_cies:
                functions.append(function)
        elif words[-1:] == ["u"]:
            if cie:
                undefined_cies.add(cie)
            elif function and function not in functions[-1:]:
                functions.append(function)
    return functions


def is_entry(frame):
    """None if it cannot be told: the file is gone."""
    if not frame.mapping.startswith("/"):
        return False
    ranges = entry_ranges(frame.mapping)
    if ranges is None:
        return None
    return any(first <= frame.address < end for first, end in ranges)


def false_roots(profile, comms):
    """(samples whose complete stack begins elsewhere than a thread can, {outermost frame: samples})"""
    frames = collections.Counter()
    for sample in profile.samples:
        if sample.labels.get("comm") not in comms or is_cut(sample):
            continue
        stack = user_frames(sample)
        if stack and is_entry(stack[0]) is False:
            name = "%s in %s" % (stack[0].function, os.path.basename(stack[0].mapping) or "?")
            frames[name] += sample.values[0]
    return sum(frames.values()), frames
