# SPDX-License-Identifier: Apache-2.0
"""One recording, measured: a load, a recorder over it, and what both have to say afterwards."""

import contextlib
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import kernel  # noqa: E402
import waiting  # noqa: E402
from recorders import Failure, Target  # noqa: E402

CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
LOAD_PROGRAM = "bench_load"
DEADLINE_SECONDS = 120
# For the unwind tables of what runs; on a busy machine that takes its time.
LONGEST_SETTLE_SECONDS = 20


wait_for = functools.partial(waiting.wait_for, seconds=DEADLINE_SECONDS, failure=Failure)


class Load:
    """One busy program per CPU, pinned; none at all without a shape. A context manager."""

    def __init__(self, program, *shape):
        self.comm = os.path.basename(program)
        self.processes = [
            subprocess.Popen(
                [program, str(cpu), *map(str, shape)], stdout=subprocess.PIPE, text=True
            )
            for cpu in (sorted(os.sched_getaffinity(0)) if shape else ())
        ]
        for process in self.processes:
            if process.stdout.readline() != "READY\n":
                raise Failure("%s does not start" % program)

    def forget(self):
        """What was measured so far."""
        for process in self.processes:
            process.send_signal(signal.SIGUSR1)

    def run_before_others(self):
        """From now on; the kernel leaves 5 % of the CPUs to everybody else."""
        for process in self.processes:
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(1))

    def pids(self):
        return tuple(process.pid for process in self.processes)

    def stop(self):
        """Ends it and returns what each program has measured."""
        for process in self.processes:
            process.terminate()
        return [json.loads(process.communicate()[0]) for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()


class Spent:
    """A command whose use of CPU time and memory is measured; a context manager."""

    def __init__(self, meter, command, directory, output=os.devnull):
        self._result = os.path.join(directory, "spent.json")
        self._stderr = os.path.join(directory, "stderr.txt")
        with open(self._result, "w"), open(self._stderr, "w") as stderr, open(output, "w") as stdout:
            self._process = subprocess.Popen(
                [meter, self._result, *command], stdout=stdout, stderr=stderr
            )
        wait_for(lambda: self._lines() or self._ended(), command[0])
        if not self._lines():
            raise Failure("%s does not start: %s" % (command[0], self.stderr()))
        self.command = command[0]
        self.pid = self._lines()[0]["pid"]

    def _lines(self):
        with open(self._result) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def _ended(self):
        return self._process.poll() is not None

    def stderr(self):
        with open(self._stderr, errors="replace") as file:
            return file.read()

    def wait_until(self, condition, what):
        wait_for(lambda: condition() or self._ended(), what)
        if self._ended():
            raise Failure("%s ended early: %s" % (self.command, self.stderr()))

    def interrupt(self, still_at_work=lambda: False):
        """Asks it to end. bpftrace 0.17 misses a signal that comes while it is not waiting for
        events, so it is asked again while `still_at_work()`. perf ends by itself with its target."""
        for _ in range(DEADLINE_SECONDS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            if self._ended() or not still_at_work():
                return self
        return self

    def finish(self):
        """What bench_spent has written about the ended command."""
        self._process.wait(DEADLINE_SECONDS)
        result = self._lines()[-1]
        # perf ends itself with the signal that it was sent.
        if result.get("status") not in (0, 128 + signal.SIGINT):
            raise Failure("%s failed: %s" % (self.command, self.stderr()))
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self._ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._process.wait()


@dataclasses.dataclass
class Books:
    """What the kernel has booked for a BPF program."""

    runs: int = 0
    run_ns: int = 0
    samples: int = 0  # among these runs
    cold: int = 0  # among these samples, those that were left to user space

    def __sub__(self, other):
        return Books(*(a - b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


@dataclasses.dataclass
class Recorded:
    """CPU time in seconds, memory in bytes."""

    samples: int
    start_cpu: float  # until the first sample
    record_cpu: float  # until the end of sampling
    record_seconds: float
    steady_cpu: float  # the part of record_cpu after it has settled
    steady_seconds: float
    total_cpu: float
    peak: int  # resident set
    kernel_memory: int
    written: int
    name_cpu: float = 0.0  # of a second command that gives names to the samples
    books: Books = dataclasses.field(default_factory=Books)  # after that, if it can be told
    early_cold: int = 0  # samples before that were left to user space
    frames: int = 0  # of the most frequent stack, where the recorder can tell
    load: list = dataclasses.field(default_factory=list)  # what Load.stop returned
    judgement: object = None  # what the caller's judge returned

    @property
    def end_cpu(self):
        return self.total_cpu - self.start_cpu - self.record_cpu


def _runs_go_on(program):
    """A function that tells whether `program` has run since it was last called."""
    if not program:
        return lambda: False
    seen = [program.runs()]

    def go_on():
        seen.append(program.runs())
        return seen[-1] > seen[-2]

    return go_on


class Bench:
    """Makes the recordings. `programs`: directory of bench_load and bench_spent. `real_time`: in
    short recordings nearly nothing runs beside the load."""

    def __init__(self, programs, real_time=False):
        self._real_time = real_time
        if real_time:
            # Or the driver would be among those who wait.
            os.sched_setscheduler(
                0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2)
            )
        self._programs = programs
        self._meter = os.path.join(programs, "bench_spent")
        self._statistics = kernel.enable_run_statistics()

    def program(self, name):
        return os.path.join(self._programs, name)

    def cost(self, recorder, shape, hertz, seconds, comm=None, program=LOAD_PROGRAM, judge=None):
        """A short recording of the load alone, for the sake of the kernel's share of the work.
        `judge(directory)` looks at what was recorded before that is removed."""
        with Load(self.program(program), *shape) as load:
            target = Target(comm or program, load.pids())
            return self._record(recorder, load, hertz, target, 0.2, seconds - 0.2, judge)

    def record(self, recorder, shape, hertz, settle, seconds):
        """A recording of the whole machine, for the sake of the recorder's own work."""
        with Load(self.program(LOAD_PROGRAM), *shape) as load:
            return self._record(recorder, load, hertz, None, settle, seconds - settle)

    def spent(self, command, directory):
        """The command at work, as a context manager."""
        return Spent(self._meter, command, directory)

    def naming_cpu(self, recorder, directory, output=os.devnull):
        """CPU seconds of the command that gives names to the samples, if it takes one; what that
        prints goes to `output`."""
        command = getattr(recorder, "command_to_name", None)
        if not command:
            return 0.0
        with Spent(self._meter, command(directory), directory, output) as spent:
            result = spent.finish()
        return (result["user_us"] + result["system_us"]) / 1e6

    def _record(self, recorder, load, hertz, target, settle, seconds, judge=None):
        brief = target is not None
        with tempfile.TemporaryDirectory(prefix="pyrometer-bench-") as directory:
            command = recorder.command(hertz, directory, target)
            with self.spent(command, directory) as spent, contextlib.ExitStack() as stack:
                program = self.wait_until_sampling(recorder, spent, stack)
                clock = [(time.monotonic(), kernel.cpu_seconds_of(spent.pid))]

                def pass_time(duration):
                    time.sleep(duration)
                    clock.append((time.monotonic(), kernel.cpu_seconds_of(spent.pid)))

                is_sampled = target is not None and target.comm == load.comm
                before = self._settle(recorder, program, settle, is_sampled)
                pass_time(0)
                if brief and self._real_time and not hasattr(recorder, "works_while_sampling"):
                    load.run_before_others()
                load.forget()
                pass_time(seconds)
                after = self._books_so_far(recorder, program)
                kernel_memory = kernel.kernel_memory_of(spent.pid)
                measured = load.stop() if brief else []
                result = spent.interrupt(_runs_go_on(program)).finish()
                if not brief:
                    load.stop()
                samples = recorder.samples(directory, spent.stderr())
                (begin, start_cpu), (settled, settled_cpu), (end, end_cpu) = clock
                return Recorded(
                    samples=samples,
                    start_cpu=start_cpu,
                    record_cpu=end_cpu - start_cpu,
                    record_seconds=end - begin,
                    steady_cpu=end_cpu - settled_cpu,
                    steady_seconds=end - settled,
                    total_cpu=(result["user_us"] + result["system_us"]) / 1e6,
                    peak=result["peak_kb"] * 1024,
                    kernel_memory=kernel_memory,
                    written=recorder.bytes_written(directory),
                    name_cpu=0.0 if brief else self.naming_cpu(recorder, directory),
                    books=after - before if after else self._all_books(program, samples),
                    early_cold=before.cold if before else 0,
                    frames=recorder.frames(directory) if brief and hasattr(recorder, "frames") else 0,
                    load=measured,
                    judgement=judge(directory) if judge else None,
                )

    @staticmethod
    def _books_so_far(recorder, program):
        """None for recorders that tell how many samples they have only when they end."""
        if not hasattr(recorder, "samples_so_far"):
            return None
        samples = recorder.samples_so_far(program)
        return Books(program.runs(), program.run_ns(), samples, recorder.cold_so_far(program))

    def _settle(self, recorder, program, seconds, is_sampled):
        """Waits so long. If the load `is_sampled`, longer while its samples are left to user space:
        at first all are, until their unwind tables are loaded. Returns the books."""
        deadline = time.monotonic() + LONGEST_SETTLE_SECONDS
        before = self._books_so_far(recorder, program)
        while True:
            time.sleep(seconds)
            after = self._books_so_far(recorder, program)
            if not after or not is_sampled or time.monotonic() > deadline:
                return after
            new = after - before
            if new.samples and not new.cold:
                return after
            before = after

    @staticmethod
    def _all_books(program, samples):
        return Books(program.runs(), program.run_ns(), samples) if program else Books()

    def wait_until_sampling(self, recorder, spent, stack):
        """Returns the BPF program, if the recorder has one."""
        if not recorder.counts_runs:
            spent.wait_until(
                lambda: kernel.perf_events_of(spent.pid) >= CPUS, "%s to sample" % recorder.name
            )
            return None
        spent.wait_until(
            lambda: kernel.sampling_program_of(spent.pid), "%s to load" % recorder.name
        )
        program = stack.enter_context(
            kernel.SamplingProgram(kernel.sampling_program_of(spent.pid))
        )
        spent.wait_until(lambda: program.runs() > 0, "%s to sample" % recorder.name)
        return program
