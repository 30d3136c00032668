# SPDX-License-Identifier: Apache-2.0
"""scripts/run-tests: what it makes of outputs of tests, and which it chooses by name."""
import json
import os
import re
import shutil
import subprocess
import unittest

import script

run_tests = script.load("run-tests")

GTEST = f"""[ RUN      ] Window.LosesNothing
{script.SCRIPTS.parent}/tests/unit/sampler/window_test.cc:128: Failure
Expected equality of these values:
  lost
    Which is: 3
  0

[  FAILED  ] Window.LosesNothing (12 ms)
"""
UNITTEST = """test_first (__main__.Shares.test_first) ... ok
test_second (__main__.Shares.test_second) ... FAIL

======================================================================
FAIL: test_second (__main__.Shares.test_second) (function='sixty')
Sixty percent.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "shares_test.py", line 30, in test_second
    self.assertEqual(1, 2)
AssertionError: 1 != 2 : sixty
and more

----------------------------------------------------------------------
Ran 2 tests in 1.2s

FAILED (failures=1)
"""
SANITIZER = """[ RUN      ] Elf.Reads
=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60200000001a
    #0 0x55 in Read elf.cc:12
"""


def outcome(output, state="failed", why="Failed"):
    return run_tests.Outcome("name", state, output, why)


class FirstFailure(unittest.TestCase):
    def test_of_googletest_is_the_place_and_what_was_expected(self):
        self.assertEqual(
            run_tests.first_failure(outcome(GTEST)),
            "tests/unit/sampler/window_test.cc:128: Expected equality of these values: lost Which is: 3 0")

    def test_of_unittest_is_the_method_and_the_exception(self):
        self.assertEqual(run_tests.first_failure(outcome(UNITTEST)),
                         "test_second: AssertionError: 1 != 2 : sixty")

    def test_of_a_sanitizer_is_its_finding(self):
        self.assertEqual(run_tests.first_failure(outcome(SANITIZER)),
                         "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60200000001a")

    def test_is_the_first_of_several(self):
        self.assertIn("window_test.cc:128", run_tests.first_failure(outcome(GTEST + SANITIZER)))

    def test_of_a_test_that_says_nothing_is_how_it_ended(self):
        self.assertEqual(run_tests.first_failure(outcome("", why="Timeout")), "Timeout")
        self.assertEqual(run_tests.first_failure(outcome("waiting\n", why="Timeout")), "Timeout: waiting")

    def test_is_one_line_of_bounded_length(self):
        said = run_tests.first_failure(outcome(f"FAIL: test_long (x)\nAssertionError: {'a ' * 1000}"))
        self.assertEqual(len(said), run_tests.LONGEST_LINE)
        self.assertNotIn("\n", said)


class Report(unittest.TestCase):
    def test_tells_why_the_first_run_failed_not_the_last(self):
        report = run_tests.Report()
        report.add([outcome(GTEST), outcome(UNITTEST), outcome("", "passed")], may_skip=False)
        self.assertEqual((report.passed, report.repeated), (1, 1))
        self.assertIn("window_test.cc:128", report.lines[0])

    def test_is_what_scripts_test_reads(self):
        report = run_tests.Report(passed=4, failed=1, skipped=2, repeated=3, lines=["failed a: b"])
        self.assertEqual(report.text(), "count 4 1 2 3\nfailed a: b\n")


class Only(script.TreeTest):
    """Runs with a ctest that lists two tests and notes which of them it is to run."""

    def setUp(self):
        super().setUp()
        self.write("shares_test.py", "import sys\n"
                   "class Shares:\n    def test_of_deep_stacks(self): pass\n    def test_of_flat_ones(self): pass\n"
                   "open('methods', 'a').write(' '.join(sys.argv[1:]) + '\\n')\n")
        tests = [self.listed("Window.LosesNothing", ["window_test"], "unit"),
                 self.listed("system.soaks", ["python3", "soaks_test.py"], "soak"),
                 self.listed("live.churn", ["python3", "churn.py"], "live"),
                 self.listed("system.shares", ["python3", "shares_test.py"], "bpf")]
        self.write("soaks_test.py")
        self.write("list.json", json.dumps({"tests": tests}))
        self.program("bin/ctest", '#!/bin/sh\ncase "$*" in *json-v1*) cat list.json ;; *) echo "$*" >>ran ;; esac\n')
        self.program("scripts/build", '#!/bin/sh\necho "$*" >>built\n')
        shutil.copy(script.SCRIPTS / "run-tests", self.root / "scripts")

    def listed(self, name, command, label):
        return {"name": name, "command": command, "properties": [{"name": "LABELS", "value": [label]}]}

    def program(self, name, text):
        self.write(name, text)
        (self.root / name).chmod(0o755)

    def run_only(self, pattern):
        environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}")
        return subprocess.run([self.root / "scripts/run-tests", "--only", pattern], cwd=self.root, check=False,
                              capture_output=True, text=True, env=environment).returncode

    def lines(self, name):
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    def test_runs_the_tests_of_a_name(self):
        self.assertEqual(self.run_only("Window"), 0)
        self.assertRegex(self.lines("ran")[0], re.escape(r"-R ^(Window\.LosesNothing)$"))
        self.assertEqual(self.lines("built"), ["dev"])

    def test_runs_what_measures_with_what_users_run(self):
        self.assertEqual(self.run_only("churn"), 0)
        self.assertIn("build/bench ", self.lines("ran")[0])
        self.assertEqual(self.lines("built"), ["dev", "bench"])

    def test_runs_only_the_matching_methods_of_a_file(self):
        self.assertEqual(self.run_only("deep"), 0)
        self.assertEqual(self.lines("methods"), ["-k test_of_deep_stacks"])
        self.assertEqual(self.lines("ran"), [])

    def test_says_when_there_is_none(self):
        self.assertEqual(self.run_only("nothing of that name"), 2)


if __name__ == "__main__":
    unittest.main()
