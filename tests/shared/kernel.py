# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells about BPF programs, maps and CPUs, without libbpf."""

import ctypes
import functools
import json
import os
import platform
import re
import subprocess
import time

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_BPF_MAP_LOOKUP_ELEM = 1
_BPF_PROG_GET_FD_BY_ID = 13
_BPF_MAP_GET_FD_BY_ID = 14
_BPF_ENABLE_STATS = 32
_PERF_EVENT_PROGRAM = "7"  # BPF_PROG_TYPE_PERF_EVENT

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, *words):
    """bpf(2) with a union that begins with these words of 64 bits (a number of 32 may be the first);
    returns what it does: a descriptor, or 0."""
    attributes = (ctypes.c_uint64 * 16)(*words)
    fd = _libc.syscall(
        _BPF_SYSCALL, command, ctypes.byref(attributes), ctypes.sizeof(attributes)
    )
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, "bpf(%d): %s" % (command, os.strerror(error)))
    return fd


def enable_run_statistics():
    """The kernel books runs and time of all BPF programs until what it returns is closed."""
    return _bpf(_BPF_ENABLE_STATS, 0)


def _fdinfo(pid, fd):
    """The fields of /proc/PID/fdinfo/FD, empty if it is gone."""
    try:
        with open("/proc/%s/fdinfo/%s" % (pid, fd)) as file:
            return dict(line.rstrip("\n").split(":", 1) for line in file if ":" in line)
    except OSError:
        return {}


def _descriptors(pid):
    try:
        return os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return []


def _bpftool(*words):
    command = ["bpftool", "--json", *map(str, words)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _possible_cpus():
    with open("/sys/devices/system/cpu/possible") as file:
        return int(re.split("[-,]", file.read().strip())[-1]) + 1


def _counters(map_id, entries):
    """Of each entry of a per-CPU array of 64-bit counters the sum over the CPUs."""
    fd = _bpf(_BPF_MAP_GET_FD_BY_ID, map_id)
    try:
        key = ctypes.c_uint32()
        values = (ctypes.c_uint64 * _possible_cpus())()
        sums = []
        for key.value in range(entries):
            _bpf(_BPF_MAP_LOOKUP_ELEM, fd, ctypes.addressof(key), ctypes.addressof(values))
            sums.append(sum(values))
        return sums
    finally:
        os.close(fd)


class SamplingProgram:
    """A perf_event program of another process, held so that its books outlive it."""

    def __init__(self, program_id):
        self._id = program_id
        self._fd = _bpf(_BPF_PROG_GET_FD_BY_ID, program_id)

    def runs(self):
        return int(_fdinfo("self", self._fd)["run_cnt"])

    def run_ns(self):
        return int(_fdinfo("self", self._fd)["run_time_ns"])

    @functools.cached_property
    def _maps(self):
        """{name: what bpftool says of it}"""
        ids = set(_bpftool("prog", "show", "id", self._id)["map_ids"])
        return {known.get("name", ""): known for known in _bpftool("map", "show") if known["id"] in ids}

    def counters(self, name):
        """The values of the per-CPU array of that name."""
        known = self._maps[name]
        return _counters(known["id"], known["max_entries"])

    def variables(self):
        """{name: value} of the global variables that begin as zero."""
        for name, known in self._maps.items():
            if name.endswith(".bss"):
                (entry,) = _bpftool("map", "dump", "id", known["id"])
                (section,) = entry["formatted"]["value"].values()
                return {name: value for variable in section for name, value in variable.items()}
        return {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)


def sampling_program_of(pid):
    """The id of the perf_event program that the process has loaded, or None."""
    for fd in _descriptors(pid):
        info = _fdinfo(pid, fd)
        if info.get("prog_type", "").strip() == _PERF_EVENT_PROGRAM:
            return int(info["prog_id"])
    return None


def perf_events_of(pid):
    """How many perf events the process has open."""
    count = 0
    for fd in _descriptors(pid):
        try:
            count += "[perf_event]" in os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            pass
    return count


def _maps_of(pid):
    """{id: fields of its fdinfo} of the BPF maps that the process holds."""
    maps = {}
    for fd in _descriptors(pid):
        info = _fdinfo(pid, fd)
        if "map_id" in info:
            maps[int(info["map_id"])] = info
    return maps


def _maps_named(pid, name):
    """Those of _maps_of() that have this name."""
    own = _maps_of(pid)
    named = (known["id"] for known in _bpftool("map", "show") if known.get("name") == name)
    return {map_id: own[map_id] for map_id in named if map_id in own}


def keys_of(pid, name):
    """The keys, numbers, in the BPF map of that name that the process holds."""
    (map_id,) = _maps_named(pid, name)
    entries = _bpftool("map", "dump", "id", map_id)
    return [int.from_bytes(bytes(int(byte, 16) for byte in entry["key"]), "little") for entry in entries]


def kernel_memory_of(pid):
    """Bytes that the kernel holds for the process: its BPF maps and its perf event buffers.

    Linux 5.11 to 6.3 books for a map only its keys and values: for a ring buffer nothing."""
    maps = {map_id: int(info["memlock"]) for map_id, info in _maps_of(pid).items()}
    buffers = 0
    with open("/proc/%d/maps" % pid) as file:
        for line in file:
            if "[perf_event]" in line:
                start, end = line.split()[0].split("-")
                buffers += int(end, 16) - int(start, 16)
    return sum(maps.values()) + buffers


def bytes_of_maps_of(pid, name):
    """Of kernel_memory_of() the part that is maps of this name."""
    return sum(int(info["memlock"]) for info in _maps_named(pid, name).values())


def peak_resident_of(pid):
    """Bytes, and 0 for one that has ended. Unlike ru_maxrss, it knows nothing of the program that started it."""
    return _status_of(pid, "VmHWM:") * 1024


def anonymous_memory_of(pid):
    """Resident bytes of heap and stacks now, and 0 for one that has ended."""
    return _status_of(pid, "RssAnon:") * 1024


def threads_of(pid):
    """Number of threads, and 0 for one that has ended."""
    return _status_of(pid, "Threads:")


def descendants_of(pid):
    """Number of its children, their children and so on."""
    return len(processes_below(pid))


def processes_below(pid):
    """The pids of its children, their children and so on."""
    parents = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % number) as file:
                parents[int(number)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has just ended
    seen = {pid}
    while new := {child for child, parent in parents.items() if parent in seen} - seen:
        seen |= new
    return seen - {pid}


def _status_of(pid, field):
    try:
        with open("/proc/%d/status" % pid) as file:
            return next((int(line.split()[1]) for line in file if line.startswith(field)), 0)
    except OSError:
        return 0


def mapped_kernel_memory_of(pid):
    """Bytes of its resident set that kernel_memory_of() counts too."""
    total, counts = 0, False
    with open("/proc/%d/smaps" % pid) as file:
        for line in file:
            if re.match(r"[0-9a-f]+-", line):
                counts = "bpf-map" in line or "[perf_event]" in line
            elif counts and line.startswith("Rss:"):
                total += 1024 * int(line.split()[1])
    return total


def bpf_maps_of(pid):
    """Number of BPF maps that the process holds."""
    return len(_maps_of(pid))


def files_of(pid):
    """Number of files that the process has open."""
    return len(_descriptors(pid))


def cpu_seconds_of(pid):
    """User and system time of a process and its ended threads, exact to the nanosecond.

    Not that of its children: none of the recorders has any while it samples.
    """
    schedule_clock = 2  # CPUCLOCK_SCHED; the id is made as clock_getcpuclockid(3) makes it
    return time.clock_gettime(~pid << 3 | schedule_clock)


def machine_cpu_seconds():
    """Busy and stolen seconds of all CPUs since boot."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    hertz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hertz, steal / hertz


def cpu_model():
    with open("/proc/cpuinfo") as file:
        match = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    return match.group(1) if match else platform.machine()
