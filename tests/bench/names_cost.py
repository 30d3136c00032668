# SPDX-License-Identifier: Apache-2.0
"""What naming addresses takes, beside other tools that do it on the host."""

import dataclasses
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import elf_code  # noqa: E402
import perf_data  # noqa: E402
import tables  # noqa: E402

ADDRESSES = 10000
REPEAT = 5  # windows with the same addresses
SECONDS = 120  # for a tool to answer
# What is needed for functions, inlined calls and lines.
SECTIONS = ("info", "types", "abbrev", "line", "str", "line_str", "ranges", "rnglists", "aranges", "addr",
            "str_offsets")  # fmt: skip
PERF_SCRIPT = "perf script"
# They take addresses from their input, but for perf, which takes a recording.
TOOLS = {
    "eu-addr2line": ["eu-addr2line", "-f", "-i", "-e"],
    "llvm-symbolizer": ["llvm-symbolizer", "--inlines", "--functions=linkage", "--no-demangle", "-e"],
    PERF_SCRIPT: ["perf", "script", "--inline", "-F", "ip,sym,srcline", "-i"],
}
TARGET_WARM_US = 0.3
TARGET_MEGABYTES_A_SECOND = 300
TARGET_GROWTH = 5  # MB for each GB of debug information


@dataclasses.dataclass
class Run:
    """One of another tool."""

    seconds: float = None  # None: it took too long
    peak: int = 0


@dataclasses.dataclass
class FileCost:
    title: str
    debug_bytes: int
    ours: dict  # what name_addresses --cost says
    first: float  # seconds from its start until it has named one address by all it knows
    others: dict  # by the tool: Runs with one address, and with all


def files(programs, more):
    """Titles and paths of what there is here: the largest of what a machine runs, with and without
    debug information."""
    candidates = [
        ("libLLVM-14, no DWARF", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"),
        ("node", os.path.realpath(shutil.which("node") or "")),
        *(("rustc's driver", path) for path in glob.glob(
            os.path.expanduser("~/.rustup/toolchains/stable*/lib/librustc_driver*.so"))),
        ("pyrometer, -O2 -g1", os.path.join(programs, "..", "..", "pyrometer")),
        *((os.path.basename(path), path) for path in more),
    ]  # fmt: skip
    return [(title, path) for title, path in candidates if os.path.isfile(path)]


def measure(programs, more, say):
    costs = []
    for title, path in files(programs, more):
        say("names in " + title)
        costs.append(measure_file(os.path.join(programs, "..", "names", "name_addresses"), title, path))
    return costs


def measure_file(name_addresses, title, path):
    addresses = chosen_addresses(path)
    ours = json.loads(run([name_addresses, "--cost", "--repeat", str(REPEAT), path], addresses)[0][-1])
    began = time.monotonic()
    run([name_addresses, path], addresses[:1])
    first = time.monotonic() - began
    others = {tool: [timed(tool, path, addresses[:1]), timed(tool, path, addresses)] for tool in TOOLS}
    return FileCost(title, debug_bytes_of(path), ours, first, others)


def chosen_addresses(path):
    ranges = elf_code.code_ranges(path)
    chosen = random.Random(1)
    sizes = [end - begin for begin, end in ranges]
    picked = chosen.choices(ranges, sizes, k=ADDRESSES)
    return [chosen.randrange(begin, end) for begin, end in picked]


def debug_bytes_of(path):
    return sum(size for name, size in elf_code.section_sizes(path) if name in
               {".debug_" + section for section in SECTIONS})  # fmt: skip


def run(command, addresses):
    """Lines of output, and the peak of resident memory."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as printed:
        given.writelines("%#x\n" % address for address in addresses)
        given.seek(0)
        process = subprocess.Popen(["timeout", str(SECONDS), *command], stdin=given, stdout=printed,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        printed.seek(0)
        return printed.read().splitlines(), usage.ru_maxrss * 1024


def timed(tool, path, addresses):
    with tempfile.NamedTemporaryFile("wb") as recording:
        given = path
        if tool == PERF_SCRIPT:
            perf_data.write(recording, path, addresses)
            recording.flush()
            given = recording.name
        began = time.monotonic()
        try:
            peak = run([*TOOLS[tool], given], addresses)[1]
        except subprocess.CalledProcessError:
            return Run()
        return Run(time.monotonic() - began, peak)


def indexing_seconds(cost):
    """For debug information: symbols were there before."""
    return cost.ours["reading_seconds"] - cost.ours["symbols_seconds"]


def megabytes_a_second(cost):
    return cost.debug_bytes / 1e6 / indexing_seconds(cost) if cost.debug_bytes else None


def growth(cost):
    """MB of our own memory for each GB of debug information."""
    return cost.ours["peak_growth"] / 1e6 / (cost.debug_bytes / 1e9) if cost.debug_bytes else None


def microseconds(seconds):
    return seconds / ADDRESSES * 1e6


def report(costs):
    rows = [["file", "debug MB", "symbols s", "indexing s", "MB/s", "reader CPU s", "reader MB", "ours MB",
             "per GB", "kept MB", "spilled MB"], None]  # fmt: skip
    for cost in costs:
        ours = cost.ours
        rows.append([
            cost.title, tables.megabytes(cost.debug_bytes), "%.2f" % ours["symbols_seconds"],
            "%.2f" % indexing_seconds(cost), number(megabytes_a_second(cost), "%.0f"),
            "%.2f" % ours["reader_cpu_seconds"], tables.megabytes(ours["reader_peak"]),
            tables.megabytes(ours["peak_growth"]), number(growth(cost)),
            tables.megabytes(ours["symbols_in_memory"] + ours["sources_in_memory"]),
            tables.megabytes(ours["symbols_spilled"] + ours["sources_spilled"])])  # fmt: skip
    return tables.table(rows)


def report_addresses(costs):
    rows = [["file", "found us", "again us", "named us", "again us", "first answer s"], None]
    for cost in costs:
        ours = cost.ours
        cells = [cost.title]
        cells += [
            number(microseconds(ours[key]) if key in ours else None, "%.2f")
            for key in ("first_finding_seconds", "repeated_finding_seconds", "first_naming_seconds",
                        "repeated_naming_seconds")]  # fmt: skip
        cells.append("%.2f" % cost.first)
        rows.append(cells)
    return tables.table(rows)


def report_others(costs):
    rows = [["file", "tool", "first answer s", "ratio", "us", "ratio", "MB"], None]
    for cost in costs:
        for tool, (one, all_of_them) in cost.others.items():
            rows.append([cost.title, tool, *compared(cost, one, all_of_them)])
    return tables.table(rows)


def compared(cost, one, all_of_them):
    """Of another tool: its first answer, a further address, each with the ratio to ours."""
    if one.seconds is None or all_of_them.seconds is None:
        return ["-"] * 5
    each = max(0, microseconds(all_of_them.seconds - one.seconds))
    ours = microseconds(cost.ours.get("first_naming_seconds", cost.ours["first_finding_seconds"]))
    return ["%.2f" % one.seconds, number(one.seconds / cost.first), "%.1f" % each,
            number(each / ours if ours else None), tables.megabytes(all_of_them.peak)]  # fmt: skip


def number(value, form="%.1f"):
    return "-" if value is None else form % value


def verdicts(costs):
    """What is measured, its figure, its target and unit."""
    with_lines = [cost for cost in costs if cost.debug_bytes > 10e6]
    named = [c.ours["repeated_naming_seconds"] for c in costs if "repeated_naming_seconds" in c.ours]
    lines = [("an address that is known, at most", microseconds(max(named)), TARGET_WARM_US, "us")]
    if with_lines:
        lines += [
            ("seconds for 300 MB of debug information, at most",
             max(TARGET_MEGABYTES_A_SECOND / megabytes_a_second(c) for c in with_lines), 1, "s"),
            ("our own memory, for each GB of it, at most", max(map(growth, with_lines)), TARGET_GROWTH, "MB"),
        ]  # fmt: skip
    return lines
