# SPDX-License-Identifier: Apache-2.0
"""Waiting for what will happen, with a deadline."""

import os
import selectors
import time


def wait_for(condition, what, seconds=60, pause=0.005, failure=AssertionError):
    """Polls until `condition()` holds, every `pause` seconds. Raises `failure`, which names `what`,
    after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise failure("waited %d s for %s" % (seconds, what))
        time.sleep(pause)


def read_line(pipe, seconds=60):
    """The next line that comes through `pipe`, as bytes without its end, past the buffers of that
    file. None if it is over, or if nothing comes for `seconds`."""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            byte = os.read(pipe.fileno(), 1) if selector.select(seconds) else b""
            if not byte:
                return None
            line += byte
    return line[:-1]
