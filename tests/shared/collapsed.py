# SPDX-License-Identifier: Apache-2.0
"""Collapsed stacks, as `pyrometer record` writes them."""

KERNEL_SUFFIX = "_[k]"  # of the name of a function of the kernel


def split(line):
    """(process name, frames root first, count) of a line. Raises ValueError if it is malformed."""
    stack, _, count = line.rstrip("\n").rpartition(" ")
    comm, *frames = stack.split(";")
    if not comm or not count.isdigit() or "" in frames:
        raise ValueError("not a line of collapsed stacks: %r" % line)
    return comm, frames, int(count)


def is_kernel(frame):
    return frame.endswith(KERNEL_SUFFIX)
