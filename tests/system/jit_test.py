# SPDX-License-Identifier: Apache-2.0
"""What JIT compilers tell of their code, in jitdumps and perf maps, names its frames."""

import os
import shutil
import tempfile

from pyrometer_harness import (
    BpfTestCase, Running, all_at_once, count_where, describe, main, program, record, skip_or_fail,
)

CPU_SECONDS = "2"
JIT = "[jit]"


def every_sample(_):
    return True


class JitDumps(BpfTestCase):
    """A program that announces code of known shares, lines and times."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        command = [program("jit_dump"), CPU_SECONDS, cls.directory]
        cls.recording = record(cls.directory, command=all_at_once(command))
        (cls.truth,) = cls.recording.truths
        cls.samples = cls.recording.of_comm("jit_dump")

    def test_code_has_its_names_and_shares(self):
        self.assertEqual(self.recording.status, 0, self.recording.stderr)
        self.assert_shares(self.samples, self.truth, "jit_dump")
        for name, caller in (("dump_hot", "enter_jit"), ("dump_moved", "enter_moved")):
            found = [s for s in self.samples if s.calls(name)]
            self.assertGreater(count_where(found, every_sample), 100, describe(self.samples))
            wrong = [s for s in found if not s.has_chain(["from_root", "loop", caller, name])]
            self.assertLess(count_where(wrong, every_sample), 0.01 * count_where(found, every_sample),
                            describe(wrong))

    def test_code_that_takes_turns_at_one_address_has_the_name_of_its_time(self):
        for caller, name in (("first_turn", "dump_first"), ("second_turn", "dump_second")):
            here = [s for s in self.samples if s.calls(caller) and s.frames[-1] != caller]
            self.assertGreater(count_where(here, every_sample), 100, describe(self.samples))
            wrong = [s for s in here if not s.calls(name)]
            self.assertEqual(count_where(wrong, every_sample), 0, describe(wrong))

    def test_lines_have_their_shares(self):
        for name, file in (("dump_hot", "/made/up/hot.src"), ("dump_cold", "/made/up/cold.src"),
                           ("dump_moved", "/made/up/moved.src")):
            lines = {}
            for sample in self.recording.profile.samples:
                for frame in sample.frames:
                    if frame.function == name and frame.mapping == JIT:
                        self.assertEqual(frame.file, file)
                        lines[frame.line] = lines.get(frame.line, 0) + sample.values[0]
            total = sum(lines.values())
            in_loops = lines.get(11, 0) + lines.get(12, 0)
            self.assertGreaterEqual(in_loops, 0.98 * total, lines)
            self.assert_share(lines[11], in_loops, 0.75, "%s: line 11 of %s" % (name, lines))

    def test_code_without_lines_has_none(self):
        frames = [frame for sample in self.recording.profile.samples for frame in sample.frames
                  if frame.function in ("dump_first", "dump_second")]
        self.assertTrue(frames)
        self.assertEqual({(frame.file, frame.line) for frame in frames}, {("", 0)})


class JitDumpsInPlaces(BpfTestCase):
    """The file is found by its mapping, wherever it lies and whoever maps it."""

    def record_announced(self, *command, before=lambda pid: None):
        """The samples below enter_jit of a program that announced its code before the recording."""
        with Running(*command) as running:
            before(running.pid)
            recording = self.record_working([running], "--pid", str(running.pid))
        self.assertEqual(recording.status, 0, recording.stderr)
        # It draws lots which code to enter.
        own = ("enter_jit", "draw")
        samples = [s for s in recording.samples if s.calls("enter_jit") and s.frames[-1] not in own]
        self.assertGreater(count_where(samples, every_sample), 100, describe(recording.samples))
        return samples

    def assert_named(self, samples):
        wrong = [s for s in samples if not s.calls("dump_hot") and not s.calls("dump_cold")]
        self.assertEqual(count_where(wrong, every_sample), 0, describe(wrong))

    def test_announced_before_the_recording(self):
        self.assert_named(self.record_announced(program("jit_dump"), "0", self.directory))

    def test_deleted_after_it_was_announced(self):
        def delete(pid):
            os.unlink(os.path.join(self.directory, "jit-%d.dump" % pid))
        self.assert_named(self.record_announced(program("jit_dump"), "0", self.directory, before=delete))

    def test_preferred_to_a_perf_map(self):
        path = []

        def write_map(pid):
            path.append("/tmp/perf-%d.map" % pid)
            with open(path[0], "w") as file:
                file.write("0 7fffffffffff of_the_map\n")
        try:
            samples = self.record_announced(program("jit_dump"), "0", self.directory, before=write_map)
        finally:
            os.unlink(path[0])
        self.assert_named(samples)

    def test_rewritten_with_rubbish(self):
        """Then nothing has a wrong name, and the recording goes on."""
        def rewrite(content):
            def write(pid):
                with open(os.path.join(self.directory, "jit-%d.dump" % pid), "wb") as file:
                    file.write(content)
            return write

        header = (0x4A695444).to_bytes(4, "little") + bytes([1, 0, 0, 0, 40, 0, 0, 0]) + bytes(28)
        kinds = {
            "nothing": b"",
            "another byte order": (0x4A695444).to_bytes(4, "big") + header[4:],
            "random bytes": bytes(i * i % 251 for i in range(100000)),
            "endless records": header + bytes(4) + b"\xff" * 1000,
            "times of another clock": header[:32] + bytes([1]) + header[33:],
        }
        for kind, content in kinds.items():
            with self.subTest(kind):
                samples = self.record_announced(program("jit_dump"), "0", self.directory,
                                                before=rewrite(content))
                # Turns, which it goes on to announce, are written where its descriptor stands.
                self.assertFalse([s for s in samples if s.calls("dump_hot")])


NODE_LOAD = """
function hotLoop(n) {
  let s = 0;
  for (let i = 0; i < n; i++) {
    s = (s * 31 + i) | 0;
  }
  return s;
}
class Matrix {
  multiply(n) {
    let s = 0;
    for (let i = 0; i < n; i++) {
      s += Math.sqrt(i) * 1.5;
    }
    return s;
  }
}
const matrix = new Matrix();
let t = 0;
while (process.cpuUsage().user < 2e6) {
  for (let k = 0; k < 20; k++) {
    t += hotLoop(20000);
    t += matrix.multiply(20000);
  }
}
console.log(t);
"""


class Node(BpfTestCase):
    """V8's own jitdump and perf map."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("node"):
            skip_or_fail("no node (Debian package nodejs), whose JIT compiler writes both")
        cls.script = os.path.join(cls.directory, "load.js")
        with open(cls.script, "w") as file:
            file.write(NODE_LOAD)

    def record_node(self, option):
        with tempfile.TemporaryDirectory(dir=self.directory) as place:
            recording = record(self.directory, command=["sh", "-c", 'cd "$1" && exec node "$2" "$3"', "sh",
                                                        place, option, self.script])
        self.assertEqual(recording.status, 0, recording.stderr)
        return recording

    def assert_named(self, recording):
        """Nearly all that ran in the two functions, which is nearly all that ran, has their names."""
        samples = [s for s in recording.of_comm("node") if s.user_frames()]
        leaves = [s for s in samples if s.user_frames()[-1] == "[unknown]" or JIT in s.mappings]
        total = count_where(leaves, every_sample)
        self.assertGreater(total, 500, describe(samples))
        for function in ("hotLoop", "multiply"):
            found = [s for s in leaves if any(function + " " in frame for frame in s.frames)]
            self.assertGreater(count_where(found, every_sample), 0.1 * total, function + describe(leaves))
        unnamed = [s for s in leaves if "[unknown]" in s.user_frames()]
        self.assertLess(count_where(unnamed, every_sample), 0.02 * total, describe(unnamed))

    def test_perf_prof_names_functions_and_lines(self):
        """V8 20 overwrites some file names while it writes them: then a function has no lines."""
        recording = self.record_node("--perf-prof")
        self.assert_named(recording)
        of_function = {"JS:*hotLoop ": range(2, 9), "JS:*multiply ": range(10, 17)}
        for sample in recording.profile.samples:
            leaf = sample.frames[-1]
            for function, lines in of_function.items():
                if leaf.mapping == JIT and leaf.function.startswith(function) and leaf.line:
                    self.assertEqual(leaf.file, self.script)
                    self.assertIn(leaf.line, lines, leaf)

    def test_perf_basic_prof_names_functions(self):
        recording = self.record_node("--perf-basic-prof")
        for pid in {s.labels["pid"] for s in recording.of_comm("node")}:
            if os.path.exists("/tmp/perf-%d.map" % pid):
                os.unlink("/tmp/perf-%d.map" % pid)
        self.assert_named(recording)


if __name__ == "__main__":
    main()
