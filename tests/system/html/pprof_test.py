# SPDX-License-Identifier: Apache-2.0
"""`go tool pprof` as reader of our pprof. Usage: pprof_test.py MAKE_PROFILE [TEST...]"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

STACKS = 5_000

make_profile = None
directory = None


def pprof(*arguments):
    done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", *arguments],
                          capture_output=True, text=True, env={"HOME": directory, **os.environ})
    if done.returncode != 0:
        raise AssertionError(f"go tool pprof {arguments}: {done.stderr}")
    return done.stdout


class PprofTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = pathlib.Path(directory, "profile.pb.gz")
        made = subprocess.run([make_profile, str(STACKS), "pprof", cls.path], check=True,
                              capture_output=True, text=True)
        cls.facts = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", made.stderr)}
        cls.raw = pprof("-raw", cls.path)

    def samples(self):
        """The lines of -raw that have a sample's two values."""
        return re.findall(r"^ *(\d+) +(\d+): ((?:\d+ ?)+)$", self.raw, re.MULTILINE)

    def test_raw_agrees_in_samples_and_time(self):
        samples = self.samples()
        self.assertEqual(len(samples), self.facts["stacks"])
        self.assertEqual(sum(int(count) for count, _, _ in samples), self.facts["samples"])
        period = 1_000_000_000 // 99
        self.assertTrue(all(int(cpu) == int(count) * period for count, cpu, _ in samples))

    def test_raw_shows_the_head(self):
        for text in ("PeriodType: cpu nanoseconds", "Period: 10101010",
                     "Time: 2026-11-21 00:00:00", "Duration: 10", "samples/count",
                     "cpu/nanoseconds[dflt]"):
            self.assertIn(text, self.raw)

    def test_raw_shows_labels_on_every_sample(self):
        self.assertEqual(len(re.findall(r"^ +pid:\[\d+\]", self.raw, re.MULTILINE)),
                         self.facts["stacks"])
        for label in ("comm:", "thread:", "service:[shop]"):
            self.assertEqual(self.raw.count(label), self.facts["stacks"], label)

    def test_raw_shows_mappings_with_build_ids(self):
        mappings = self.raw[self.raw.index("\nMappings\n"):].splitlines()
        self.assertIn("/usr/bin/shopd", mappings[2])
        self.assertIn("ab0001", mappings[2])
        self.assertTrue(any("[kernel.kallsyms]" in line for line in mappings))

    def test_top_agrees_in_the_total(self):
        top = pprof("-top", "-sample_index=samples", "-nodecount=0",
                    "-nodefraction=0", self.path)
        total = re.search(r"Showing nodes accounting for (\d+), 100% of (\d+) total", top)
        self.assertIsNotNone(total, top[:400])
        self.assertEqual({int(total[1]), int(total[2])}, {self.facts["samples"]})

    def test_cut_stacks_are_told_by_their_root(self):
        tops = pprof("-top", "-cum", "-sample_index=samples", "-nodecount=0",
                     "-nodefraction=0", self.path)
        cut = re.findall(r"(\d+) +[\d.]+% +\[(?:truncated|unwind stopped: [a-z ]+)\]", tops)
        self.assertEqual(sum(map(int, cut)), self.facts["cut"])


if __name__ == "__main__":
    make_profile = sys.argv.pop(1)
    if shutil.which("go") is None:
        print("skipped: there is no go tool pprof (Debian package golang-go)")
        sys.exit(1 if os.environ.get("PYROMETER_REQUIRE_BPF") == "1" else 77)
    with tempfile.TemporaryDirectory() as directory:
        unittest.main(verbosity=2)
