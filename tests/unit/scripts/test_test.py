# SPDX-License-Identifier: Apache-2.0
"""scripts/test, in a checkout whose other scripts, and whose ctest, are ours."""
import json
import os
import shutil
import subprocess
import unittest

import script

# Runs the tests of the file named after the label: name -> the output of each of its runs that fails,
# None for one that is skipped. Notes each test that it runs in `ran`.
CTEST = r'''#!/usr/bin/env python3
import json, os, re, sys
from xml.sax.saxutils import escape
def after(flag):
    return sys.argv[sys.argv.index(flag) + 1] if flag in sys.argv else None
label = re.sub("[^a-z]", "", after("-L") or "")
tests = {}
for file in [label] if label else os.listdir("labels"):
    if os.path.exists("labels/" + file):
        tests.update(json.load(open("labels/" + file)))
if not tests:
    sys.exit(8)
if after("-R"):
    tests = {name: runs for name, runs in tests.items() if re.search(after("-R"), name)}
ran = open("ran").read().split() if os.path.exists("ran") else []
cases, status = "", 0
for name, runs in tests.items():
    run = ran.count(name)
    open("ran", "a").write(name + "\n")
    said = runs[run] if run < len(runs) else ""
    passed = said == "" or said is not None and said.startswith("not judged")
    state = "notrun" if said is None else "run" if passed else "fail"
    more = '<failure message="Failed"/>' if state == "fail" else ""
    cases += f'<testcase name="{name}" status="{state}">{more}<system-out>{escape(said or "")}</system-out></testcase>'
    status = 8 if state == "fail" else status
open(after("--output-junit"), "w").write(f"<testsuite>{cases}</testsuite>")
sys.exit(status)
'''
FIVE = {f"Five.Number{i}": [] for i in range(5)}
FAILURE = ("======\nFAIL: test_counts (__main__.Counts.test_counts)\n------\nTraceback (most recent call last):\n"
           "  File \"counts_test.py\", line 3, in test_counts\nAssertionError: 4 != 5 : counted\n")


class TestTest(script.TreeTest):
    def setUp(self):
        super().setUp()
        for name in ("setup", "build", "run", "check-layers", "check-licenses", "format", "tidy"):
            self.program(f"scripts/{name}", "#!/bin/sh\n")
        for name in ("test", "run-tests"):
            shutil.copy(script.SCRIPTS / name, self.root / "scripts")
        self.program("bin/ctest", CTEST)
        self.program("bin/shellcheck", "#!/bin/sh\n")
        self.write(".ci/run")
        self.write("tests/test.sh")
        for preset in ("dev", "asan"):
            (self.root / "build" / preset).mkdir(parents=True)
        for label in ("unit", "bpf", "system", "soak"):
            self.ctest_has(label)

    def ctest_has(self, label, **runs):
        """Five tests that pass, or these instead of some of them."""
        tests = dict(list(FIVE.items())[len(runs):]) | runs
        self.write(f"labels/{label}", json.dumps({f"{label}.{name}": said for name, said in tests.items()}))

    def program(self, name, text):
        self.write(name, text)
        (self.root / name).chmod(0o755)

    def run_tests(self, *parts, **variables):
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}",
                       "PYROMETER_REQUIRE_BPF": "0"} | variables
        return subprocess.run([self.root / "scripts/test", *parts], capture_output=True, text=True,
                              check=False, env=environment)

    def assert_ends(self, done, status, line):
        self.assertEqual(done.stdout.splitlines()[-1], line, done.stdout + done.stderr)
        self.assertEqual(done.returncode, status)

    def times_run(self, name):
        return (self.root / "ran").read_text().split().count(name)

    def test_without_a_part_proves_the_product(self):
        # Checks: 4 of lint, 1 build. Tests: 5 each of unit, bpf, system.
        self.assert_ends(self.run_tests(), 0, "20 passed, 0 failed, 0 skipped")

    def test_counts_tests_and_checks_together(self):
        # Checks: 4 of lint, 2 builds, scripts/run, tidy. Tests: 5 each of unit, asan, bpf, system, soak.
        self.assert_ends(self.run_tests("all"), 0, "33 passed, 0 failed, 0 skipped")

    def test_fails_with_a_test_and_goes_on(self):
        self.ctest_has("unit", Counts=[FAILURE])
        self.assert_ends(self.run_tests("unit", "bpf"), 1, "10 passed, 1 failed, 0 skipped")

    def test_ends_with_the_first_failed_assertion_of_each_failed_test(self):
        self.ctest_has("unit", Counts=[FAILURE])
        lines = self.run_tests("unit", "bpf").stdout.splitlines()[-60:]
        self.assertIn("failed unit.Counts: test_counts: AssertionError: 4 != 5 : counted", lines)

    def test_fails_with_a_check_and_goes_on(self):
        self.program("scripts/check-layers", "#!/bin/sh\necho a breach\nexit 1\n")
        done = self.run_tests("lint")
        self.assert_ends(done, 1, "3 passed, 1 failed, 0 skipped")
        self.assertIn("a breach", done.stdout)
        self.assertIn("\nfailed layers\n", done.stdout)

    def test_counts_a_check_that_cannot_judge_here_as_skipped(self):
        self.program("scripts/format", "#!/bin/sh\nexit 77\n")
        self.assert_ends(self.run_tests("lint"), 0, "3 passed, 0 failed, 1 skipped")

    def test_does_not_test_what_could_not_be_built(self):
        self.program("scripts/build", "#!/bin/sh\nexit 1\n")
        self.assert_ends(self.run_tests("unit"), 1, "0 passed, 1 failed, 0 skipped")
        self.assertFalse((self.root / "ran").exists())

    def test_fails_when_ctest_fails_without_a_test(self):
        (self.root / "labels/unit").unlink()
        self.assert_ends(self.run_tests("unit"), 1, "1 passed, 1 failed, 0 skipped")

    def test_lets_a_test_be_skipped_where_bpf_is_not_required(self):
        self.ctest_has("bpf", Counts=[None])
        self.assert_ends(self.run_tests("bpf"), 0, "5 passed, 0 failed, 1 skipped")

    def test_fails_with_a_skipped_test_where_bpf_is_required(self):
        self.ctest_has("bpf", Counts=[None])
        self.assert_ends(self.run_tests("bpf", PYROMETER_REQUIRE_BPF="1"), 1,
                         "5 passed, 1 failed, 0 skipped")

    def test_repeats_nothing_unless_told_to(self):
        self.ctest_has("bpf", Counts=[FAILURE])
        self.assert_ends(self.run_tests("bpf"), 1, "5 passed, 1 failed, 0 skipped")
        self.assertEqual(self.times_run("bpf.Counts"), 1)

    def test_repeats_what_fails_and_says_so(self):
        self.ctest_has("bpf", Counts=[FAILURE, "late"])
        done = self.run_tests("--repeat", "2", "bpf")
        self.assert_ends(done, 0, "6 passed, 0 failed, 0 skipped")
        self.assertIn("\nrepeated bpf.Counts: test_counts: AssertionError: 4 != 5 : counted (passed on run 3)\n",
                      done.stdout)
        self.assertRegex(done.stdout, r"passed +bpf tests .* 5 passed, 0 failed, 0 skipped, 1 repeated\n")
        self.assertEqual(self.times_run("bpf.Counts"), 3)
        self.assertEqual(self.times_run("bpf.Five.Number4"), 1)

    def test_fails_with_what_fails_each_time(self):
        self.ctest_has("system", Counts=3 * [FAILURE])
        self.assert_ends(self.run_tests("--repeat", "2", "system"), 1, "5 passed, 1 failed, 0 skipped")
        self.assertEqual(self.times_run("system.Counts"), 3)

    def test_never_repeats_a_unit_test(self):
        self.ctest_has("unit", Counts=[FAILURE])
        self.assert_ends(self.run_tests("--repeat", "2", "unit"), 1, "5 passed, 1 failed, 0 skipped")

    def test_fails_when_more_than_five_had_to_be_repeated(self):
        self.ctest_has("bpf", **{f"Late{i}": ["late"] for i in range(3)})
        self.ctest_has("soak", **{f"Late{i}": ["late"] for i in range(2)})
        self.assert_ends(self.run_tests("--repeat", "2", "bpf", "soak"), 0, "11 passed, 0 failed, 0 skipped")
        (self.root / "ran").unlink()
        self.ctest_has("soak", **{f"Late{i}": ["late"] for i in range(3)})
        self.assert_ends(self.run_tests("--repeat", "2", "bpf", "soak"), 1, "11 passed, 1 failed, 0 skipped")

    def test_lists_what_a_test_could_not_judge(self):
        self.ctest_has("bpf", Idle=["not judged: CPU 1 is never idle"])
        done = self.run_tests("bpf", PYROMETER_REQUIRE_BPF="1")
        self.assert_ends(done, 0, "6 passed, 0 failed, 0 skipped")
        self.assertIn("\nnot judged bpf.Idle: CPU 1 is never idle\n", done.stdout)

    def test_stops_when_the_set_up_fails(self):
        self.program("scripts/setup", "#!/bin/sh\nexit 1\n")
        self.assertEqual(self.run_tests("lint").returncode, 1)

    def test_explains_itself_when_asked_for_what_it_does_not_know(self):
        for words in (["everything"], ["--repeat", "many"], ["--fast"], ["-k"]):
            with self.subTest(words):
                done = self.run_tests(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn("scripts/test [--repeat N] [PART...]", done.stderr)


if __name__ == "__main__":
    unittest.main()
