# SPDX-License-Identifier: Apache-2.0
"""Whether the stacks of bench_load that a recorder shows are those that it has: what truncated stacks
cost says nothing."""

import dataclasses
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import collapsed  # noqa: E402


@dataclasses.dataclass
class StackCheck:
    samples: int = 0  # of the load, with user frames
    whole: int = 0  # those with every frame
    user_frames: int = 0  # of one of these

    def add(self, frames, expected, count=1):
        """`frames`: function names, leaf first."""
        self.samples += count
        if frames[: len(expected)] == expected:
            self.whole += count
            self.user_frames = len(frames)

    def percent(self):
        return 100 * self.whole / self.samples if self.samples else 0.0


def expected_frames(depth, function):
    """The functions of `bench_load stack DEPTH`, leaf first, up to what its outermost one calls."""
    return ["bottom", *[function] * depth, "run"]


def check_folded(lines, comm, expected):
    """Of collapsed stacks as `pyrometer record` writes them. A stack that says that it was cut is
    not whole, wherever that was."""
    check = StackCheck()
    for line in lines:
        process, frames, count = collapsed.split(line)
        frames = [name for name in reversed(frames) if not collapsed.is_kernel(name)]
        if process == comm and frames:
            cut = frames[-1].startswith("[")
            check.add([] if cut else frames, expected, count)
    return check


# Of `perf script -F comm,ip,sym`: the comm, then a line for each frame, leaf first.
PERF_FRAME = re.compile(r"\s+([0-9a-f]+) (.*)$")
KERNEL_ADDRESS = 1 << 63


def check_perf_script(lines, comm, expected):
    check = StackCheck()
    process, frames = None, []
    for line in lines:
        if not line.strip():
            if process == comm and frames:
                check.add(frames, expected)
            process, frames = None, []
        elif match := PERF_FRAME.match(line):
            if int(match.group(1), 16) < KERNEL_ADDRESS:
                frames.append(match.group(2).rstrip())
        else:
            process = line.strip()
    if process == comm and frames:
        check.add(frames, expected)
    return check
