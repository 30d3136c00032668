# SPDX-License-Identifier: Apache-2.0
"""Waiting for what will happen, with a deadline."""

import time


def wait_for(condition, what, seconds=60, pause=0.005, failure=AssertionError):
    """Polls until `condition()` holds, every `pause` seconds. Raises `failure`, which names `what`,
    after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise failure("waited %d s for %s" % (seconds, what))
        time.sleep(pause)
