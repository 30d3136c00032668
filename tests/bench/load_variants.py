# SPDX-License-Identifier: Apache-2.0
"""The variants of bench_load that can be unwound in one way only, and whether they are what their
names say."""

import re
import subprocess

import recorders

BY_FRAME_POINTER = "bench_load_fp"
BY_CFI = "bench_load_cfi"
# Those whose frames are measured.
FUNCTIONS = ("bottom", "small_frame", "large_frame", "run")

FDE = re.compile(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)")
# A row of readelf's: an address and the canonical frame address.
ROW_BY_FRAME_POINTER = re.compile(r"[0-9a-f]{16} (rbp|x29)[+-]")


def covered(frames, symbols):
    """Which of FUNCTIONS have call frame information, by the text of `readelf
    --debug-dump=frames-interp` and of `nm`."""
    ranges = [[int(address, 16) for address in match] for match in FDE.findall(frames)]
    addresses = {}
    for line in symbols.splitlines():
        address, _, name = line.strip().rpartition(" ")
        if name in FUNCTIONS:
            addresses[name] = int(address.split()[0], 16)
    return {
        name
        for name, address in addresses.items()
        if any(low <= address < high for low, high in ranges)
    }


def _output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def require_as_named(cfi_program, frame_pointer_program):
    """Failure unless the one has call frame information and no frame pointers, the other none."""
    frames = _output_of("readelf", "--debug-dump=frames-interp", cfi_program)
    if covered(frames, _output_of("nm", cfi_program)) != set(FUNCTIONS):
        raise recorders.Failure("%s lacks call frame information" % cfi_program)
    if ROW_BY_FRAME_POINTER.search(frames):
        raise recorders.Failure("%s has frame pointers" % cfi_program)
    frames = _output_of("readelf", "--debug-dump=frames-interp", frame_pointer_program)
    if covered(frames, _output_of("nm", frame_pointer_program)):
        raise recorders.Failure("%s has call frame information" % frame_pointer_program)
