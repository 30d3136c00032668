# SPDX-License-Identifier: Apache-2.0
"""tests/faults: whether each patch still applies, and what tests/faults/run says of one that does not."""
import subprocess
import unittest

import script

faults = script.load("../tests/faults/run")

PATCH = """The answer is one too many.

Kind: unit
Tests: base_test

diff --git a/src/base/answer.cc b/src/base/answer.cc
--- a/src/base/answer.cc
+++ b/src/base/answer.cc
@@ -1 +1 @@
-int answer = 42;
+int answer = 43;
"""
TABLE = "| fault | found by |\n|---|---|\n| `01-answer` | `Answer.IsRight` |\n"


class PatchesTest(unittest.TestCase):
    def test_of_this_repository_apply_and_are_listed(self):
        self.assertEqual(faults.check(), [])


class CheckTest(script.TreeTest):
    """Each test breaks one thing in a tree with a fault that applies."""

    def setUp(self):
        super().setUp()
        self.write("src/base/answer.cc", "int answer = 42;\n")
        self.write("tests/faults/01-answer.patch", PATCH)
        self.write("tests/faults/README.md", TABLE)
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)

    def assert_wrong(self, *parts):
        wrong = faults.check(self.root)
        self.assertEqual(len(wrong), 1, wrong)
        for part in parts:
            self.assertIn(part, wrong[0])

    def test_accepts_a_patch_that_applies(self):
        self.assertEqual(faults.check(self.root), [])

    def test_needs_no_repository(self):
        subprocess.run(["rm", "-rf", str(self.root / ".git")], check=True)
        self.assertEqual(faults.check(self.root), [])
        self.write("src/base/answer.cc", "int answer = 7;\n")
        self.assert_wrong("01-answer", "does not apply")

    def test_finds_a_patch_whose_code_has_changed(self):
        self.write("src/base/answer.cc", "int the_answer = 42;\n")
        self.assert_wrong("01-answer", "does not apply", "src/base/answer.cc")

    def test_finds_one_whose_code_is_gone(self):
        self.remove("src/base/answer.cc")
        self.assert_wrong("01-answer", "does not apply")

    def test_wants_to_know_which_tests_may_find_it(self):
        for line in ("Kind: unit\n", "Tests: base_test\n", "The answer is one too many.\n"):
            with self.subTest(line):
                self.write("tests/faults/01-answer.patch", PATCH.replace(line, ""))
                self.assert_wrong("01-answer", "Kind: and Tests:")

    def test_refuses_a_fault_of_the_tests(self):
        self.write("tests/faults/01-answer.patch", PATCH.replace("src/base", "tests/base"))
        self.assert_wrong("01-answer", "tests/base/answer.cc")

    def test_holds_the_table_to_the_patches(self):
        self.write("tests/faults/README.md", TABLE.replace("01-answer", "01-other"))
        wrong = faults.check(self.root)
        self.assertEqual(wrong, ["01-answer: is not in the table of README.md", "01-other: is in README.md only"])


class WatchTest(script.TreeTest):
    def watch(self, script_text, limit):
        return faults.watch(["sh", "-c", script_text], limit, self.root / "log")

    def test_waits_for_tests_that_end(self):
        self.assertIsNone(self.watch("echo '    Start 1: A.B'; echo '1/1 Test  #1: A.B ...   Passed'", 60))

    def test_names_the_one_that_hangs(self):
        ended = "echo '    Start 1: A.B'; echo '1/2 Test  #1: A.B ...   Passed'; "
        self.assertEqual(self.watch(ended + "echo '    Start 2: A.C'; exec sleep 600", 1), "A.C")


if __name__ == "__main__":
    unittest.main()
