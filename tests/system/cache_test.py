# SPDX-License-Identifier: Apache-2.0
"""What was read of a large program is there for the next recording, and never believed if it was
changed meanwhile."""

import os
import re
import shutil
import stat
import subprocess
import tempfile

from pyrometer_harness import BpfTestCase, describe, main, skip_or_fail, stats_of

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/go_threads.go")


class Cache(BpfTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        go = shutil.which("go")
        if not go:
            skip_or_fail("no go (Debian package golang-go) to build a program with")
        cls.program = os.path.join(cls.directory, "go_stripped")
        cls.environment = dict(os.environ, HOME=os.environ.get("HOME", "/root"),
                               GOTOOLCHAIN="local", CGO_ENABLED="0")
        # The build id of Go's own is not the one that everybody looks at.
        subprocess.run([go, "build", "-ldflags=-s -w -B 0x0123456789abcdef", "-o", cls.program, SOURCE],
                       check=True, env=cls.environment)

    def setUp(self):
        self.cache = os.path.join(tempfile.mkdtemp(dir=self.directory), "cache")

    def record_only(self, program, *options):
        """A recorder that has recorded the program and nothing else: a COMMAND's process is at first the
        recorder's own program, which is read as well if a tick finds it."""
        recorder = self.start_recording("--stats=json", "--comm", "go_stripped",
                                        *(options or ("--cache", self.cache)))
        subprocess.run([program], check=True)
        return recorder.interrupt()

    def record(self, *options):
        """The counters of a recording in which every call of main.work had the right name and line."""
        recorder = self.record_only(self.program, *options)
        recording = recorder.finish()
        working = [s for s in recording.of_comm("go_stripped") if s.calls("main.work")]
        self.assertTrue(working, describe(recording.of_comm("go_stripped")))
        raw = subprocess.run(["go", "tool", "pprof", "-raw", recorder.pprof], check=True,
                             capture_output=True, text=True, env=self.environment).stdout
        places = set(re.findall(r" main\.work (\S+?):(\d+):", raw))
        self.assertTrue(places, raw[:2000])
        for path, line in places:
            self.assertTrue(path.endswith("/go_threads.go"), path)
            self.assertIn(int(line), range(16, 23), places)
        return stats_of(recording.stderr)

    def files(self):
        directory = os.path.join(self.cache, "symbols")
        return [os.path.join(directory, name) for name in os.listdir(directory)]

    def assert_counts(self, stats, **counts):
        found = {name: stats["artifact_cache_%s_total" % name] for name in counts}
        self.assertEqual(found, counts)

    def test_a_program_is_read_once_for_two_recordings(self):
        self.assert_counts(self.record(), hits=0, stored=1, refused=0, not_stored=0)
        (path,) = self.files()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        stats = self.record()
        self.assert_counts(stats, hits=1, stored=0, refused=0)
        self.assertEqual(stats["artifact_cache_bytes"], os.path.getsize(path))

    def test_what_was_cut_or_changed_is_made_again(self):
        self.record()
        (path,) = self.files()
        whole = os.path.getsize(path)
        with open(path, "rb") as file:
            right = file.read()
        os.truncate(path, whole // 2)
        self.assert_counts(self.record(), hits=0, refused=1, stored=1)
        self.assertEqual(os.path.getsize(path), whole)
        with open(path, "r+b") as file:
            at = right.rindex(b"main.work\0")
            file.seek(at)
            file.write(b"main.evil")
        self.assert_counts(self.record(), hits=0, refused=1, stored=1)
        self.assert_counts(self.record(), hits=1, refused=0, stored=0)

    def test_another_program_with_its_build_id_gets_none_of_it(self):
        self.record()
        (path,) = self.files()
        with open(self.program, "rb") as file:
            other = file.read()
        name = b"main.workUntil"
        self.assertIn(name, other)
        renamed = os.path.join(tempfile.mkdtemp(dir=self.directory), "go_stripped")
        with open(renamed, "wb") as file:
            file.write(other.replace(name, b"main.restUntil"))
        os.chmod(renamed, 0o755)
        recording = self.record_only(renamed).finish()
        samples = recording.of_comm("go_stripped")
        self.assertTrue([s for s in samples if s.calls("main.restUntil")], describe(samples))
        self.assertFalse([s for s in samples if s.calls("main.workUntil")], describe(samples))
        self.assert_counts(stats_of(recording.stderr), hits=0, refused=0, stored=1)
        self.assertEqual(len(self.files()), 2)

    def test_a_place_that_cannot_be_used_is_told_and_does_no_harm(self):
        with open(self.cache, "w") as file:
            file.write("in its place")
        recording = self.record_only(self.program).finish()
        self.assertIn("keeping what was read of programs for later: %s: not a directory" % self.cache,
                      recording.stderr)
        self.assert_counts(self.record(), hits=0, misses=0, stored=0)
        self.assert_counts(self.record("--cache", ""), hits=0, misses=0, stored=0)


if __name__ == "__main__":
    main()
