# SPDX-License-Identifier: Apache-2.0
"""Every kind of program and every shape of an ELF file comes out with its own names.

Each class makes one recording of all its programs at once; each test looks at one of them. Where programs
can work in pages, what is found is equal to what they did, to the sample.
"""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from pyrometer_harness import (
    AT_LIMIT, BROKEN, CPU_CLOCK, PAGE_FAULTS, BpfTestCase, Recorder, all_at_once, count_where, describe, in_time, is_cut,
    Running, is_named, main, not_judged, pages, pages_when_told, program, record, rests, skip_or_fail, wait_for,
)

CPU_SECONDS = "1"
PAGES = 100

# Maps the code of all files of a directory.
MAP_ALL = """
import mmap, os, signal, sys
maps = []
for entry in os.scandir(sys.argv[1]):
    with open(entry.path) as file:
        maps.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("READY", flush=True)
signal.pause()
"""


class RecordedOnce(BpfTestCase):
    """One recording for all tests of a class."""

    EVENT = CPU_CLOCK

    @classmethod
    def commands(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recording = record(cls.directory, command=all_at_once(*cls.commands()), event=cls.EVENT)

    def truth_of(self, samples):
        (pid,) = {sample.labels["pid"] for sample in samples}
        (truth,) = (truth for truth in self.recording.truths if truth.pid == pid)
        return truth

    def assert_named(self, comm, chain):
        """Each function of the program stands in as many samples as it touched pages, below `chain(function)`."""
        samples = self.recording.of_comm(comm)
        self.assertTrue(samples, "no samples of " + comm)
        self.assert_pages(samples, self.truth_of(samples), chain, comm)
        return samples


class Shapes(RecordedOnce):
    """One source, linked and stripped in different ways."""

    EVENT = PAGE_FAULTS
    NAMED = ("plain", "plain_absolute", "plain_static", "plain_static_pie", "plain_one_segment",
             "plain_two_segments", "plain_minidebug")

    @classmethod
    def commands(cls):
        names = (*cls.NAMED, "plain_stripped", "plain_dynsym")
        return [[program(name), pages(PAGES)] for name in names]

    def test_every_shape_has_its_names_and_stacks(self):
        for name in self.NAMED:
            with self.subTest(name):
                self.assert_named(name, lambda leaf: ["from_root", "loop", "outer", leaf])

    def test_mappings_carry_path_and_build_id(self):
        found = {m.filename: m.build_id for m in self.recording.profile.mappings}
        for name in ("plain", "plain_static", "plain_stripped"):
            self.assertRegex(found.get(program(name), "missing"), "^[0-9a-f]{40}$", name)

    def frames_of(self, name):
        """(function, count) of all frames in the file itself."""
        for sample in self.recording.of_comm(name):
            for function, mapping in zip(sample.frames, sample.mappings):
                if os.path.basename(mapping) == name:
                    yield function, sample.count

    def test_without_symbols_a_function_is_its_file_and_beginning(self):
        """from_root, loop, outer, seventy and thirty have one frame each."""
        functions = {function for function, _ in self.frames_of("plain_stripped")} - {"_start", "_init", "[plt]"}
        unnamed = {function for function in functions if not function.endswith("@plt")}
        for function in unnamed:
            self.assertRegex(function, r"^plain_stripped\+0x[0-9a-f]+$")
        samples = self.recording.of_comm("plain_stripped")
        touched = self.truth_of(samples).pages()
        leaves = collections.Counter()
        for sample in samples:
            leaves[sample.user_frames()[-1] if sample.user_frames() else "none"] += sample.count
        (_, seventy), (_, thirty) = sorted(((leaves[name], name) for name in unnamed), reverse=True)[:2]
        self.assertEqual({"seventy": leaves[seventy], "thirty": leaves[thirty]}, touched, leaves)
        self.assertLess(len(unnamed), 16, unnamed)

    def test_a_gap_between_exported_functions_inherits_no_name(self):
        samples = self.recording.of_comm("plain_dynsym")
        touched = self.truth_of(samples).pages()
        self.assertEqual(count_where(samples, lambda s: s.calls("seventy")), touched["seventy"])
        gaps = collections.Counter()
        for sample in samples:
            leaf = sample.user_frames()[-1] if sample.user_frames() else ""
            if re.fullmatch(r"plain_dynsym\+0x[0-9a-f]+", leaf):
                gaps[leaf] += sample.count
        self.assertIn(touched["thirty"], gaps.values(), describe(samples))


class Kinds(RecordedOnce):
    """What programs do, besides working."""

    EVENT = PAGE_FAULTS

    @classmethod
    def commands(cls):
        return [
            [program("crossing"), pages(PAGES)],
            [program("plugins"), os.path.dirname(program("plugins")), pages(8 * PAGES)],
            [program("mangled"), pages(PAGES)],
            [program("threads"), pages(PAGES)],
            [program("fork_children"), pages(PAGES)],
            [program("recursion"), "40", pages(PAGES)],
            [program("recursion"), "700", pages(PAGES)],
        ]

    def test_calls_across_libraries(self):
        into = {"program_leaf": [], "library_hidden": ["library_inner"]}
        self.assert_named("crossing", lambda leaf: ["from_root", "loop", "library_outer", "program_callback",
                                                    *into[leaf], leaf])

    def test_libraries_that_take_turns_at_one_address(self):
        samples = self.assert_named("plugins", lambda leaf: [
            "from_root", "loop", "with_plugin", "call_" + leaf.removesuffix("_work"), "plugin_entry", leaf])
        for here, other in (("a", "b"), ("b", "a")):
            wrong = [s for s in samples if s.calls("call_plugin_" + here)
                     and s.calls("plugin_%s_work" % other)]
            self.assertEqual(count_where(wrong, lambda s: True), 0, describe(wrong))

    def test_names_of_cxx(self):
        samples = self.assert_named("mangled", lambda leaf: ["from_root", "(anonymous namespace)::Loop", leaf])
        self.assertFalse(
            [s for s in samples if any(frame.startswith("_Z") for frame in s.frames)],
            "mangled names are left",
        )

    def test_names_of_threads(self):
        samples = self.recording.of_comm("threads")
        truth = self.truth_of(samples)
        working = [s for s in samples if s.calls("thread_slice")]
        whole = [s for s in working if s.is_chain(["from_root", "thread_loop", "thread_slice"])]
        self.assertEqual(describe(s for s in working if s not in whole), "")
        for thread, touched in truth.pages().items():
            self.assertGreater(touched, 0)
            self.assertEqual(count_where(whole, lambda s, thread=thread: s.labels["thread"] == thread), touched,
                             thread)  # fmt: skip

    def test_forked_children_keep_the_names_they_give_themselves(self):
        for child in range(3):
            comm, work = "child-%d" % child, "child_work_%d" % child
            samples = [s for s in self.recording.samples if s.calls(work)]
            whole = [s for s in samples if s.comm == comm and s.is_chain(["from_root", "loop", work])]
            self.assertEqual((count_where(samples, lambda s: True), count_where(whole, lambda s: True)),
                             (PAGES, PAGES), describe(samples))

    def test_recursion_is_neither_shortened_nor_folded_together(self):
        samples = [s for s in self.recording.of_comm("recursion") if s.calls("bottom") and len(s.frames) < 100]
        expected = ["from_root", "loop", *(["even", "odd"] * 20), "even", "bottom"]
        whole = [s for s in samples if s.is_chain(expected)]
        self.assertEqual((count_where(samples, lambda s: True), count_where(whole, lambda s: True)),
                         (PAGES, PAGES), describe(s for s in samples if s not in whole))

    def test_deeper_stacks_than_the_limit_keep_their_leaf_and_are_marked(self):
        deep = [s for s in self.recording.folded if s.comm == "recursion" and len(s.frames) > 100]
        marked = [s for s in deep if s.frames[0] == AT_LIMIT and s.calls("bottom")
                  and s.frames.count("even") >= 250]
        self.assertEqual((count_where(deep, lambda s: True), count_where(marked, lambda s: True)),
                         (PAGES, PAGES), describe(s for s in deep if s not in marked))
        self.assertGreaterEqual(self.recording.accounting.truncated, PAGES)

    def test_both_outputs_agree(self):
        def by_comm_and_leaf(samples):
            counts = {}
            for s in samples:
                frames = [frame for frame in s.frames if not is_cut(frame)]
                key = (s.comm, frames[-1].replace(";", ":") if frames else "")
                counts[key] = counts.get(key, 0) + s.count
            return counts

        self.assertEqual(
            by_comm_and_leaf(self.recording.samples), by_comm_and_leaf(self.recording.folded)
        )


class KindsThatTakeTime(RecordedOnce):
    """What programs do with their CPU time, besides touching pages."""

    @classmethod
    def commands(cls):
        return [
            [program("system_calls"), CPU_SECONDS],
            [program("rootless"), "0.5"],
        ]

    def test_system_calls_stand_above_the_frames_that_make_them(self):
        caller = ["from_root", "loop", "ask_kernel", "read_zeros"]
        width = len(caller)

        def asks(sample):  # the kernel's function, whatever stands below it
            return any(re.fullmatch("read(_iter)?_zero", frame) for frame in sample.frames)

        def stands_above_its_caller(sample):
            return (sample.frames[:width] == caller and not any(sample.kernel[:width])
                    and all(sample.kernel[width:]) and "vfs_read" in sample.frames[width:])  # fmt: skip

        for samples in (self.recording.samples, self.recording.folded):
            samples = [s for s in samples if s.comm == "system_calls" and asks(s)]
            self.assert_each(samples, stands_above_its_caller, "system calls")

    def test_stacks_that_end_early_say_so(self):
        samples = [s for s in self.recording.folded if s.comm == "rootless"]
        in_jit = [s for s in samples if s.calls("[unknown]")]
        self.assert_each(in_jit, lambda s: s.user_frames() == [BROKEN + "JIT code]", "[unknown]"], "code of no file")
        self.assert_each(samples, lambda s: s in in_jit or BROKEN + "JIT code]" not in s.frames, "all others")


class FilesOutOfReach(BpfTestCase):
    """Programs whose code or names only they have, or whose path, as the kernel tells it, leads nowhere or
    elsewhere. What they are can be read while they live."""

    def check(self, command, chain, pid_of=lambda pid: pid, before=lambda pid: None):
        with Running(*command) as process:
            pid = pid_of(process.pid)
            before(pid)
            recorder = self.start_recording(event=PAGE_FAULTS)
            truth = process.work(pid)
            recording = recorder.interrupt().finish()
        samples = [s for s in recording.samples if any(map(s.calls, truth.iterations))]
        self.assert_pages(samples, truth, chain, command)

    JIT_CHAIN = ["from_root", "loop", "enter_jit"]

    def test_code_of_a_jit_has_the_names_of_its_perf_map(self):
        self.check([program("jit"), pages_when_told(PAGES), "map"], lambda leaf: [*self.JIT_CHAIN, leaf],
                   before=lambda pid: self.addCleanup(os.unlink, "/tmp/perf-%d.map" % pid))

    def copy(self, name, to):
        path = os.path.join(self.directory, to)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(program(name), path)
        return path

    def test_a_deleted_program(self):
        path = self.copy("recursion", "deleted")
        self.check([path, "20", pages_when_told(PAGES)],
                   lambda leaf: ["from_root", "loop", *(["even", "odd"] * 10), "even", leaf],
                   before=lambda pid: os.unlink(path))

    # What a sample was in is read a second or so later, or at the end of a window, which may be just then. A
    # busy machine may keep that waiting, but not each time.
    TIMES = 4
    ENOUGH = 2
    CPU_SECONDS = 1.5

    def test_a_library_that_is_overwritten(self):
        """In place, so that whoever reads it later reads what is new. Old samples have old names, or none."""
        recorder = self.start_recording()
        old, new = [], []
        for _ in range(self.TIMES):
            with tempfile.TemporaryDirectory() as directory:
                for name in "plugin_a.so", "plugin_b.so":
                    shutil.copy(program(name), directory)
                for pids, cpu_seconds in (old, self.CPU_SECONDS), (new, 0.3):
                    with Running(program("plugins"), directory, "60") as process:
                        self.wait_for_cpu_time([process], cpu_seconds)
                        process.stop()
                    pids.append(process.pid)
                    shutil.copyfile(program("plugin_b.so"), os.path.join(directory, "plugin_a.so"))
        recording = recorder.interrupt().finish()

        old, new = ([[s for s in recording.of_pid(pid) if s.calls("call_plugin_a")] for pid in pids] for pids in (old, new))
        for samples in old:
            self.assertEqual(describe([s for s in samples if s.calls("plugin_b_work")]), "")
        for samples in new:
            self.assertTrue([s for s in samples if s.calls("plugin_b_work")])
            self.assertEqual(describe([s for s in samples if s.calls("plugin_a_work")]), "")
        self.assert_mostly("plugin_a_work", old)

    def test_programs_that_are_gone_though_more_files_are_mapped_than_may_be_held_open(self):
        limited = ("sh", "-c", 'ulimit -n 600 && exec "$@"', "sh")
        recorder = self.start_recording(within=limited)
        pids = []
        for number in range(self.TIMES):
            path = self.copy("plain", "gone_%d" % number)
            with Running(path, "60") as process:
                self.wait_for_cpu_time([process], self.CPU_SECONDS)
                process.stop()
            pids.append(process.pid)
            os.unlink(path)
        for number in range(500):
            self.copy("plugin_a.so", "many/%d" % number)
        with Running(sys.executable, "-c", MAP_ALL, os.path.join(self.directory, "many")):
            recording = recorder.interrupt().finish()
        self.assert_mostly("from_root", [recording.of_pid(pid) for pid in pids])

    def assert_mostly(self, function, programs):
        """Enough of `programs`, which are lists of samples, are in `function` half of the time."""
        counts = [(count_where(samples, lambda s: s.calls(function)), count_where(samples, lambda _: True))
                  for samples in programs]  # fmt: skip
        self.assertGreaterEqual(sum(2 * named > count > 0 for named, count in counts), self.ENOUGH, counts)

    def test_a_program_in_memory(self):
        self.check([program("from_memfd"), program("mangled"), pages_when_told(PAGES)],
                   lambda leaf: ["from_root", "(anonymous namespace)::Loop", leaf])

    def test_a_program_in_a_mount_namespace(self):
        # The path of the program exists outside too, and is another program there.
        hidden = os.path.dirname(self.copy("rootless", "hidden/in_namespace"))
        script = 'mount -t tmpfs none "$1" && cp "$2" "$1/in_namespace" && exec "$1/in_namespace" "$3"'
        self.check(["unshare", "--mount", "sh", "-c", script, "sh", hidden, program("plain"), pages_when_told(PAGES)],
                   lambda leaf: ["from_root", "loop", "outer", leaf])

    def test_a_jit_in_a_pid_namespace_with_its_map_in_a_mount_namespace(self):
        # The program is opened first, since it may lie below /tmp.
        script = (
            'exec 3<"$1" && mount -t tmpfs none /tmp && cp /proc/self/fd/3 /tmp/jit_in_pid_ns &&'
            ' exec unshare --pid --fork --kill-child /tmp/jit_in_pid_ns "$2" map 3<&-'
        )

        def child(pid):
            with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
                return int(file.read())

        self.check(["unshare", "--mount", "sh", "-c", script, "sh", program("jit"), pages_when_told(PAGES)],
                   lambda leaf: [*self.JIT_CHAIN, leaf], pid_of=child)


# Runs a copy of $2 called $1 with a /tmp of its own, where its perf map goes with it. (The program may lie
# below /tmp.)
IN_OWN_TMP = """
exec 3<"$2" && mount -t tmpfs none /tmp && cp /proc/self/fd/3 "/tmp/$1" && program=$1 && shift 2 &&
exec "/tmp/$program" "$@" 3<&-
"""


class JitCode(BpfTestCase):
    """Code that is in no file, in all the ways in which compilers tell its names."""

    CHAIN = ["from_root", "loop", "enter_jit"]
    WAYS = {
        "jit_map": ["map"],
        "jit_shared": ["shared", "map"],
        "jit_map_child": ["map", "child"],
        "jit_dump": ["dump"],
        "jit_dump_child": ["dump", "child"],
        "jit_dump_shared": ["dump", "shared"],
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with contextlib.ExitStack() as running:
            recorder = Recorder(cls.directory, event=PAGE_FAULTS)
            running.callback(recorder.kill)
            recorder.wait_until_sampling()
            # From now on, so that it is seen who forks whom.
            cls.truths = {name: cls.run_in_own_tmp(running, name, *ways) for name, ways in cls.WAYS.items()}
            cls.recording = recorder.interrupt().finish()

    @classmethod
    def run_in_own_tmp(cls, running, name, *ways):
        process = running.enter_context(
            Running("unshare", "--mount", "sh", "-c", IN_OWN_TMP, "sh", name, program("jit"),
                    pages_when_told(PAGES), *ways))  # fmt: skip
        if "child" not in ways:
            return process.work()
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
            child = int(file.read())
        running.callback(os.kill, child, signal.SIGTERM)
        return process.work(child)

    def test_has_its_names(self):
        for name, truth in self.truths.items():
            with self.subTest(name):
                self.assert_pages(self.recording.of_pid(truth.pid), truth, lambda leaf: [*self.CHAIN, leaf], name)

    def test_has_the_lines_of_its_jitdump(self):
        for name, ways in self.WAYS.items():
            places = collections.defaultdict(set)
            for sample in self.recording.profile.samples:
                for frame in sample.frames:
                    if sample.labels["pid"] == self.truths[name].pid:
                        places[frame.function].add((frame.file, frame.line))
            for function, line in (("jit_hot", 10), ("jit_cold", 20)):
                expected = ("jit_source.js", line) if "dump" in ways else ("", 0)
                with self.subTest(name):
                    self.assertEqual(places[function], {expected}, function)


class NamesThatComeLate(BpfTestCase):
    """What becomes known in a later window of a recording is the name of what was sampled before."""

    WINDOW_SECONDS = 5

    def test_are_those_of_earlier_windows(self):
        with Running(program("jit"), pages_when_told(PAGES)) as jit:
            recorder = self.start_recording(event=PAGE_FAULTS)
            truth = jit.work()
            # If a window took longer the names would come in time, which is no failure.
            time.sleep(1.2 * self.WINDOW_SECONDS)
            path = "/tmp/perf-%d.map" % jit.pid
            self.addCleanup(os.unlink, path)
            code = json.loads(jit.before_ready)
            with open(path, "w", encoding="utf-8") as file:
                for name in ("jit_hot", "jit_cold"):
                    file.write("%s %x %s\n" % (code[name], code["size"], name))
            recording = recorder.interrupt().finish()
        self.assert_pages(recording.of_pid(jit.pid), truth, lambda leaf: [*JitCode.CHAIN, leaf], "a JIT")


class SeparateDebugFiles(BpfTestCase):
    """One program in two roots, of which one has its debug file: without it the program's own
    functions cannot be unwound, and have no source."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with contextlib.ExitStack() as running:
            processes = [
                running.enter_context(Running("chroot", cls.make_root(name), "/" + name, pages_when_told(PAGES)))
                for name in ("with_file", "without_file")
            ]
            recorder = Recorder(cls.directory, event=PAGE_FAULTS)
            running.callback(recorder.kill)
            recorder.wait_until_sampling()
            wait_for(lambda: rests(recorder.process.pid, "table-loader"), "the unwind tables")
            for process in processes:
                process.work()
            cls.recording = recorder.interrupt().finish()

    @classmethod
    def make_root(cls, name):
        root = os.path.join(cls.directory, name)
        os.mkdir(root)
        shutil.copy(program("debug_frame"), os.path.join(root, name))
        loaded = subprocess.run(["ldd", program("debug_frame")], check=True, text=True,
                                stdout=subprocess.PIPE).stdout
        libraries = re.findall(r"(/\S+) \(0x", loaded)
        subprocess.run(["cp", "--parents", "--dereference", *libraries, root], check=True)
        if name == "with_file":
            cls.install_debug_file(root)
        return root

    @classmethod
    def install_debug_file(cls, root):
        notes = subprocess.run(["readelf", "--notes", program("debug_frame")], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        directory = os.path.join(root, "usr/lib/debug/.build-id", build_id[:2])
        os.makedirs(directory)
        shutil.copy(program("debug_frame") + ".debug",
                    os.path.join(directory, build_id[2:] + ".debug"))

    CHAIN = ["main", "outer", "middle", "inner"]

    def working(self, comm):
        samples = [s for s in self.recording.folded if s.comm == comm and s.calls("inner")]
        self.assertEqual(count_where(samples, lambda s: True), PAGES, comm)
        return in_time(samples)

    def test_in_the_process_s_root_make_its_stacks_complete(self):
        bad = [s for s in self.working("with_file") if not s.has_chain(self.CHAIN) or is_cut(s.frames[0])]
        self.assertEqual(describe(bad), "")

    def places(self, comm):
        """{function: {file:line}} of the program itself."""
        places = collections.defaultdict(set)
        for sample in self.recording.profile.samples:
            for frame in sample.frames:
                if sample.labels.get("comm") == comm and os.path.basename(frame.mapping) == comm:
                    places[frame.function].add((os.path.basename(frame.file), frame.line))
        return places

    def test_in_the_process_s_root_tell_files_and_lines(self):
        source = os.path.join(os.path.dirname(__file__), "../programs/debug_frame.c")
        with open(source) as file:
            lines = file.read().splitlines()
        touched = next(number for number, line in enumerate(lines, 1) if "take_page() = 1" in line)
        self.assertEqual(self.places("with_file")["inner"], {("debug_frame.c", touched)})

    def test_are_what_tells_files_and_lines(self):
        self.assertEqual(self.places("without_file")["inner"], {("", 0)})

    def test_are_what_makes_them_complete(self):
        bad = [s for s in self.working("without_file") if s.has_chain(self.CHAIN)]
        self.assertEqual(describe(bad), "")


class GoPrograms(RecordedOnce):
    """Threads that Go has cloned begin in its runtime; its call frame information does not say so."""

    @classmethod
    def commands(cls):
        go = shutil.which("go")
        if not go:
            skip_or_fail("no go (Debian package golang-go) to build a program with")
        source = os.path.join(os.path.dirname(__file__), "../programs/go_threads.go")
        environment = dict(os.environ, HOME=os.environ.get("HOME", "/root"), GOTOOLCHAIN="local",
                           CGO_ENABLED="0")
        for name, flags in (("go_threads", ""), ("go_stripped", "-s -w")):
            subprocess.run([go, "build", "-ldflags=" + flags, "-o",
                            os.path.join(cls.directory, name), source], check=True, env=environment)
        return [[os.path.join(cls.directory, name)] for name in ("go_threads", "go_stripped")]

    def assert_whole_or_counted(self, samples, is_whole):
        """Go's call frame information has gaps, in code that few ticks meet: what is cut there says so, and the
        accounting has it (each recording is judged by that)."""
        whole = count_where(samples, is_whole)
        self.assertEqual(describe(s for s in samples if not is_whole(s) and not is_cut(s.frames[0])), "")
        self.assertGreater(whole, count_where(in_time(samples), lambda s: is_cut(s.frames[0])))

    def test_threads_have_whole_stacks(self):
        samples = [s for s in self.recording.of_comm("go_threads") if s.calls("runtime.mstart0")]
        self.assert_each(samples, lambda s: is_named(s.frames[0], "runtime.mstart.abi0"), "mstart")

    def test_a_thread_that_schedules_has_a_whole_stack(self):
        samples = [s for s in self.recording.of_comm("go_threads") if s.calls("runtime.park_m")]
        if not in_time(samples):
            not_judged("no thread of Go came to schedule at a tick")
            return
        self.assert_each(samples, lambda s: is_named(s.frames[0], "runtime.mcall"), "mcall")

    def test_goroutines_have_whole_stacks(self):
        samples = [s for s in self.recording.of_comm("go_threads") if s.calls("main.work")]
        callers = (["main.main.func1", "main.workUntil"], ["main.replaceThreads.func1"])
        self.assert_whole_or_counted(
            samples, lambda s: is_named(s.frames[0], "runtime.goexit.abi0")
            and any(s.has_chain([*chain, "main.work"]) for chain in callers))

    def test_without_symbols_functions_have_names_and_leaves_their_callers(self):
        samples = [s for s in self.recording.of_comm("go_stripped") if s.calls("main.work")]
        callers = (["main.main.func1", "main.workUntil"], ["main.replaceThreads.func1"])
        self.assert_whole_or_counted(
            samples, lambda s: is_named(s.frames[0], "runtime.goexit")
            and any(s.has_chain([*chain, "main.work"]) for chain in callers))

    def test_without_symbols_stacks_are_as_whole(self):
        samples = self.recording.of_comm("go_stripped")
        self.assert_whole_or_counted(samples, lambda s: not is_cut(s.frames[0]))

    def test_the_clock_is_read_by_those_who_ask_for_it(self):
        """The vDSO is called on the thread's own stack. A stack that ends there says so."""
        for comm in ("go_threads", "go_stripped"):
            samples = [s for s in self.recording.of_comm(comm) if s.calls("time.now")]
            self.assertEqual(describe(
                s for s in samples if not is_cut(s.frames[0])
                and not any(s.calls(name) for name in ("time.Now", "runtime.gcMarkTermination"))), "")


if __name__ == "__main__":
    main()
