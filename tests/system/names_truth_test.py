# SPDX-License-Identifier: Apache-2.0
"""Functions, inlined calls and source lines are those that other tools tell of the same addresses,
and a program's own runtime."""

import bisect
import collections
import concurrent.futures
import ctypes
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import elf_code
import name_agreement
import name_sources
from pyrometer_harness import CPUS, main, skip_or_fail

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "programs")
ADDRESSES = 10000  # of each program
LEAST_SHARE = 0.999

GCC = ["g++", "gcc"]
CLANG = ["clang++", "clang"]
# Ways to build the program of tests/programs/inlined: compilers for C++ and C, and their options.
BUILDS = {
    "gcc, DWARF 2": (GCC, "-O2 -gdwarf-2"),
    "gcc, DWARF 3": (GCC, "-O2 -gdwarf-3"),
    "gcc, DWARF 4": (GCC, "-O2 -gdwarf-4"),
    "gcc, DWARF 5": (GCC, "-O2 -gdwarf-5"),
    "gcc, unoptimized": (GCC, "-O0 -g"),
    "gcc, at link time": (GCC, "-O3 -g -flto"),
    "gcc, sections dropped": (GCC, "-O2 -g -ffunction-sections -Wl,--gc-sections"),
    "gcc, compressed": (GCC, "-Os -g -gz"),
    "gcc, type units": (GCC, "-O2 -g -fdebug-types-section"),
    "gcc, fixed addresses": (GCC, "-O2 -g -no-pie -fno-pie"),
    "gcc, lines only": (GCC, "-O2 -g1"),
    "clang, DWARF 2": (CLANG, "-O2 -gdwarf-2"),
    "clang, DWARF 4": (CLANG, "-O2 -gdwarf-4"),
    "clang, DWARF 5": (CLANG, "-O3 -gdwarf-5"),
    "clang, lines only": (CLANG, "-O2 -gline-tables-only -ffunction-sections -Wl,--gc-sections"),
}


def build(directory, name):
    """The program's path."""
    (cxx, c), flags = BUILDS[name]
    output = os.path.join(directory, re.sub(r"\W+", "_", name))
    sources = os.path.join(SOURCES, "inlined")
    objects = []
    for file, compiler in (("inlined.cc", [cxx, "-std=c++20"]), ("ledger.cc", [cxx, "-std=c++20"]),
                           ("plain_c.c", [c])):  # fmt: skip
        objects.append(f"{output}.{file}.o")
        subprocess.run([*compiler, *flags.split(), "-c", os.path.join(sources, file), "-o", objects[-1]],
                       check=True)
    subprocess.run([cxx, *flags.split(), *objects, "-o", output], check=True)
    return output


def another_symbol(symbols):
    return name_agreement.Spelling(
        "name", "of another symbol", "the same code has several, and any will do",
        lambda mine, other: symbols.of_same_code(mine.name, other.name))


# Files that are compiled in a directory whose name is mapped to a relative one.
REPEATED_DIRECTORY = name_agreement.Spelling(
    "file", "in no directory that there is",
    "DWARF 5 tells the directory of the unit twice if it is relative, and llvm-symbolizer joins both",
    lambda mine, other: any(
        other.file == mine.file[:at.start()] + "/" + mine.file for at in re.finditer("/", mine.file)))

BETWEEN_FUNCTIONS = name_agreement.Rule(
    "between functions", "llvm-symbolizer knows of none, and takes the line of what comes before",
    lambda mine, other: not mine and [frame.name for frame in other] == [""])


def compare(title, path, debug=None):
    """An Agreement of ours and llvm-symbolizer's names of addresses in `path`."""
    symbols = elf_code.Symbols(debug or path)
    addresses = elf_code.addresses_in(path, symbols, ADDRESSES)
    options = ["--debug", debug] if debug else []
    agreement = name_agreement.Agreement(title, [
        another_symbol(symbols), REPEATED_DIRECTORY, BETWEEN_FUNCTIONS])
    agreement.compare(
        addresses, name_sources.ours(path, addresses, *options),
        name_sources.llvm_symbolizer(debug or path, addresses))
    return agreement


class NamesTruth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool, package in (("llvm-symbolizer", "llvm"), ("addr2line", "binutils")):
            if not shutil.which(tool):
                skip_or_fail(f"no {tool} (Debian package {package}) to compare with")
        cls.directory = tempfile.mkdtemp(prefix="pyrometer-names-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)

    def check(self, agreement):
        print(agreement.report(), flush=True)
        self.assertGreaterEqual(agreement.share(), LEAST_SHARE, agreement.title)

    def test_of_cxx_programs(self):
        def compared(name):
            return compare(name, build(self.directory, name))

        with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
            for name, agreement in zip(BUILDS, pool.map(compared, BUILDS)):
                with self.subTest(name):
                    self.check(agreement)

    def test_of_a_library_with_a_separate_debug_file(self):
        for name in ("libc.so.6", "libm.so.6"):
            path = mapped_file(name)
            debug = debug_file_of(path)
            if not os.path.exists(debug):
                skip_or_fail(f"no debug file of {path} (Debian package libc6-dbg)")
            with self.subTest(name):
                self.check(compare(name, path, debug))

    def test_of_a_rust_program(self):
        if not shutil.which("rustc"):
            self.skipTest("no rustc, which is too large to be set up, to build a program with")
        # Newer compilers take `legacy` as an unstable option only.
        environment = dict(os.environ, RUSTC_BOOTSTRAP="1")
        for mangling in ("legacy", "v0"):
            path = os.path.join(self.directory, "closures_" + mangling)
            subprocess.run(
                ["rustc", "-O", "-g", "-Z", "unstable-options", "-C",
                 "symbol-mangling-version=" + mangling, "-o", path,
                 os.path.join(SOURCES, "inlined", "closures.rs")], check=True, env=environment)
            with self.subTest(mangling):
                self.check(compare("Rust, mangled as " + mangling, path))

    def test_of_a_go_program(self):
        if not shutil.which("go"):
            skip_or_fail("no go (Debian package golang-go) to build a program with")
        plain = build_go(self.directory, "plain")
        stripped = build_go(self.directory, "stripped", "-ldflags=-s -w")
        self.assertEqual(elf_code.code_ranges(plain), elf_code.code_ranges(stripped))
        entry = elf_code.Symbols(plain).begins["main.main"]
        for title, path in (("Go", plain), ("Go, stripped", stripped)):
            truth = go_truth(path, *entry)
            addresses = sorted(truth)
            named = name_sources.ours(path, addresses)
            # Who tells no inlined calls is held against a part of what we say.
            for whose, told, mine in (
                ("its own runtime", [truth[a] for a in addresses], [n[:1] for n in named]),
                ("go tool addr2line", name_sources.go_addr2line(plain, addresses),
                 [n and (n[0]._replace(name=n[-1].name),) for n in named]),
                ("llvm-symbolizer", name_sources.llvm_symbolizer(plain, addresses), named)):  # fmt: skip
                with self.subTest(title, whose=whose):
                    agreement = name_agreement.Agreement(f"{title}, {whose}", GO_RULES)
                    agreement.compare(addresses, map(as_runtime, mine), map(as_runtime, told))
                    self.check(agreement)

    def test_of_the_kernel(self):
        functions = kernel_functions()
        if not functions:
            self.skipTest("the kernel hides its symbols")
        begins = sorted(functions)
        chosen = random.Random(1)
        bounds = [a for begin, end in zip(begins, begins[1:]) for a in (begin, end - 1)]
        addresses = chosen.sample(bounds, ADDRESSES // 2)
        text = [begin for begin in begins if functions[begin]]
        addresses += [chosen.randrange(text[0], text[-1]) for _ in range(ADDRESSES // 2)]
        wrong = []
        for address, frames in zip(addresses, name_sources.ours("", addresses, "--kernel")):
            names = functions[begins[bisect.bisect_right(begins, address) - 1]]
            if names != BPF and (frames[0].name if frames else "") not in (names or {""}):
                wrong.append((hex(address), frames, names))
        print(f"kernel: {len(wrong)} of {len(addresses)} differ from /proc/kallsyms",
              *wrong[:3], sep="\n  ", flush=True)
        self.assertLessEqual(len(wrong), len(addresses) * (1 - LEAST_SHARE), wrong[:5])


def mapped_file(name):
    """The path of a library that this process has mapped."""

    ctypes.CDLL(name)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if line.rstrip().endswith("/" + name))


def debug_file_of(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, stdout=subprocess.PIPE, text=True)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]
    return f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"


# The kernel tells where its programs begin, and not where they end; and others' come and go.
BPF = {"[bpf]"}


def kernel_functions():
    """The names of the functions at each address where the kernel has a symbol of any kind."""
    functions = collections.defaultdict(set)
    with open("/proc/kallsyms", encoding="utf-8") as symbols:
        for line in symbols:
            address, kind, name, *module = line.split()
            names = functions[int(address, 16)]
            if set(module) == BPF:
                names |= BPF
            elif kind in "tTwW" and name not in ("_etext", "_einittext"):
                names.add(name)
    return functions if len(functions) > 1 else {}


def build_go(directory, name, *options):
    """The program of tests/programs/go_frames."""
    path = os.path.join(directory, "frames_" + name)
    environment = dict(os.environ, HOME=os.environ.get("HOME", "/root"), GOTOOLCHAIN="local", GOFLAGS="")
    subprocess.run(["go", "build", *options, "-o", path], check=True, env=environment,
                   cwd=os.path.join(SOURCES, "go_frames"))
    return path


def go_truth(path, entry):
    """What the program's runtime takes addresses for: the innermost frame of each. `entry`: of
    main.main."""
    said = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True)
    truth = {}
    for line in said.stdout.splitlines():
        kind, *words = line.split("\t")
        if kind == "address":
            offset, name, file, number, _is_inlined = words
            truth[entry + int(offset)] = (name_sources.frame_of(name, file, int(number)),)
    return truth


def as_runtime(frames):
    """In the runtime's spelling: symbols tell all that is in brackets, and by which rules assembly is
    called."""
    return tuple(
        f._replace(name=re.sub(r"\[.*\]", "[...]", f.name).removesuffix(".abi0").replace("\u00b7", "."))
        for f in frames)  # fmt: skip


GO_RULES = [
    name_agreement.Rule(
        "between functions", "there is nothing; Go's tools take it for the end of what comes before",
        lambda mine, other: not mine and not other[0].line),
    name_agreement.Spelling(
        "name", "of the first function", "the name that is stored first is none to the runtime",
        lambda _mine, other: not other.name),
    name_agreement.Rule(
        "of no file", "llvm-symbolizer does not tell that a function is made up by the compiler",
        lambda mine, other: [f for f in mine if f.file != "<autogenerated>"]
        == [f for f in other if f.line] and [f.name for f in mine] == [f.name for f in other]),
]


if __name__ == "__main__":
    main()
