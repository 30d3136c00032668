# SPDX-License-Identifier: Apache-2.0
"""What more than one server wants of labels and of pprof profiles, and what we want of ourselves."""

import gzip
import re
import time
import zlib

import messages

LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")


class Refusal(Exception):
    """`kind` is for the protocol to translate: "invalid", "undecodable", "too_fast", ..."""

    def __init__(self, kind, reason, detail=""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.kind = kind
        self.reason = reason


def want(condition, reason, detail="", kind="invalid"):
    if not condition:
        raise Refusal(kind, reason, detail)


def check_labels(pairs, own, most=None):
    """(name, value) pairs of a series; `own`: the names with "__" that it must and may have."""
    names = [name for name, _ in pairs]
    want("__name__" in names, "missing_labels", "__name__")
    want(len(set(names)) == len(names), "duplicate_label_names", str(names))
    want(names == sorted(names), "unsorted_labels", str(names))
    want(most is None or len(names) <= most, "max_label_names_per_series", str(len(names)))
    for name, value in pairs:
        want(LABEL_NAME.match(name), "invalid_labels", repr(name))
        want(value, "empty_label_value", name)
        want(len(name.encode()) <= 1024, "label_name_too_long", name)
        want(len(value.encode()) <= 2048, "label_value_too_long", name)
        want(not name.startswith("__") or name in own, "reserved_label", name)
    for name in own:
        want(name in names, "missing_labels", name)


def series_text(pairs):
    return "{" + ",".join(f'{name}="{value}"' for name, value in sorted(pairs)
                          if not name.startswith("__")) + "}"


def unpack(data, truncated="undecodable"):
    """A profile's plain bytes; profiles may come plain."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except EOFError as error:
        raise Refusal(truncated, "malformed_profile", str(error)) from error
    except (OSError, zlib.error) as error:
        raise Refusal("undecodable", "malformed_profile", str(error)) from error


def check_pprof(plain, deepest=None, names_code_of=lambda build_id: False):
    """Every rule of the format and of the servers; returns the parsed profile. `names_code_of`: whether
    the server does that by itself, so that frames may come without functions."""
    try:
        profile = messages.parse("pprof", "pyrometer.pprof.Profile", plain)
    except messages.BadMessage as error:
        raise Refusal("undecodable", "malformed_profile", str(error)) from error
    bad = "malformed_profile"
    strings = profile.string_table
    want(strings and strings[0] == "", bad, "string_table[0]")
    want(len(set(strings)) == len(strings), bad, "a string twice")
    for table in (profile.mapping, profile.location, profile.function):
        want([row.id for row in table] == list(range(1, len(table) + 1)), bad, "ids not 1..N")
    check_functions(profile, bad, names_code_of)
    types = [(strings[t.type], strings[t.unit]) for t in profile.sample_type]
    want(types == [("samples", "count"), ("cpu", "nanoseconds")], bad, str(types))
    period = profile.period_type
    want((strings[period.type], strings[period.unit]) == types[1], bad, "period_type")
    want(profile.period > 0, bad, "period")
    want(profile.duration_nanos > 0, bad, "duration_nanos")
    now = time.time()
    want(now - 3600 < profile.time_nanos / 1e9 < now + 600, "not_in_ingestion_window")
    check_samples(profile, bad, deepest)
    return profile


def check_functions(profile, bad, names_code_of):
    strings = profile.string_table
    for function in profile.function:
        for index in (function.name, function.system_name, function.filename):
            want(0 <= index < len(strings), bad, "string index")
        want(strings[function.name], bad, "a function without a name")
        want(len(strings[function.name].encode()) <= 65535, bad, "a name too long")
    for location in profile.location:
        want(location.mapping_id <= len(profile.mapping), bad, "mapping id")
        if not location.line and location.mapping_id:
            mapping = profile.mapping[location.mapping_id - 1]
            want(names_code_of(strings[mapping.build_id]), bad, "a frame without a function")
            # With a range the server would take the address for one in a process.
            want(mapping.memory_start == mapping.memory_limit == mapping.file_offset == 0, bad,
                 "a range of a mapping of ELF addresses")
            continue
        want(location.line, bad, "a frame without a function")
        want(location.mapping_id or not location.address, bad, "an address without a mapping")
        for line in location.line:
            want(1 <= line.function_id <= len(profile.function), bad, "function id")
    for mapping in profile.mapping:
        want(max(mapping.filename, mapping.build_id) < len(strings), bad, "string index")


def check_samples(profile, bad, deepest):
    want(profile.sample, bad, "no samples")
    stacks = set()
    for sample in profile.sample:
        want(len(sample.value) == len(profile.sample_type), bad, "values do not match types")
        want(min(sample.value) > 0, bad, f"values {list(sample.value)}")
        want(sample.location_id, bad, "a sample without frames")
        want(deepest is None or len(sample.location_id) <= deepest, bad, "too deep")
        for index in sample.location_id:
            want(1 <= index <= len(profile.location), bad, "location id")
        want(not sample.label, "sample_labels", "labels belong to the series")
        stacks.add(tuple(sample.location_id))
    want(len(stacks) == len(profile.sample), bad, "a stack twice")


def ticks_of(profile):
    return sum(sample.value[0] for sample in profile.sample)
