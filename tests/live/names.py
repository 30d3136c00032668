# SPDX-License-Identifier: Apache-2.0
"""Which user frames of a recording have a name, and why the others have none."""

import bisect
import collections
import dataclasses
import functools
import re
import subprocess

import stacks

STUB_SUFFIX = "@plt"
STUB = "[plt]"
MADE_UP = re.compile(r".+\+(0x[0-9a-f]+)$")
FUNCTIONS = ("FUNC", "IFUNC")

NAMED = "named"
STUBS = "stubs"  # of these: those called after what they jump to
BEGINNING = "only where the function begins"
ADDRESS = "in no function"
NAMELESS_STUB = "a stub of whatever"
NO_FILE = "no file"
REASONS = (BEGINNING, ADDRESS, NAMELESS_STUB, NO_FILE)


@dataclasses.dataclass
class Names:
    frames: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    leaves: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    unnamed: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # (function, mapping)
    missed: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # likewise
    named: set = dataclasses.field(default_factory=set)  # likewise
    unnamed_addresses: set = dataclasses.field(default_factory=set)  # (address, mapping)

    def distinct(self):
        """(how many different frames have no name, of how many)."""
        return len(self.unnamed), len(self.unnamed) + len(self.named)

    def distinct_by_address(self):
        """As distinct(), if each address without a name were a frame of its own."""
        return len(self.unnamed_addresses), len(self.unnamed_addresses) + len(self.named)

    def percent(self, reason, of=None):
        counts = self.frames if of is None else of
        total = sum(counts[key] for key in (NAMED, *REASONS))
        return 100 * counts[reason] / total if total else 0.0


def reason_of(frame):
    """NAMED, or why it has no name."""
    if frame.function == STUB:
        return NAMELESS_STUB
    if not frame.mapping.startswith("/") and frame.function == "[unknown]":
        return NO_FILE
    made_up = MADE_UP.match(frame.function)
    if not made_up:
        return NAMED
    return ADDRESS if int(made_up.group(1), 16) == frame.address else BEGINNING


@functools.cache
def functions_of(path):
    """The functions with sizes that the file's own symbol tables name: sorted [(first, end, name)]."""
    found = set()
    for tables in ((), ("-D",)):
        listing = subprocess.run(["readelf", "-W", "-s", *tables, path], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, errors="replace").stdout  # fmt: skip
        for line in listing.splitlines():
            words = line.split()
            if len(words) < 8 or words[3] not in FUNCTIONS or words[6] == "UND":
                continue
            first, size = int(words[1], 16), int(words[2], 0)
            if size:
                found.add((first, first + size, words[7].partition("@")[0]))
    return sorted(found)


def covering(path, address):
    """The name of a function of the file that has the address, or None."""
    functions = functions_of(path)
    at = bisect.bisect_right(functions, (address, float("inf")))
    # Functions in functions are few and short.
    for first, end, name in reversed(functions[max(0, at - 64) : at]):
        if first <= address < end:
            return name
    return None


def judge(profile, comms):
    """The Names of the processes with these names."""
    names = Names()
    for sample in profile.samples:
        if sample.labels.get("comm") not in comms:
            continue
        frames = stacks.user_frames(sample)
        count = sample.values[0]
        for frame in frames:
            reason = reason_of(frame)
            names.frames[reason] += count
            if frame is frames[-1]:
                names.leaves[reason] += count
            if frame.function.endswith(STUB_SUFFIX):
                names.frames[STUBS] += count
            if reason == NAMED:
                names.named.add((frame.function, frame.mapping))
                continue
            names.unnamed_addresses.add((frame.address, frame.mapping))
            names.unnamed[frame.function, frame.mapping] += count
            if frame.mapping.startswith("/") and covering(frame.mapping, frame.address):
                names.missed[frame.function, frame.mapping] += count
    return names
