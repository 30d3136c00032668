# SPDX-License-Identifier: Apache-2.0
"""Where an ELF file has code, and the symbols of its functions, as readelf and nm tell."""

import collections
import random
import re
import subprocess

SECTION = re.compile(
    r"\] (?P<name>\S+) +(?:PROGBITS|NOBITS) +(?P<address>[0-9a-f]+) [0-9a-f]+ (?P<size>[0-9a-f]+) "
    r"[0-9a-f]+ +(?P<flags>\w*) ")


def _sections(path):
    listed = subprocess.run(
        ["readelf", "-SW", path], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return SECTION.finditer(listed.stdout)


def section_sizes(path):
    """Names and sizes in the file."""
    return [(section["name"], int(section["size"], 16)) for section in _sections(path)]


def code_ranges(path):
    """Of its sections with code, but for those that linkers make: stubs of calls."""
    return [
        (int(section["address"], 16), int(section["address"], 16) + int(section["size"], 16))
        for section in _sections(path)
        if "X" in section["flags"] and not section["name"].startswith(".plt")
    ]


class Symbols:
    """Of a file's functions."""

    def __init__(self, path):
        listed = subprocess.run(
            ["readelf", "-sW", path], check=True, stdout=subprocess.PIPE, text=True,
            errors="backslashreplace")
        self.begins = collections.defaultdict(set)  # by name
        self.bounds = set()
        for line in listed.stdout.splitlines():
            words = line.split()
            if len(words) < 8 or words[3] not in ("FUNC", "IFUNC") or not words[6].isdigit():
                continue
            begin, size = int(words[1], 16), int(words[2], 0)
            self.begins[words[7].split("@")[0]].add(begin)
            self.bounds.update((begin, begin + size))

    def of_same_code(self, one, another):
        """Whether these are two names of one function."""
        return not self.begins[one].isdisjoint(self.begins[another])


def addresses_in(path, symbols, count):
    """Of its code: at random, and the first and last ones of functions."""
    ranges = code_ranges(path)
    whole = sum(end - begin for begin, end in ranges)
    chosen = random.Random(1)
    found = {
        address for bound in symbols.bounds for address in (bound - 1, bound)
        if any(begin <= address < end for begin, end in ranges)
    }
    found = set(chosen.sample(sorted(found), min(len(found), count // 2)))
    for begin, end in ranges:
        share = min(end - begin, (end - begin) * (count - len(found)) // whole)
        found.update(chosen.sample(range(begin, end), share))
    return sorted(found)
