# SPDX-License-Identifier: Apache-2.0
"""Every kind of program and every shape of an ELF file comes out with its own names.

Each class makes one recording of all its programs at once; each test looks at one of them.
"""

import collections
import ctypes.util
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import threading
from unittest import mock

from pyrometer_harness import (
    AT_LIMIT, BROKEN, TOO_SOON, BpfTestCase, all_at_once, count_where, describe, is_cut, is_named, main,
    program, record, skip_or_fail, stats_of,
)

CPU_SECONDS = "1"


class RecordedOnce(BpfTestCase):
    """One recording for all tests of a class."""

    @classmethod
    def commands(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recording = record(cls.directory, command=all_at_once(*cls.commands()))

    def truth_of(self, samples):
        (pid,) = {sample.labels["pid"] for sample in samples}
        (truth,) = (truth for truth in self.recording.truths if truth.pid == pid)
        return truth

    def assert_named(self, comm):
        """All functions of the program stand in its samples with their shares."""
        samples = self.recording.of_comm(comm)
        self.assertTrue(samples, "no samples of " + comm)
        truth = self.truth_of(samples)
        self.assert_shares(samples, truth, comm)
        self.assert_cpu_time(self.recording, samples, truth.cpu_ns, comm)
        return samples

    def assert_mostly(self, samples, condition, what, share=0.98):
        samples = list(samples)
        total = count_where(samples, lambda s: True)
        self.assertGreater(total, 0, what + ": no samples")
        self.assertGreaterEqual(
            count_where(samples, condition), share * total,
            what + describe(s for s in samples if not condition(s)),
        )


class ProgramsThatBegin(BpfTestCase):
    def test_before_their_first_instruction_they_are_at_it(self):
        """The kernel has put its address where it is else that behind the system call."""
        command = [program("spawn_loop"), "1000", "2", "/bin/true"]
        recording = record(self.directory, command=command, hertz=4999)
        beginning = [s for s in recording.of_comm("true")
                     if s.user_frames() and any(f.endswith("sys_execve") for f in s.frames)]  # fmt: skip
        total = count_where(beginning, lambda s: True)
        self.assertGreater(total, 0)
        at_it = count_where(beginning, lambda s: s.user_frames() == ["_start"])
        # In the middle of an exec a few have the old program's address.
        self.assertGreaterEqual(at_it, 0.8 * total, describe(beginning))


class Shapes(RecordedOnce):
    """One source, linked and stripped in different ways."""

    NAMED = ("plain", "plain_absolute", "plain_static", "plain_static_pie", "plain_one_segment",
             "plain_two_segments", "plain_minidebug")

    @classmethod
    def commands(cls):
        names = (*cls.NAMED, "plain_stripped", "plain_dynsym")
        return [[program(name), CPU_SECONDS] for name in names] + [[program("exec_ping_no_id"), "0", "100"]]

    def test_every_shape_has_its_names_and_shares(self):
        for name in self.NAMED:
            with self.subTest(name):
                samples = self.assert_named(name)
                working = [s for s in samples if s.calls("seventy") or s.calls("thirty")]
                self.assert_mostly(
                    working,
                    lambda s: s.has_chain(["from_root", "loop", "outer", "seventy"])
                    or s.has_chain(["from_root", "loop", "outer", "thirty"]),
                    name + ": call chain",
                )

    def test_mappings_carry_path_and_build_id(self):
        found = {m.filename: m.build_id for m in self.recording.profile.mappings}
        for name in ("plain", "plain_static", "plain_stripped"):
            self.assertRegex(found.get(program(name), "missing"), "^[0-9a-f]{40}$", name)

    def test_a_file_without_a_build_id_is_named_by_its_hash(self):
        found = {m.filename: m.build_id for m in self.recording.profile.mappings}
        with open(program("exec_ping_no_id"), "rb") as file:
            content = file.read()
        hashed = content[:4096] + content[-4096:] + len(content).to_bytes(8, "big")
        self.assertEqual(found[program("exec_ping_no_id")], hashlib.sha256(hashed).hexdigest()[:32])

    def frames_of(self, name):
        """(function, count) of all frames in the file itself."""
        for sample in self.recording.of_comm(name):
            for function, mapping in zip(sample.frames, sample.mappings):
                if os.path.basename(mapping) == name:
                    yield function, sample.count

    def test_without_symbols_a_function_is_its_file_and_beginning(self):
        """from_root, loop, outer, seventy and thirty have one frame each."""
        unnamed = {function for function, _ in self.frames_of("plain_stripped")
                   if not function.endswith("@plt")} - {"_start", "_init", "[plt]"}  # fmt: skip
        for function in unnamed:
            self.assertRegex(function, r"^plain_stripped\+0x[0-9a-f]+$")
        samples = self.recording.of_comm("plain_stripped")
        leaves = collections.Counter()
        for sample in samples:
            # While it begins and ends a program is in the kernel, without a stack of its own.
            if user_frames := sample.user_frames():
                leaves[user_frames[-1]] += sample.count
        (seventy, most), (thirty, next_most), *_ = leaves.most_common()
        truth = self.truth_of(samples)
        self.assertGreaterEqual(most + next_most, 0.97 * leaves.total(), leaves)
        self.assert_share(most, most + next_most, truth.iterations["seventy"] / sum(truth.iterations.values()),
                          "the larger of two functions without a name")  # fmt: skip
        self.assertLessEqual({seventy, thirty}, unnamed)
        self.assertLess(len(unnamed), 12, unnamed)

    def test_a_gap_between_exported_functions_inherits_no_name(self):
        samples = self.recording.of_comm("plain_dynsym")
        truth = self.truth_of(samples)
        total = sum(truth.iterations.values())
        leaves = {"seventy": 0, "gap": 0}
        for sample in samples:
            leaf = sample.user_frames()[-1] if sample.user_frames() else ""
            if is_named(leaf, "seventy"):
                leaves["seventy"] += sample.count
            elif re.fullmatch(r"plain_dynsym\+0x[0-9a-f]+", leaf):
                leaves["gap"] += sample.count
        everything = count_where(samples, lambda s: True)
        self.assertGreaterEqual(sum(leaves.values()), 0.97 * everything, describe(samples))
        self.assert_share(leaves["seventy"], sum(leaves.values()),
                          truth.iterations["seventy"] / total, "seventy, exported")


class Kinds(RecordedOnce):
    """What programs do, besides working."""

    @classmethod
    def commands(cls):
        return [
            [program("crossing"), CPU_SECONDS],
            [program("plugins"), os.path.dirname(program("plugins")), CPU_SECONDS],
            [program("mangled"), CPU_SECONDS],
            [program("threads"), CPU_SECONDS],
            [program("fork_children"), "0.5"],
            [program("system_calls"), CPU_SECONDS],
            [program("recursion"), "40", "0.5"],
            [program("recursion"), "700", "0.5"],
            [program("rootless"), "0.5"],
            [program("jit"), CPU_SECONDS, "map"],
        ]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for truth in cls.recording.truths:
            if "jit_hot" in truth.iterations:
                os.unlink("/tmp/perf-%d.map" % truth.pid)

    def test_calls_across_libraries(self):
        samples = self.assert_named("crossing")
        self.assert_mostly(
            (s for s in samples if s.calls("library_hidden")),
            lambda s: s.has_chain(["from_root", "loop", "library_outer", "program_callback",
                                   "library_inner", "library_hidden"]),
            "into the library, out and in again",
        )

    def test_libraries_that_take_turns_at_one_address(self):
        samples = self.assert_named("plugins")
        for here, other in (("a", "b"), ("b", "a")):
            wrong = [s for s in samples if s.calls("call_plugin_" + here)
                     and s.calls("plugin_%s_work" % other)]
            self.assertEqual(count_where(wrong, lambda s: True), 0, describe(wrong))

    def test_names_of_cxx(self):
        samples = self.assert_named("mangled")
        self.assertFalse(
            [s for s in samples if any(frame.startswith("_Z") for frame in s.frames)],
            "mangled names are left",
        )

    def test_names_of_threads(self):
        samples = self.recording.of_comm("threads")
        truth = self.truth_of(samples)
        working = [s for s in samples if s.calls("thread_slice")]
        total = count_where(working, lambda s: True)
        for thread, iterations in truth.iterations.items():
            hits = count_where(working, lambda s, thread=thread: s.labels["thread"] == thread)
            self.assert_share(hits, total, iterations / sum(truth.iterations.values()), thread)
        self.assert_mostly(
            working, lambda s: s.has_chain(["from_root", "thread_loop", "thread_slice"]), "threads"
        )

    def test_forked_children_keep_the_names_they_give_themselves(self):
        for child in range(3):
            comm, work = "child-%d" % child, "child_work_%d" % child
            samples = self.recording.of_comm(comm)
            self.assert_mostly(
                samples, lambda s, work=work: s.has_chain(["from_root", "loop", work]), comm, 0.97
            )
            self.assert_cpu_time(self.recording, samples, 0.5e9, comm)

    def test_system_calls_stand_above_the_frames_that_make_them(self):
        samples = self.recording.of_comm("system_calls")
        caller = ["from_root", "loop", "ask_kernel", "read_zeros"]

        def in_system_call(sample):
            width = len(caller)
            return (
                sample.has_chain(caller) and not any(sample.kernel[:width])
                and len(sample.frames) > width and all(sample.kernel[width:])
                and any("read" in frame for frame in sample.frames[width:])
            )

        self.assert_mostly(samples, in_system_call, "system calls", 0.9)
        folded = [s for s in self.recording.folded if s.comm == "system_calls"]
        self.assert_mostly(folded, in_system_call, "system calls, collapsed", 0.9)

    def test_recursion_is_neither_shortened_nor_folded_together(self):
        samples = [s for s in self.recording.of_comm("recursion")
                   if s.calls("bottom") and len(s.frames) < 100]
        expected = ["from_root", "loop", *(["even", "odd"] * 20), "even", "bottom"]
        self.assert_mostly(samples, lambda s: s.has_chain(expected), "40 calls deep")

    def test_deeper_stacks_than_the_limit_keep_their_leaf_and_are_marked(self):
        deep = [s for s in self.recording.folded if s.comm == "recursion" and len(s.frames) > 100]
        self.assert_mostly(
            deep,
            lambda s: s.frames[0] == AT_LIMIT and s.calls("bottom")
            and s.frames.count("even") >= 250,
            "700 calls deep",
        )
        self.assertGreaterEqual(
            self.recording.accounting.truncated,
            count_where(deep, lambda s: s.frames[0] == AT_LIMIT),
        )

    def test_stacks_that_end_early_say_so(self):
        samples = [s for s in self.recording.folded if s.comm == "rootless"]
        self.assert_mostly(
            samples, lambda s: s.frames[0] == BROKEN + "JIT code]" and "main" not in s.frames,
            "rootless", 0.95,
        )

    def test_code_of_a_jit_has_the_names_of_its_perf_map(self):
        samples = self.assert_named("jit")
        self.assert_mostly(
            (s for s in samples if s.calls("jit_hot")),
            lambda s: s.has_chain(["from_root", "loop", "enter_jit", "jit_hot"]), "into the JIT",
        )

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


class FilesOutOfReach(RecordedOnce):
    """Programs whose path, as the kernel tells it, leads nowhere or elsewhere."""

    @classmethod
    def commands(cls):
        deleted = os.path.join(cls.directory, "deleted")
        shutil.copy(program("recursion"), deleted)
        hidden = os.path.join(cls.directory, "hidden")
        os.mkdir(hidden)
        # The path of the program exists outside too, and is another program there.
        shutil.copy(program("rootless"), os.path.join(hidden, "in_namespace"))
        in_namespace = (
            'mount -t tmpfs none "$1" && cp "$2" "$1/in_namespace" && exec "$1/in_namespace" "$3"'
        )
        # The program is opened first, since it may lie below /tmp.
        jit_in_namespace = (
            'exec 3<"$1" && mount -t tmpfs none /tmp && cp /proc/self/fd/3 /tmp/jit_in_pid_ns &&'
            ' exec unshare --pid --fork /tmp/jit_in_pid_ns "$2" map 3<&-'
        )
        cls.deleted = deleted
        return [
            ["sh", "-c", '"$1" 20 "$2" | { read ready; rm "$1"; cat; }', "sh", deleted,
             CPU_SECONDS],
            [program("from_memfd"), program("mangled"), CPU_SECONDS],
            ["unshare", "--mount", "sh", "-c", in_namespace, "sh", hidden, program("plain"),
             CPU_SECONDS],
            ["unshare", "--mount", "sh", "-c", jit_in_namespace, "sh", program("jit"),
             CPU_SECONDS],
        ]

    def test_a_deleted_program(self):
        self.assertFalse(os.path.exists(self.deleted))
        self.assert_named("deleted")

    def test_a_program_in_memory(self):
        (truth,) = (t for t in self.recording.truths if "bottom" not in t.iterations
                    and any("Nobody" in name for name in t.iterations))
        self.assert_shares(self.recording.of_pid(truth.pid), truth, "memfd")

    def test_a_program_in_a_mount_namespace(self):
        self.assert_named("in_namespace")

    def test_a_jit_in_a_pid_namespace_with_its_map_in_a_mount_namespace(self):
        samples = self.recording.of_comm("jit_in_pid_ns")
        (truth,) = (t for t in self.recording.truths if "jit_hot" in t.iterations)
        self.assert_shares(samples, truth, "jit in namespaces")


def build_id_of(path):
    notes = subprocess.run(["readelf", "--notes", path], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


class SeparateDebugFiles(RecordedOnce):
    """One program in two roots, of which one has its debug file: without it the program's own
    functions cannot be unwound."""

    @classmethod
    def commands(cls):
        return [["chroot", cls.make_root(name), "/" + name, CPU_SECONDS]
                for name in ("with_file", "without_file")]

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
        build_id = build_id_of(program("debug_frame"))
        directory = os.path.join(root, "usr/lib/debug/.build-id", build_id[:2])
        os.makedirs(directory)
        shutil.copy(program("debug_frame") + ".debug",
                    os.path.join(directory, build_id[2:] + ".debug"))

    CHAIN = ["main", "outer", "middle", "inner"]

    def working(self, comm):
        samples = [s for s in self.recording.folded if s.comm == comm and s.calls("inner")]
        self.assertGreater(count_where(samples, lambda s: True), 100, comm)
        return samples

    def test_in_the_process_s_root_make_its_stacks_complete(self):
        self.assert_mostly(
            self.working("with_file"), lambda s: s.has_chain(self.CHAIN) and not is_cut(s.frames[0]),
            "with its debug file",
        )

    def test_are_what_makes_them_complete(self):
        self.assert_mostly(
            self.working("without_file"), lambda s: not s.has_chain(self.CHAIN),
            "without its debug file",
        )


class DebugFilesOfAServer(BpfTestCase):
    """The same program, whose debug file a debuginfod server has."""

    def serve(self, files):
        """The URL of a server that has these: build id -> path."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                match = re.fullmatch(r"/buildid/([0-9a-f]+)/debuginfo", self.path)
                if not match or match[1] not in files:
                    return self.send_error(404)
                with open(files[match[1]], "rb") as file:
                    content = file.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return "http://127.0.0.1:%d" % server.server_port

    def test_make_stacks_complete(self):
        if not ctypes.util.find_library("debuginfod"):
            skip_or_fail("no libdebuginfod.so.1 (Debian package libdebuginfod1)")
        build_id = build_id_of(program("debug_frame"))
        cache = os.path.join(self.directory, "cache")
        url = self.serve({build_id: program("debug_frame") + ".debug"})
        with mock.patch.dict(os.environ, DEBUGINFOD_URLS=url, no_proxy="127.0.0.1"):
            recording = record(self.directory, "--debuginfod", "--cache", cache, "--stats=json",
                               command=[program("debug_frame"), CPU_SECONDS])
        samples = [s for s in recording.of_comm("debug_frame") if s.calls("inner")]
        whole = [s for s in samples if s.has_chain(SeparateDebugFiles.CHAIN)]
        self.assertGreater(count_where(whole, lambda s: True),
                           0.98 * count_where(samples, lambda s: True), describe(samples))
        self.assertGreater(stats_of(recording.stderr)["debuginfod_requests_total{result=found}"], 0)
        self.assertIn(build_id, os.listdir(os.path.join(cache, "debuginfod")))


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

    def assert_rooted(self, function, root):
        """All stacks with the function begin at the root, but those that say they came too soon.

        That may happen on a busy machine before the program's table is read, and seldom.
        """
        samples = [s for s in self.recording.of_comm("go_threads") if s.calls(function)]
        self.assert_mostly(samples, lambda s: s.frames[0] != TOO_SOON, function + ": too soon", share=0.9)
        samples = [s for s in samples if s.frames[0] != TOO_SOON]
        self.assert_mostly(samples, lambda s: is_named(s.frames[0], root), function, share=1)

    def test_threads_have_whole_stacks(self):
        self.assert_rooted("runtime.mstart0", "runtime.mstart.abi0")

    def test_a_thread_that_schedules_has_a_whole_stack(self):
        self.assert_rooted("runtime.park_m", "runtime.mcall")

    def test_goroutines_have_whole_stacks(self):
        samples = [s for s in self.recording.of_comm("go_threads") if s.calls("main.work")]
        self.assert_mostly(
            samples, lambda s: s.has_chain(["main.main.func1", "main.workUntil", "main.work"])
            and is_named(s.frames[0], "runtime.goexit.abi0"), "goexit")

    def test_without_symbols_functions_have_names(self):
        samples = self.recording.of_comm("go_stripped")
        working = [s for s in samples if s.calls("main.work")]
        self.assert_mostly(
            working, lambda s: s.has_chain(["main.main.func1", "main.workUntil", "main.work"])
            and is_named(s.frames[0], "runtime.goexit"), "stripped")
        # Of the program's own frames none is "go_stripped+0x1234".
        self.assert_mostly(
            samples, lambda s: not any(f.startswith("go_stripped+") for f in s.frames[1:]), "named",
            share=1)

    def test_without_symbols_stacks_are_as_whole(self):
        # Of the vDSO, which is called on a thread's own stack, frame pointers do not lead back.
        samples = [s for s in self.recording.of_comm("go_stripped")
                   if not any("vdso" in frame for frame in s.frames)]
        self.assert_mostly(samples, lambda s: not is_cut(s.frames[0]), "stripped")


if __name__ == "__main__":
    main()
