# SPDX-License-Identifier: Apache-2.0
"""scripts/test, in a checkout whose other scripts, and whose ctest, are ours."""
import os
import shutil
import subprocess
import unittest

import script

# Says and returns what the file named after its label holds: status, then output.
CTEST = """#!/bin/bash
while [[ $1 != -L ]]; do shift; done
label=${2//[^a-z]/}
echo "$label" >> ran
if [[ ! -f $label ]]; then label=fine; fi
sed 1d "$label"
exit "$(sed 1q "$label")"
"""
FINE = "0\n100% tests passed, 0 tests failed out of 5\n"
ONE_FAILED = "8\n80% tests passed, 1 tests failed out of 5\n"
ONE_SKIPPED = ("0\n1/5 Test #1: Sampler.Runs ....***Skipped   0.01 sec\n"
               "100% tests passed, 0 tests failed out of 5\n")


class TestTest(script.TreeTest):
    def setUp(self):
        super().setUp()
        for name in ("setup", "build", "run", "check-layers", "check-licenses", "format", "tidy"):
            self.program(f"scripts/{name}", "#!/bin/sh\n")
        shutil.copy(script.SCRIPTS / "test", self.root / "scripts")
        self.program("bin/ctest", CTEST)
        self.program("bin/shellcheck", "#!/bin/sh\n")
        self.write(".ci/run")
        self.write("tests/test.sh")
        for preset in ("dev", "asan", "bench"):
            (self.root / "build" / preset).mkdir(parents=True)
        self.write("fine", FINE)

    def program(self, name, text):
        self.write(name, text)
        (self.root / name).chmod(0o755)

    def run_tests(self, *parts, **variables):
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}",
                       "PYROMETER_REQUIRE_BPF": "0"} | variables
        return subprocess.run([self.root / "scripts/test", *parts], capture_output=True, text=True,
                              check=False, env=environment)

    def assert_ends(self, done, status, line):
        self.assertEqual(done.stdout.splitlines()[-1], line, done.stdout)
        self.assertEqual(done.returncode, status)

    def test_counts_tests_and_checks_together(self):
        # Checks: 4 of lint, 2 builds, scripts/run, tidy. Tests: 5 each of unit, asan, bpf, system.
        self.assert_ends(self.run_tests(), 0, "34 passed, 0 failed, 0 skipped")

    def test_fails_with_a_test_and_goes_on(self):
        self.write("unit", ONE_FAILED)
        self.assert_ends(self.run_tests("unit", "bpf"), 1, "10 passed, 1 failed, 0 skipped")

    def test_fails_with_a_check_and_goes_on(self):
        self.program("scripts/check-layers", "#!/bin/sh\necho a breach\nexit 1\n")
        done = self.run_tests("lint")
        self.assert_ends(done, 1, "3 passed, 1 failed, 0 skipped")
        self.assertIn("a breach", done.stdout)

    def test_counts_a_check_that_cannot_judge_here_as_skipped(self):
        self.program("scripts/format", "#!/bin/sh\nexit 77\n")
        self.assert_ends(self.run_tests("lint"), 0, "3 passed, 0 failed, 1 skipped")

    def test_does_not_test_what_could_not_be_built(self):
        self.program("scripts/build", "#!/bin/sh\nexit 1\n")
        self.assert_ends(self.run_tests("unit"), 1, "0 passed, 1 failed, 0 skipped")
        self.assertFalse((self.root / "ran").exists())

    def test_fails_when_ctest_fails_without_counting(self):
        self.write("unit", "8\nNo tests were found!!!\n")
        self.assert_ends(self.run_tests("unit"), 1, "1 passed, 1 failed, 0 skipped")

    def test_lets_a_test_be_skipped_where_bpf_is_not_required(self):
        self.write("bpf", ONE_SKIPPED)
        self.assert_ends(self.run_tests("bpf"), 0, "5 passed, 0 failed, 1 skipped")

    def test_fails_with_a_skipped_test_where_bpf_is_required(self):
        self.write("bpf", ONE_SKIPPED)
        self.assert_ends(self.run_tests("bpf", PYROMETER_REQUIRE_BPF="1"), 1,
                         "5 passed, 1 failed, 0 skipped")

    def test_stops_when_the_set_up_fails(self):
        self.program("scripts/setup", "#!/bin/sh\nexit 1\n")
        self.assertEqual(self.run_tests("lint").returncode, 1)

    def test_explains_itself_when_asked_for_an_unknown_part(self):
        done = self.run_tests("everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn("scripts/test [PART...]", done.stderr)


if __name__ == "__main__":
    unittest.main()
