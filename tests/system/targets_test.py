# SPDX-License-Identifier: Apache-2.0
"""What `record` is asked to record is what it records: command, pid, name, cgroup; and where and
how it writes it."""

import os
import signal
import subprocess
import tempfile

import pprof_reader
from pyrometer_harness import (
    PAGE_FAULTS, PYROMETER, Accounting, BpfTestCase, Running, check_profile, count_where,
    cpu_ns_of, main, pages_when_told, parse_folded, program, record, skip_or_fail, wait_for,
)

PAGES = 100


def every_sample(_):
    return True


def pids_of(recording):
    return {sample.labels["pid"] for sample in recording.samples}


class Command(BpfTestCase):
    def test_exit_status_is_passed_through(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)):
            with self.subTest(script):
                recording = record(self.directory, command=["sh", "-c", script])
                self.assertEqual(recording.status, status)

    def test_descendants_are_included_and_others_are_not(self):
        with Running(program("rootless"), "0") as other:
            # The grandchildren are fork_children's children; sh stays in between.
            command = ["sh", "-c", '"$1" 0.5; true', "sh", program("fork_children")]
            recording = record(self.directory, command=command)
        comms = {sample.comm for sample in recording.samples}
        self.assertTrue({"child-0", "child-1", "child-2"} <= comms, comms)
        self.assertNotIn(other.pid, pids_of(recording))
        self.assertNotIn("rootless", comms)
        self.assertNotIn("pyrometer", comms)
        self.assertGreater(recording.accounting.filtered, 0)

    def test_duration_ends_the_recording_and_not_the_command(self):
        recording = record(self.directory, "--duration", "500ms", command=[program("plain"), "2"])
        (truth,) = recording.truths
        self.assertEqual(recording.status, 0)
        self.assertGreater(truth.cpu_ns, 1.9e9)

    def test_words_after_the_dashes_belong_to_the_command(self):
        recording = record(self.directory, command=["echo", "--pid", "--", "--duration"])
        self.assertEqual(recording.stdout, "--pid -- --duration\n")


def worker(name="plain"):
    """A process that waits for a word to work."""
    return Running(program(name), pages_when_told(PAGES))


class Target(BpfTestCase):
    """All workers work while it is recorded, and the page faults of those that were asked for are there."""

    def record_workers(self, wanted, others, *options):
        """The recording, after all that must hold of it, and the Truth of each that is wanted."""
        recording, truths = self.record_pages([*wanted, *others], *options)
        self.assertEqual(pids_of(recording), {process.pid for process in wanted})
        return recording, truths[: len(wanted)]

    def assert_plain(self, recording, truth):
        self.assert_pages(recording.of_pid(truth.pid), truth, lambda leaf: ["from_root", "loop", "outer", leaf],
                          "a target")

    def test_pid_takes_this_process_only(self):
        with worker() as wanted, worker() as other:
            recording, (truth,) = self.record_workers([wanted], [other], "--pid", str(wanted.pid))
        self.assert_plain(recording, truth)

    def test_several_pids(self):
        with worker() as first, worker() as second, worker() as other:
            options = [word for process in (first, second) for word in ("--pid", str(process.pid))]
            recording, truths = self.record_workers([first, second], [other], *options)
        for truth in truths:
            self.assert_plain(recording, truth)

    def test_pid_takes_its_future_children_along(self):
        # The shell waits for a word; its children are not there when the recording begins.
        with Running("sh", "-c", 'echo READY; read word; "$1" 100p >&2; "$2" 100p >&2', "sh",
                     program("fork_children"), program("short_lived"),
                     stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as shell:
            recorder = self.start_recording("--pid", str(shell.pid), event=PAGE_FAULTS)
            shell.process.stdin.write("go\n")
            shell.process.stdin.close()
            shell.process.wait()
            recording = recorder.interrupt().finish()
        works = {"child-0": "child_work_0", "child-1": "child_work_1", "child-2": "child_work_2",
                 "short_lived": "short_work"}  # fmt: skip
        for comm, work in works.items():
            self.assertEqual(count_where(recording.of_comm(comm), lambda s, work=work: s.calls(work)), 100, comm)

    def test_comm_takes_processes_and_threads_of_this_name(self):
        with worker("threads") as threads, worker() as plain, worker("mangled") as other:
            recording, truths = self.record_workers(
                [threads, plain], [other], "--comm", "busy-half", "--comm", "plain"
            )
        samples = recording.of_pid(threads.pid)
        self.assertEqual({s.labels["thread"] for s in samples}, {"busy-half"})
        self.assertEqual(count_where(samples, lambda s: s.calls("thread_slice")), truths[0].pages()["busy-half"])
        self.assert_plain(recording, truths[1])

    def check_cgroup(self, mount, option, given, prefix="pyrometer-test-"):
        """Records `given(path)` with one process in a new cgroup, one below it and one outside."""
        path = tempfile.mkdtemp(prefix=prefix, dir=mount)
        inner = os.path.join(path, "inner")
        os.mkdir(inner)
        self.addCleanup(os.rmdir, path)
        self.addCleanup(os.rmdir, inner)

        def move(process, group):
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(process.pid))

        with worker() as inside, worker() as below, worker() as outside:
            move(inside, path)
            move(below, inner)
            recording, truths = self.record_workers([inside, below], [outside], option, given(path))
        for truth in truths:
            self.assert_plain(recording, truth)

    def test_cgroup_of_the_unified_hierarchy(self):
        mount = next((m for m in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                      if os.path.exists(os.path.join(m, "cgroup.controllers"))), None)
        if not mount:
            skip_or_fail("no cgroup2 is mounted")
        for name, given in (("absolute", lambda path: path),
                            ("below the mount", lambda path: "/" + os.path.relpath(path, mount))):
            with self.subTest(name):
                self.check_cgroup(mount, "--cgroup", given)

    def test_cgroup_of_an_older_hierarchy(self):
        mount = "/sys/fs/cgroup/cpuacct"
        if not os.path.exists(os.path.join(mount, "cgroup.procs")):
            self.skipTest("no cgroup of version 1 is mounted")
        self.check_cgroup(mount, "--cgroup", lambda path: path)

    def test_container_by_the_id_that_its_cgroup_carries(self):
        mounts = ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
        mount = next(m for m in mounts if os.path.exists(os.path.join(m, "cgroup.procs")))
        container = os.path.join(mount, "docker-%s.scope" % ("0123456789abcdef" * 4))
        os.mkdir(container)
        self.addCleanup(os.rmdir, container)
        self.check_cgroup(container, "--container", lambda path: "0123456789abcdef")


class PidNamespace(BpfTestCase):
    """Where process ids are not the kernel's, nothing is recorded rather than the wrong process."""

    def check_refused(self, *unshare, advice="hostPID: true"):
        marker = os.path.join(self.directory, "command-ran")
        for words in (["--pid", "1"], ["--duration", "1s"], ["--", "touch", marker]):
            with self.subTest(words):
                result = subprocess.run(
                    ["unshare", "--pid", *unshare, PYROMETER, "record", "--quiet", *words],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                )
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertIn(advice, result.stderr)
                self.assertEqual(result.stdout, "")
        self.assertFalse(os.path.exists(marker))

    def test_with_a_proc_of_its_own_is_refused(self):
        self.check_refused("--fork", "--mount-proc")

    def test_with_the_proc_of_the_host_is_refused(self):
        self.check_refused("--fork")

    def test_of_the_children_only_is_refused(self):
        self.check_refused(advice="also use `--fork`")


class Output(BpfTestCase):
    def path(self, name):
        return os.path.join(self.directory, name)

    def run_record(self, *options, command=("true",)):
        return subprocess.run(
            [PYROMETER, "record", "--frequency", "999", "--quiet", *options, "--", *command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, timeout=60,
        )

    def test_no_kernel_leaves_kernel_frames_out_and_keeps_the_samples(self):
        recording = record(self.directory, "--no-kernel", command=[program("system_calls"), "1"])
        samples = recording.of_comm("system_calls")
        self.assertEqual([s for s in recording.samples if any(s.kernel)], [])
        self.assertEqual([s for s in recording.folded if any(s.kernel)], [])
        asking = [s for s in samples if s.calls("read_zeros")]
        self.assert_worked(recording, asking, 1, "a second of system calls")
        self.assert_each(asking, lambda s: s.is_chain(["from_root", "loop", "ask_kernel", "read_zeros"]), "the caller")

    def test_labels_of_the_user_are_on_every_sample(self):
        recording = record(self.directory, "--label", "team=blue", "--label", "shift=a=b",
                           command=[program("plain"), "0.3"])
        self.assertGreater(len(recording.samples), 0)
        for sample in recording.samples:
            self.assertEqual((sample.labels["team"], sample.labels["shift"]), ("blue", "a=b"))
            self.assertLessEqual({"pid", "comm", "thread"}, set(sample.labels))

    def test_all_formats_come_out_of_one_recording(self):
        names = ("a.pb.gz", "a.folded", "a.html")
        options = [word for name in names for word in ("--output", self.path(name))]
        result = self.run_record(*options, command=[program("shares"), "5", "0.5"])
        accounting = Accounting.parse(result.stderr)
        check_profile(self.path("a.pb.gz"), 999, accounting)
        with open(self.path("a.folded")) as file:
            folded = parse_folded(file.read())
        self.assertEqual(count_where(folded, every_sample), accounting.samples)
        with open(self.path("a.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.lstrip().lower().startswith("<!doctype html"), page[:100])
        self.assertTrue(page.rstrip().endswith("</html>"), page[-100:])

    def test_a_dash_is_standard_output(self):
        result = self.run_record("--output", "-", "--format", "folded",
                                 command=["sh", "-c", '"$1" 5 0.5 >&2', "sh", program("shares")])
        accounting = Accounting.parse(result.stderr)
        self.assertEqual(count_where(parse_folded(result.stdout), every_sample), accounting.samples)

    def test_a_binary_profile_on_standard_output(self):
        result = subprocess.run(
            [PYROMETER, "record", "--quiet", "--frequency", "999", "--output", "-", "--format",
             "pprof", "--", "sh", "-c", '"$1" 0.3 >&2', "sh", program("plain")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60,
        )
        accounting = Accounting.parse(result.stderr.decode())
        self.assertEqual(pprof_reader.parse(result.stdout).total(), accounting.samples)

    def test_a_reader_that_went_away_does_not_cost_the_other_output(self):
        path = self.path("beside.pb.gz")
        reader, writer = os.pipe()
        os.close(reader)
        try:
            result = subprocess.run(
                [PYROMETER, "record", "--frequency", "999", "--quiet", "--output", "-", "--format",
                 "folded", "--output", path, "--", "sh", "-c", '"$1" 0.3 >&2', "sh",
                 program("plain")],
                stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60,
            )
        finally:
            os.close(writer)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("pyrometer: standard output: ", result.stderr)
        check_profile(path, 999, Accounting.parse(result.stderr))

    def test_a_full_standard_error_does_no_harm(self):
        path = self.path("untold.folded")
        with open("/dev/full", "w") as full:
            status = subprocess.run(
                [PYROMETER, "record", "--frequency", "999", "--output", path, "--", "sh", "-c",
                 '"$1" 0.3 >/dev/null; exit 7', "sh", program("plain")],
                stderr=full, timeout=60,
            ).returncode
        self.assertEqual(status, 7)
        with open(path) as file:
            self.assertGreater(count_where(parse_folded(file.read()), every_sample), 0)

    def test_without_an_output_the_top_functions_are_printed(self):
        result = self.run_record(command=[program("shares"), "5", "0.5"])
        self.assertIn("shares::Sixty", result.stdout)
        self.assertLess(result.stdout.index("shares::Sixty"), result.stdout.index("shares::Thirty"))

    def test_an_older_and_longer_file_is_replaced(self):
        path = self.path("replaced.folded")
        with open(path, "w") as file:
            file.write("old " * 100000)
        self.run_record("--output", path, command=[program("plain"), "0.1"])
        with open(path) as file:
            parse_folded(file.read())


class Interruption(BpfTestCase):
    def check_interrupted_by(self, number):
        with Running(program("plain"), "0") as busy:
            recorder = self.start_recording("--pid", str(busy.pid))
            begin = cpu_ns_of(busy.pid)
            wait_for(lambda: cpu_ns_of(busy.pid) - begin > 500_000_000, "half a second of work")
            recorder.process.send_signal(number)
            recording = recorder.finish()
        self.assertEqual(recording.status, 0, recording.stderr)
        self.assert_worked(recording, [s for s in recording.samples if s.calls("outer")], 0.5, "half a second")

    def test_ctrl_c_ends_a_recording_and_writes_it(self):
        self.check_interrupted_by(signal.SIGINT)

    def test_sigterm_does_too(self):
        self.check_interrupted_by(signal.SIGTERM)

    def test_ctrl_c_with_a_command_writes_what_was_recorded(self):
        recorder = self.start_recording(command=[program("plain"), "0"])
        children = "/proc/%d/task/%d/children" % (recorder.process.pid, recorder.process.pid)

        def command_is_busy():
            with open(children) as file:
                return any(cpu_ns_of(int(pid)) > 500_000_000 for pid in file.read().split())

        wait_for(command_is_busy, "half a second of work")
        with open(children) as file:
            command_pids = [int(pid) for pid in file.read().split()]
        # As a terminal does: to the whole foreground group.
        for pid in (*command_pids, recorder.process.pid):
            os.kill(pid, signal.SIGINT)
        recording = recorder.finish()
        self.assert_worked(recording, [s for s in recording.samples if s.calls("outer")], 0.5, "half a second")


if __name__ == "__main__":
    main()
