# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells about BPF programs, maps and CPUs, without bpftool or libbpf."""

import ctypes
import os
import platform
import re
import time

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_BPF_PROG_GET_FD_BY_ID = 13
_BPF_ENABLE_STATS = 32
_PERF_EVENT_PROGRAM = "7"  # BPF_PROG_TYPE_PERF_EVENT

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, argument):
    """bpf(2) with a union whose first word is `argument`; returns the descriptor."""
    attributes = (ctypes.c_uint32 * 32)(argument)
    fd = _libc.syscall(
        _BPF_SYSCALL, command, ctypes.byref(attributes), ctypes.sizeof(attributes)
    )
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, "bpf(%d): %s" % (command, os.strerror(error)))
    return fd


def enable_run_statistics():
    """The kernel books runs and time of all BPF programs until this process ends."""
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


class SamplingProgram:
    """A perf_event program of another process, held so that its books outlive it."""

    def __init__(self, program_id):
        self._fd = _bpf(_BPF_PROG_GET_FD_BY_ID, program_id)

    def runs(self):
        return int(_fdinfo("self", self._fd)["run_cnt"])

    def run_ns(self):
        return int(_fdinfo("self", self._fd)["run_time_ns"])

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


def kernel_memory_of(pid):
    """Bytes that the kernel holds for the process: its BPF maps and its perf event buffers."""
    maps = {}
    for fd in _descriptors(pid):
        info = _fdinfo(pid, fd)
        if "map_id" in info:
            maps[info["map_id"]] = int(info["memlock"])
    buffers = 0
    with open("/proc/%d/maps" % pid) as file:
        for line in file:
            if "[perf_event]" in line:
                start, end = line.split()[0].split("-")
                buffers += int(end, 16) - int(start, 16)
    return sum(maps.values()) + buffers


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
