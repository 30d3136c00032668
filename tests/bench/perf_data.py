# SPDX-License-Identifier: Apache-2.0
"""Makes up a recording of `perf record` with one sample at each of some addresses of a file.

Source of the format: tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2).
"""

import re
import struct
import subprocess

TYPE_SOFTWARE, CPU_CLOCK = 1, 0
SAMPLE_IP, SAMPLE_TID, SAMPLE_CALLCHAIN = 1, 2, 32
COMM, SAMPLE, MMAP2 = 3, 9, 10  # types of records
MISC_USER = 2
CONTEXT_USER = 2**64 - 512  # begins the part of a call chain that is in user mode
PROT_READ_EXECUTE, MAP_PRIVATE = 5, 2
HEADER_SIZE, ATTRIBUTE_SIZE, PAGE = 104, 112, 4096
PID = 4242
SHARED_BASE = 0x7F0000000000  # where what can be anywhere is

SEGMENT = re.compile(
    r"LOAD +0x(?P<offset>[0-9a-f]+) 0x(?P<address>[0-9a-f]+) 0x[0-9a-f]+ 0x(?P<size>[0-9a-f]+) "
    r"0x[0-9a-f]+ R.E")


def write(out, path, addresses):
    """Writes a recording of a process that has all of the ELF file `path` mapped. `addresses` are
    those in the file."""
    base, segments = _loaded(path)
    records = [_record(COMM, struct.pack("<II", PID, PID) + _text("program"))]
    for offset, address, size in segments:
        extra = address % PAGE
        records.append(_record(MMAP2, struct.pack(
            "<IIQQQIIQQII", PID, PID, base + address - extra, size + extra, offset - extra, 0, 0, 1, 0,
            PROT_READ_EXECUTE, MAP_PRIVATE) + _text(path)))  # fmt: skip
    for address in addresses:
        chain = (CONTEXT_USER, base + address)
        records.append(_record(SAMPLE, struct.pack(
            "<QIIQ2Q", base + address, PID, PID, len(chain), *chain)))  # fmt: skip
    data = b"".join(records)
    attribute_at = HEADER_SIZE
    data_at = attribute_at + ATTRIBUTE_SIZE + 16
    out.write(struct.pack("<8sQQ", b"PERFILE2", HEADER_SIZE, ATTRIBUTE_SIZE + 16))
    out.write(struct.pack("<6Q", attribute_at, ATTRIBUTE_SIZE + 16, data_at, len(data), 0, 0))
    out.write(bytes(32))  # no further features
    kinds = SAMPLE_IP | SAMPLE_TID | SAMPLE_CALLCHAIN
    attribute = struct.pack("<IIQQQ", TYPE_SOFTWARE, ATTRIBUTE_SIZE, CPU_CLOCK, 1, kinds)
    out.write(attribute.ljust(ATTRIBUTE_SIZE, b"\0"))
    out.write(struct.pack("<QQ", 0, 0))  # it has no ids
    out.write(data)


def _record(kind, body):
    return struct.pack("<IHH", kind, MISC_USER, 8 + len(body)) + body


def _text(text):
    """With its NUL, to a multiple of eight bytes."""
    encoded = text.encode()
    return encoded.ljust((len(encoded) // 8 + 1) * 8, b"\0")


def _loaded(path):
    """Where the file is, and of its executable segments offset, address and size."""
    listed = subprocess.run(["readelf", "-lW", path], check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True).stdout  # fmt: skip
    segments = [tuple(int(match[name], 16) for name in ("offset", "address", "size"))
                for match in SEGMENT.finditer(listed)]  # fmt: skip
    return (SHARED_BASE if "Elf file type is DYN" in listed else 0), segments
