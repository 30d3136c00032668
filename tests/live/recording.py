# SPDX-License-Identifier: Apache-2.0
"""One recording of the whole machine with `pyrometer record`, and what it took."""

import argparse
import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for sibling in ("shared", "system"):
    sys.path.append(os.path.join(ROOT, "tests", sibling))

import kernel  # noqa: E402  (tests/shared)
import pprof_reader  # noqa: E402  (tests/system)
from pyrometer_harness import Accounting  # noqa: E402

SKIPPED = 77
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
DEADLINE_SECONDS = 120


class Failure(Exception):
    """The recorder failed; the text says how."""


@dataclasses.dataclass
class Cost:
    """CPU time in seconds, memory in bytes. The time that the kernel spends in ticks is in none of
    them: it is booked to whom the tick hit."""

    seconds: float  # that it sampled
    sampling_cpu: float  # while it sampled
    total_cpu: float  # with its start and its end, and its children
    ending: float  # seconds from SIGINT to its end
    resident: int  # peak, without mapped kernel memory
    kernel_memory: int  # maps and perf buffers
    tick_ns: float  # mean run of the BPF program, with what the kernel takes for measuring it
    ticks: int  # runs of that program, by the kernel's own books

    def sampling_percent(self):
        return 100 * self.sampling_cpu / self.seconds


@dataclasses.dataclass
class Recording:
    folded: str
    profile: pprof_reader.Profile
    accounting: Accounting
    cost: Cost
    said: str  # on standard error


def argument_parser(description, seconds, frequency):
    """One that knows the arguments of every script that records, with these defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pyrometer", default=os.environ.get("PYROMETER_BIN", default_program()),
                        help="the program under test (%(default)s)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=seconds, help="of each recording (%(default)s)")
    parser.add_argument("--frequency", type=int, default=frequency, help="in Hz (%(default)s)")
    parser.add_argument("--keep", metavar="DIRECTORY", help="where to leave the recorded files")
    return parser


def arguments(parser):
    """Those of the command line. Ends the program with SKIPPED if nothing can be recorded here."""
    chosen = parser.parse_args()
    if reason := why_not(chosen.pyrometer):
        print("skipped: " + reason, file=sys.stderr)
        sys.exit(SKIPPED)
    return chosen


def default_program():
    return os.path.join(ROOT, "build", "release", "pyrometer")


def why_not(program):
    """Why nothing can be recorded here, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not shutil.which(program):
        return "no %s: run scripts/build release" % program
    return None


def _wait_until_sampling(process):
    """Returns its kernel.SamplingProgram, which has run by then."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        # A perf event for each CPU, and the sideband's beside them.
        program = kernel.sampling_program_of(process.pid)
        if program and kernel.perf_events_of(process.pid) >= CPUS:
            with kernel.SamplingProgram(program) as counted:
                if counted.runs() > 0:
                    return kernel.SamplingProgram(program)
        time.sleep(0.01)
    raise Failure("record does not start")


class Recorder:
    """A context manager: samples from when it is entered to finish()."""

    def __init__(self, program, frequency, keep=None, name="recorded", options=()):
        self._base = [program, "record", "--quiet", "--frequency", str(frequency), *options]
        self._keep = keep
        self._name = name.replace(" ", "_")

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, kernel.enable_run_statistics())
            self._prepare_files(stack)
            self._start(stack)
            self._resources = stack.pop_all()
        self._began = time.monotonic()
        self._cpu_before = kernel.cpu_seconds_of(self._process.pid)
        return self

    def __exit__(self, *_):
        self._resources.close()

    def _prepare_files(self, stack):
        directory = self._keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-live-"))
        os.makedirs(directory, exist_ok=True)
        base = os.path.join(directory, self._name)
        self._folded, self._profile, self._stderr = base + ".folded", base + ".pb.gz", base + ".stderr"

    def _start(self, stack):
        command = [*self._base, "--output", self._folded, "--output", self._profile]
        with open(self._stderr, "w") as stderr:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        stack.callback(self._kill)
        try:
            self._program = stack.enter_context(_wait_until_sampling(self._process))
        except Failure as failure:
            raise Failure("%s: %s" % (failure, self._said())) from failure

    def holds(self):
        """(BPF maps, open files) of the recorder now."""
        return kernel.bpf_maps_of(self._process.pid), kernel.files_of(self._process.pid)

    @property
    def pid(self):
        return self._process.pid

    def finish(self):
        """Ends it and returns the Recording."""
        cost = self._stop()
        with open(self._folded, encoding="utf-8") as file:
            folded = file.read()
        with open(self._profile, "rb") as file:
            profile = pprof_reader.parse(file.read())
        accounting = Accounting.parse(self._said())
        if accounting is None:
            raise Failure("record gave no account: " + self._said())
        return Recording(folded, profile, accounting, cost, self._said())

    def _stop(self):
        """The Cost. Raises Failure if it did not end well."""
        pid = self._process.pid
        seconds = time.monotonic() - self._began
        sampling_cpu = kernel.cpu_seconds_of(pid) - self._cpu_before
        kernel_memory = kernel.kernel_memory_of(pid)
        mapped = kernel.mapped_kernel_memory_of(pid)
        tick_ns = self._program.run_ns() / self._program.runs()
        self._process.send_signal(signal.SIGINT)
        peak = 0
        told = time.monotonic()
        deadline = told + DEADLINE_SECONDS
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            peak = max(peak, kernel.peak_resident_of(pid))
            if time.monotonic() > deadline:
                raise Failure("record does not end: " + self._said())
            time.sleep(0.002)
        _, status, usage = os.wait4(pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != 0:
            raise Failure("record ended with %d: %s" % (self._process.returncode, self._said()))
        return Cost(seconds, sampling_cpu, usage.ru_utime + usage.ru_stime, time.monotonic() - told,
                    peak - mapped, kernel_memory, tick_ns, self._program.runs())  # fmt: skip

    def _said(self):
        with open(self._stderr, errors="replace") as file:
            return file.read().strip()

    def _kill(self):
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()


def recorder(chosen, name, *options):
    """A Recorder by what arguments() returned, with more options of `record`."""
    return Recorder(chosen.pyrometer, chosen.frequency, chosen.keep, name, options)


def record(chosen, name):
    """The Recording of as many seconds as were chosen."""
    with recorder(chosen, name) as running:
        time.sleep(chosen.seconds)
        return running.finish()
