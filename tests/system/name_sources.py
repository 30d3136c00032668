# SPDX-License-Identifier: Apache-2.0
"""Who can name addresses: Pyrometer's own modules, and the tools that these are held against.

Each takes addresses in the ELF's own space and returns, for each, a tuple of frames, innermost
first; an empty one if it has no name.
"""

import collections
import json
import os
import re
import subprocess

NAME_ADDRESSES = os.environ.get("PYROMETER_NAME_ADDRESSES", "name_addresses")
SECONDS = 300
LONGEST = 4096  # of a name: the recorder cuts longer ones

# A function as the file has its name, the source file, and the line there; "" and 0: not known.
Frame = collections.namedtuple("Frame", "name file line")


def frame_of(name, file, line):
    """Of the spellings of a path (with `..` in it, say) one counts, and no version of a symbol."""
    return Frame(re.sub("@.*", "", name[:LONGEST]), os.path.normpath(file) if file and line else "", line)


def ours(path, addresses, *options):
    """As the recorder names them."""
    lines = _run([NAME_ADDRESSES, *options, *([path] if path else [])], addresses)
    return [tuple(frame_of(f["name"], f["file"], f["line"]) for f in json.loads(line)) for line in lines]


def llvm_symbolizer(path, addresses):
    """`path`: of the file that has the debug information."""
    lines = _run(["llvm-symbolizer", "--obj=" + path, "--inlines", "--functions=linkage",
                  "--no-demangle", "--output-style=JSON"], addresses)
    answers = []
    for line in lines:
        symbols = json.loads(line)["Symbol"]
        answers.append(_known(frame_of(s["FunctionName"], s["FileName"], s["Line"]) for s in symbols))
    return answers


def addr2line(path, addresses):
    """Of binutils. Likewise."""
    answers = []
    for answer in _answers(_run(["addr2line", "-a", "-f", "-i", "-e", path], addresses)):
        frames = []
        for name, place in zip(answer[::2], answer[1::2]):
            file, line = re.sub(r" \(discriminator \d+\)$", "", place).rsplit(":", 1)
            frames.append(frame_of(_text(name), _text(file), int(line) if line.isdigit() else 0))
        answers.append(_known(frames))
    return answers


def go_addr2line(path, addresses):
    """Of Go's tools, which name no inlined calls: the innermost line, in the function that has
    code of its own."""
    lines = _run(["go", "tool", "addr2line", path], addresses)
    answers = []
    for name, place in zip(lines[::2], lines[1::2]):
        file, line = place.rsplit(":", 1)
        answers.append(_known([frame_of(_text(name), _text(file), int(line) if line.isdigit() else 0)]))
    return answers


def _run(command, addresses):
    done = subprocess.run(
        command, input="".join("%#x\n" % address for address in addresses), check=True, text=True,
        stdout=subprocess.PIPE, timeout=SECONDS, errors="backslashreplace")
    return done.stdout.splitlines()


def _answers(lines):
    """What follows each line that repeats an address."""
    answers = []
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            answers.append([])
        else:
            answers[-1].append(line)
    return answers


def _text(text):
    return "" if text == "??" else text


def _known(frames):
    """Without a frame of which nothing is known."""
    return tuple(frame for frame in frames if frame.name or frame.line)
