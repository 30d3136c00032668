# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: running `pyrometer record`, reading all that it writes, starting
the programs of tests/programs, and comparing the two.

Environment: PYROMETER_BIN (the program under test), PYROMETER_PROGRAMS (directory of the built
tests/programs), PYROMETER_REQUIRE_BPF=1 (a test that cannot run fails instead of being skipped).
A test file ends in `pyrometer_harness.main()`; its exit status 77 means "skipped" to CTest.
"""

import collections
import dataclasses
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shared"))

import bounds  # noqa: E402
import collapsed  # noqa: E402
import pprof_reader  # noqa: E402
from waiting import wait_for  # noqa: E402

SKIPPED = 77
DEADLINE_SECONDS = 60
CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39

PYROMETER = os.environ.get("PYROMETER_BIN", "pyrometer")
PROGRAMS = os.environ.get("PYROMETER_PROGRAMS", "")
REQUIRED = os.environ.get("PYROMETER_REQUIRE_BPF") == "1"
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")


# Whether a test can run.


def why_no_bpf():
    """None if recording is possible here, else the reason why not."""
    if not shutil.which(PYROMETER):
        return "no pyrometer at PYROMETER_BIN=%s" % PYROMETER
    if os.geteuid() != 0:
        return "not root"
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("CapEff"))
    capabilities = int(line.split()[1], 16)
    if not capabilities >> CAP_SYS_ADMIN & 1:
        if not (capabilities >> CAP_BPF & 1 and capabilities >> CAP_PERFMON & 1):
            return "neither CAP_SYS_ADMIN nor CAP_BPF and CAP_PERFMON"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "the kernel has no BTF"
    return None


def skip_or_fail(reason):
    """Ends the running test: skipped, or failed where nothing may be skipped."""
    if REQUIRED:
        raise AssertionError("may not be skipped (PYROMETER_REQUIRE_BPF=1): " + reason)
    raise unittest.SkipTest(reason)


def not_judged(reason):
    """Says that one property could not be judged on this machine now; the summary of all tests lists it."""
    print("not judged: " + reason, flush=True)


class BpfTestCase(unittest.TestCase):
    """A test that records. Skipped where recording is impossible."""

    @classmethod
    def setUpClass(cls):
        reason = why_no_bpf()
        if reason:
            skip_or_fail(reason)
        cls.directory = tempfile.mkdtemp(prefix="pyrometer-test-")
        os.chmod(cls.directory, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)

    def start_recording(self, *options, **sampling):
        """A Recorder that samples already; killed if it is left running at the test's end."""
        recorder = Recorder(self.directory, *options, **sampling)
        self.addCleanup(recorder.kill)
        return recorder.wait_until_sampling()

    def record_pages(self, processes, *options):
        """A recording of the page faults of `processes`, which wait for a word (`pages_when_told`), and of
        what `options` add to them; and the Truth of each."""
        recorder = self.start_recording(*options, event=PAGE_FAULTS)
        truths = [process.work() for process in processes]
        return recorder.interrupt().finish(), truths

    def assert_pages(self, samples, truth, chain, what):
        """Of `samples` exactly one is for each page that a function of `truth` has touched, and its user
        frames are those of `chain(function)`, root first; no other samples have that function. One may say
        that its tables came late, if too many were to be unwound in user space before."""
        for function, pages in truth.pages().items():
            ours = [sample for sample in samples if sample.calls(function)]
            whole = [sample for sample in ours if sample.is_chain(chain(function))]
            self.assertGreater(pages, 0, what)
            self.assertEqual(
                (count_where(ours, lambda s: True), count_where(whole, lambda s: True)), (pages, pages),
                "%s: %s: %s" % (what, function, describe(s for s in ours if s not in whole)),
            )

    def record_working(self, processes, *options, cpu_seconds=0.5):
        """A recording during which each of `processes` has used so much CPU time, however busy the
        machine is otherwise."""
        recorder = self.start_recording(*options)
        self.wait_for_cpu_time(processes, cpu_seconds)
        return recorder.interrupt().finish()

    def wait_for_cpu_time(self, processes, cpu_seconds):
        """Until each of `processes` has used so much more."""
        goals = {p.pid: cpu_ns_of(p.pid) + cpu_seconds * 1e9 for p in processes}
        wait_for(lambda: all(cpu_ns_of(pid) >= goal for pid, goal in goals.items()), "CPU time")

    def assert_worked(self, recording, samples, cpu_seconds, what):
        """`samples` are at least 0.7 of what this CPU time gives; each tick that was not delivered may have
        been one of these."""
        due = 0.7 * cpu_seconds * 1e9 / recording.profile.period - recording.accounting.undelivered
        self.assertGreater(count_where(samples, lambda s: True), max(due, 0), what)

    def assert_between(self, number, limits, what):
        self.assertTrue(
            limits[0] <= number <= limits[1],
            "%s: %s is not in [%s, %s]" % (what, number, limits[0], limits[1]),
        )

    def assert_share(self, hits, total, share, what):
        """`hits` of `total` samples may belong to something that takes `share` of the time."""
        self.assertGreater(total, 0, what + ": no samples at all")
        self.assert_between(hits, bounds.binomial_limits(total, share), what)

    def assert_shares(self, samples, truth, what):
        """Each function of `truth` is the leaf of its share of `samples`, and of no more."""
        total_iterations = sum(truth.iterations.values())
        in_functions = {
            name: count_where(samples, lambda s, name=name: s.calls(name))
            for name in truth.iterations
        }
        total = sum(in_functions.values())
        for name, iterations in truth.iterations.items():
            self.assert_share(
                in_functions[name], total, iterations / total_iterations, "%s: %s" % (what, name)
            )
        # The calls towards the functions and the clock take up to 3 % of the time.
        others = [s for s in samples if not any(map(s.calls, truth.iterations))]
        beside = count_where(others, lambda s: True)
        self.assertLessEqual(
            beside, bounds.binomial_limits(total + beside, 0.03)[1],
            "%s: beside %d samples in its functions, these: %s" % (what, total, describe(others)),
        )

    def assert_cpu_time(self, recording, samples, cpu_ns, what, tolerance=0.01):
        """`samples` x period agree with the CPU time that the scheduler has booked. Each tick that was not
        delivered may have been one of these."""
        profile = recording.profile
        periods = profile.duration_nanos * CPUS / profile.period
        low, high = bounds.cpu_time_limits(cpu_ns, profile.period, periods, tolerance, recording.stolen_ns)
        limits = (low - recording.accounting.undelivered, high)
        self.assert_between(count_where(samples, lambda s: True), limits, what)

    def assert_each(self, samples, condition, what):
        """Of those whose unwind tables were there, of which there are some."""
        samples = in_time(samples)
        self.assertTrue(samples, what + ": no samples")
        self.assertEqual(describe(s for s in samples if not condition(s)), "", what)

    def assert_cut_only_when_late(self, recording, samples):
        """`samples` of a recording with --stats=json, of programs at work, are whole, but for those that came
        before their tables, and the recorder has counted as many as it could not keep until then."""
        cut = cut_by_reason(samples)
        late = cut.pop("tables_not_ready", 0)
        self.assertEqual(cut, {}, describe(s for s in in_time(samples) if any(map(is_cut, s.frames))))
        stats = stats_of(recording.stderr)
        self.assertLessEqual(late, sum(stats["cold_samples_%s_total" % how] for how in LATE), recording.stderr)


def main():
    """Runs the tests of the calling file; 77 if every one of them was skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that skips in setUpClass counts as one skip and no test.
    ran = result.testsRun - len(result.skipped)
    sys.exit(SKIPPED if result.skipped and ran <= 0 else 0)


# What a recording says.


@dataclasses.dataclass
class Accounting:
    samples: int
    idle: int
    filtered: int
    lost: int
    lost_by_reason: dict
    undelivered: int
    processes: int
    stacks: int
    truncated: int
    truncated_by_reason: dict

    LINE = re.compile(
        r"samples=(\d+) idle=(\d+) filtered=(\d+) lost=(\d+)(?: \(([^)]*)\))? "
        r"undelivered=(\d+) processes=(\d+) stacks=(\d+) truncated=(\d+)(?: \(([^)]*)\))?"
    )

    @classmethod
    def parse(cls, text):
        """The one accounting line in `text`, or None."""
        lines = [match for match in map(cls.LINE.search, text.splitlines()) if match]
        if not lines:
            return None
        if len(lines) > 1:
            raise AssertionError("%d accounting lines:\n%s" % (len(lines), text))
        numbers = [int(lines[0].group(i)) for i in (1, 2, 3, 4, 6, 7, 8, 9)]
        lost, cut = (cls.reasons_in(lines[0].group(i)) for i in (5, 10))
        accounting = cls(*numbers[:4], lost, *numbers[4:], cut)
        for what, total, reasons in (("lost", accounting.lost, lost), ("truncated", accounting.truncated, cut)):
            if sum(reasons.values()) != total:
                raise AssertionError(what + " is not the sum of its reasons: " + lines[0].group(0))
        return accounting

    @staticmethod
    def reasons_in(text):
        """{"map_full": 3} of "map_full=3 ..." """
        return {reason: int(count.rstrip(",")) for reason, count in (word.split("=") for word in (text or "").split())}

    def ticks(self):
        return self.samples + self.idle + self.filtered + self.lost


@dataclasses.dataclass
class StackSamples:
    """All samples of one stack: of one process and thread if it is from a pprof file."""

    count: int
    comm: str
    frames: list  # function names, root first, without the comm
    kernel: list  # for each frame, whether it is the kernel's
    mappings: list  # for each frame, the file; None if it is from a folded file
    labels: dict

    def calls(self, name):
        """Whether a function of this name (see `is_named`) is on the stack."""
        return any(is_named(frame, name) for frame in self.frames)

    def has_chain(self, names):
        """Whether these functions stand on the stack one directly below the other."""
        width = len(names)
        return any(
            all(map(is_named, self.frames[start : start + width], names))
            for start in range(len(self.frames) - width + 1)
        )

    def is_chain(self, names):
        """Whether these functions are all the user stack, root first. Of one that says that its tables came
        late, the last of them: while not even the mappings are known, its leaf is all that can be told."""
        frames = self.user_frames()
        if frames[:1] == [NOT_READY]:
            frames = frames[1:]
            names = names[-len(frames):]
        return 0 < len(frames) == len(names) and all(map(is_named, frames, names))

    def user_frames(self):
        return [frame for frame, kernel in zip(self.frames, self.kernel) if not kernel]


KERNEL_MAPPING = "[kernel.kallsyms]"
# What became of samples whose tables were not there yet and that could not wait: cold_samples_..._total.
LATE = ("refused", "given_up", "not_kept", "code_late")
AT_LIMIT = "[truncated]"  # the first frame of a stack that has more frames than are taken
BROKEN = "[unwind stopped: "  # ... of one that nothing leads further from; the reason follows
NOT_READY = BROKEN + "tables not ready]"  # what follows is by frame pointers


def is_named(frame, name):
    """Whether `frame` is the function `name`, with or without result, parameters and template
    arguments; `<...>` in `name` stands for any template arguments."""
    pattern = ".*".join(map(re.escape, name.split("...")))
    return re.search(r"(?:^|[\s*&])" + pattern + r"(?:[(<\[ ].*)?$", frame) is not None


def is_cut(frame):
    return frame == AT_LIMIT or frame.startswith(BROKEN)


def cut_by_reason(samples):
    """{"tables_not_ready": 3}, as in the accounting line, of the stacks that miss their root."""
    reasons = collections.Counter()
    for sample in samples:
        for frame in filter(is_cut, sample.frames):
            word = frame.removeprefix(BROKEN).strip("[]").replace(" ", "_")
            reasons[word] += sample.count
    return dict(reasons)


def in_time(samples):
    """Those whose unwind tables were there. The others say so, and the accounting line counts them: how many
    there are tells how busy the machine was when their program began."""
    return [sample for sample in samples if set(cut_by_reason([sample])) != {"tables_not_ready"}]


def count_where(samples, condition):
    return sum(sample.count for sample in samples if condition(sample))


def describe(samples, most=5):
    """The most frequent of `samples`, for messages."""
    ordered = sorted(samples, key=lambda sample: -sample.count)[:most]

    def shortened(frames):
        return ";".join(frames if len(frames) <= 10 else [*frames[:5], "...", *frames[-5:]])

    return "".join("\n  %6d %s;%s" % (s.count, s.comm, shortened(s.frames)) for s in ordered)


def parse_folded(text):
    samples = []
    for line in text.splitlines():
        comm, frames, count = collapsed.split(line)
        kernel = list(map(collapsed.is_kernel, frames))
        names = [frame.removesuffix(collapsed.KERNEL_SUFFIX) for frame in frames]
        samples.append(StackSamples(count, comm, names, kernel, [None] * len(names), {}))
    return samples


def samples_of(profile):
    return [
        StackSamples(
            count=sample.values[0],
            comm=sample.labels.get("comm", ""),
            frames=[frame.function for frame in sample.frames],
            kernel=[frame.mapping == KERNEL_MAPPING for frame in sample.frames],
            mappings=[frame.mapping for frame in sample.frames],
            labels=sample.labels,
        )
        for sample in profile.samples
    ]


# By event, the second value of its samples. The clock's period is a time, any other a number.
CPU_CLOCK = "cpu-clock"
PAGE_FAULTS = "page-faults"
VALUE_TYPES = {CPU_CLOCK: ("cpu", "nanoseconds"), PAGE_FAULTS: ("page-faults", "count")}


def check_profile(path, hertz, accounting, event=CPU_CLOCK, period=1):
    """The profile in `path`, after everything that must hold for every pprof file we write. `hertz`
    is the clock's, `period` that of another event."""
    with open(path, "rb") as file:
        profile = pprof_reader.parse(file.read())
    value_type = VALUE_TYPES[event]
    expected = {
        "sample types": ([("samples", "count"), value_type], profile.sample_types),
        "period type": (value_type, profile.period_type),
        "default type": (value_type[0], profile.default_type),
        "total": (accounting.samples, profile.total(0)),
        "value": (profile.total(0) * profile.period, profile.total(1)),
    }
    if event != CPU_CLOCK:
        expected["period"] = (period, profile.period)
        expected["undelivered, which is of a clock"] = (0, accounting.undelivered)
    for what, (wanted, found) in expected.items():
        if wanted != found:
            raise AssertionError("%s: %s is %s, not %s" % (path, what, found, wanted))
    if event == CPU_CLOCK and abs(profile.period - round(1e9 / hertz)) > 1:
        raise AssertionError("%s: period is %d, not that of %d Hz" % (path, profile.period, hertz))
    if profile.duration_nanos <= 0 or abs(profile.time_nanos / 1e9 - time.time()) > 600:
        raise AssertionError("%s: time or duration is wrong" % path)
    check_with_go(path, accounting.samples)
    return profile


def check_with_go(path, samples):
    """`go tool pprof` reads the file, and finds as many samples."""
    go = shutil.which("go")
    if not go:
        skip_or_fail("no go (Debian package golang-go) to read profiles with")
    environment = dict(os.environ, HOME=os.environ.get("HOME", "/root"))
    raw, top = (
        subprocess.run(
            [go, "tool", "pprof", mode, "-symbolize=none", path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for mode in ("-raw", "-top")
    )
    for result in (raw, top):
        if result.returncode != 0:
            raise AssertionError("go tool pprof: " + result.stderr)
    total = total_of_go_raw(raw.stdout)
    if total != samples:
        raise AssertionError("go tool pprof -raw counts %d samples, not %d" % (total, samples))
    if samples and "flat%" not in top.stdout:
        raise AssertionError("go tool pprof -top prints no table: " + top.stdout)


def total_of_go_raw(text):
    """The samples in all lines like `   3   30303030: 1 2 3` of the output of pprof -raw."""
    lines = text.split("\nSamples:\n")[1].split("\nLocations\n")[0].splitlines()
    return sum(int(line.split()[0]) for line in lines if re.match(r"\s*\d+\s+\d+:", line))


# Recording.


@dataclasses.dataclass
class Recording:
    status: int
    stdout: str
    stderr: str
    accounting: Accounting
    profile: pprof_reader.Profile
    samples: list  # of StackSamples, from the pprof file
    folded: list  # of StackSamples, from the collapsed stacks
    truths: list  # what the programs run as its command reported
    stolen_ns: int  # from all CPUs meanwhile, by a hypervisor

    def of_pid(self, pid):
        return [sample for sample in self.samples if sample.labels.get("pid") == pid]

    def of_comm(self, comm):
        return [sample for sample in self.samples if sample.comm == comm[:15]]


class Recorder:
    """A `pyrometer record` that is running; writes pprof and collapsed stacks into `directory`. Of
    the clock `hertz` counts, of any other event `period`. `within` is a command that becomes it."""

    def __init__(self, directory, *options, command=None, hertz=999, event=CPU_CLOCK, period=1, within=()):
        self.sampling = {"hertz": hertz, "event": event, "period": period}
        self.pprof = os.path.join(directory, "recorded.pb.gz")
        self.folded = os.path.join(directory, "recorded.folded")
        for path in (self.pprof, self.folded):
            if os.path.exists(path):
                os.unlink(path)
        rate = ["--frequency", str(hertz)]
        if event != CPU_CLOCK:
            rate = ["--event", event, "--period", str(period)]
        arguments = [*within, PYROMETER, "record", *rate, "--quiet"]
        arguments += ["--output", self.pprof, "--output", self.folded, *options]
        if command:
            arguments += ["--", *command]
        self.stolen_before = stolen_ns()
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_until_sampling(self):
        """Returns when its program is attached to a perf event of each CPU."""
        wait_for(
            lambda: self._links() >= CPUS or self.process.poll() is not None, "record to attach"
        )
        return self

    def _links(self):
        """How many of its descriptors are links of a BPF program (Linux 5.15) to a perf event."""
        links = 0
        directory = "/proc/%d/fdinfo" % self.process.pid
        try:
            for descriptor in os.listdir(directory):
                with open(os.path.join(directory, descriptor)) as file:
                    links += "link_type:\tperf" in file.read()
        except FileNotFoundError:
            pass  # It is just closing one, or over.
        return links

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def finish(self, seconds=DEADLINE_SECONDS):
        """Waits for the end, so long at most, and reads everything that was written."""
        try:
            stdout, stderr = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as expired:
            # Left to kill(): what keeps it may have to go before.
            raise AssertionError("record does not end: %s" % expired.stderr) from expired
        accounting = Accounting.parse(stderr)
        if accounting is None or not os.path.exists(self.pprof):
            raise AssertionError(
                "record wrote no profile, exit status %d: %s" % (self.process.returncode, stderr)
            )
        profile = check_profile(self.pprof, accounting=accounting, **self.sampling)
        with open(self.folded, encoding="utf-8") as file:
            folded = parse_folded(file.read())
        if count_where(folded, lambda sample: True) != accounting.samples:
            raise AssertionError("the collapsed stacks do not add up to " + stderr)
        samples = samples_of(profile)
        for form in (samples, folded):
            if cut_by_reason(form) != accounting.truncated_by_reason:
                raise AssertionError("%s are cut, not as in %s" % (cut_by_reason(form), stderr))
        return Recording(
            status=self.process.returncode, stdout=stdout, stderr=stderr, accounting=accounting,
            profile=profile, samples=samples, folded=folded,
            truths=parse_truths(stdout), stolen_ns=stolen_ns() - self.stolen_before,
        )


def stolen_ns():
    """What the hypervisor has taken from all CPUs, in steps of 10 ms; see proc_stat(5)."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def stats_of(stderr):
    """What --stats=json printed: name -> number, of one with labels the sum; and each of those as
    name{label=value}."""
    stats = {}
    lines, _ = json.JSONDecoder().raw_decode(stderr, stderr.index("\n[\n") + 1)
    for line in lines:
        stats[line["name"]] = stats.get(line["name"], 0) + line["value"]
        for label, value in line["labels"].items():
            stats["%s{%s=%s}" % (line["name"], label, value)] = line["value"]
    return stats


def record(directory, *options, **sampling):
    """A whole recording, of `command` if there is one; see Recorder."""
    return Recorder(directory, *options, **sampling).finish()


def refused(*arguments, command=(PYROMETER,), **options):
    """The finished process of a `pyrometer` that is expected to fail."""
    return subprocess.run(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=DEADLINE_SECONDS, **options
    )


# The programs.


WORK_SLICE = 200_000  # iterations for each page (tests/programs/work.h)


def pages(count):
    """The argument of a program of tests/programs that touches so many."""
    return "%dp" % count


def pages_when_told(count):
    """The same of one that waits for Running.work()."""
    return pages(count) + "-told"


@dataclasses.dataclass
class Truth:
    pid: int
    cpu_ns: int
    iterations: dict  # by function

    def pages(self):
        """By function, of a program whose work is pages."""
        return {name: iterations // WORK_SLICE for name, iterations in self.iterations.items()}


def parse_truths(stdout):
    """All that `report` of tests/programs/work.c printed, with whatever else between."""
    reports = [json.loads(line) for line in stdout.splitlines() if line.startswith('{"pid"')]
    return [Truth(r["pid"], r["cpu_ns"], r["iterations"]) for r in reports]


def program(name):
    path = os.path.join(PROGRAMS, name)
    if not os.access(path, os.X_OK) and not os.path.exists(path):
        raise AssertionError("no %s in PYROMETER_PROGRAMS=%s" % (name, PROGRAMS))
    return path


def all_at_once(*commands):
    """One command that runs `commands` beside each other and ends with the last."""
    script = ""
    arguments = []
    for command in commands:
        first = len(arguments) + 1
        arguments += command
        script += " ".join('"${%d}"' % i for i in range(first, len(arguments) + 1)) + " & "
    return ["sh", "-c", script + "wait", "sh", *arguments]


class Running:
    """A program that works until it is told to stop; a context manager."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid
        self.before_ready = self._read_until("READY\n")

    def _read_until(self, end):
        """What it printed before `end`. Past the buffers of `stdout`, whose rest is for stop()."""
        output = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not output.endswith(end.encode()):
                ready = selector.select(DEADLINE_SECONDS)
                byte = os.read(self.process.stdout.fileno(), 1) if ready else b""
                if not byte:
                    self.__exit__()
                    raise AssertionError("%s never said %r: %r" % (self.process.args, end, output))
                output += byte
        return output[: -len(end)].decode()

    def work(self, pid=None):
        """Has it, or its child `pid`, touch the pages that it waits to touch, and returns the Truth. It lives
        on: files that only it has can be read."""
        os.kill(pid or self.pid, signal.SIGUSR1)
        end = "}}\n"
        (truth,) = parse_truths(self._read_until(end) + end)
        return truth

    def stop(self):
        """Ends it and returns its Truth."""
        self.process.terminate()
        truths = parse_truths(self.process.communicate(timeout=DEADLINE_SECONDS)[0])
        return truths[-1] if truths else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def rests(pid, thread):
    """Whether there are threads of this name, and all wait for something to do."""
    states = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/stat" % (pid, task)) as file:
                name, _, rest_of_line = file.read().rpartition(")")
        except OSError:
            continue  # it has just ended
        if name.endswith("(" + thread):
            states.append(rest_of_line.split()[0])
    return bool(states) and set(states) == {"S"}


def await_rest(pid, threads, what, seconds=1):
    """Until all threads of these names wait for something to do at every look of so long: who waits for
    another process's answer looks the same, but not for long."""
    since = None

    def has_rested():
        nonlocal since
        if not all(rests(pid, thread) for thread in threads):
            since = None
            return False
        since = since or time.monotonic()
        return time.monotonic() - since >= seconds

    wait_for(has_rested, what)


def cpu_ns_of(pid):
    """User and system time of a process, in steps of 10 ms, as the scheduler has booked it."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
