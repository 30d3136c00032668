# SPDX-License-Identifier: Apache-2.0
"""scripts/run and scripts/build, on a little project in a checkout with a space in its path."""
import json
import os
import shutil
import subprocess
import unittest

import script

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(little LANGUAGES NONE)
add_custom_command(OUTPUT pyrometer DEPENDS ${CMAKE_SOURCE_DIR}/program
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/program pyrometer
  COMMAND ${CMAKE_COMMAND} -E echo built >> ${CMAKE_SOURCE_DIR}/builds)
add_custom_target(program DEPENDS pyrometer)
"""
PRESETS = {"version": 6, "configurePresets": [{
    "name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}"}]}
PROGRAM = """#!/bin/bash
printf '%s\\n' "$PWD" "$@"
cat
exit 7
"""


class RunTest(script.TreeTest):
    def setUp(self):
        super().setUp()
        self.checkout = self.root / "a checkout"
        (self.checkout / "scripts").mkdir(parents=True)
        for name in ("run", "build"):
            shutil.copy(script.SCRIPTS / name, self.checkout / "scripts" / name)
        self.write_program("scripts/setup", "#!/bin/sh\n")
        self.write_program("program", PROGRAM)
        self.write("a checkout/CMakeLists.txt", PROJECT)
        self.write("a checkout/CMakePresets.json", json.dumps(PRESETS))
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("CMAKE_", "NINJA_", "MAKE"))}

    def write_program(self, path, text):
        self.write(f"a checkout/{path}", text)
        (self.checkout / path).chmod(0o755)

    def run_script(self, *arguments, command=None, **options):
        command = command or self.checkout / "scripts/run"
        return subprocess.run([command, *arguments], capture_output=True, text=True, check=False,
                              env=self.environment, **{"input": "", "cwd": "/"} | options)

    def builds(self):
        file = self.checkout / "builds"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def test_becomes_the_program_in_the_directory_of_the_caller(self):
        done = self.run_script("record", "two words", "--", "", input="typed", cwd=self.root)
        self.assertEqual(done.stdout, f"{self.root}\nrecord\ntwo words\n--\n\ntyped", done.stderr)
        self.assertEqual(done.returncode, 7)

    def test_replaces_itself_so_that_signals_reach_the_program(self):
        self.write_program("program", "#!/bin/sh\necho $$\n")
        started = subprocess.Popen([self.checkout / "scripts/run"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, env=self.environment)
        said, _ = started.communicate(timeout=60)
        self.assertEqual(said, f"{started.pid}\n")

    def test_does_and_says_nothing_more_the_second_time(self):
        self.run_script()
        second = self.run_script()
        self.assertEqual(second.stderr, "")
        self.assertEqual(self.builds(), 1)

    def test_builds_again_what_changed(self):
        self.run_script()
        self.write_program("program", "#!/bin/sh\necho changed\n")
        self.assertEqual(self.run_script().stdout, "changed\n")

    def test_is_found_through_a_symlink(self):
        link = self.root / "elsewhere" / "pyrometer"
        link.parent.mkdir()
        link.symlink_to(self.checkout / "scripts/run")
        self.assertEqual(self.run_script(command=link).returncode, 7)

    def test_runs_side_by_side_build_once(self):
        started = [subprocess.Popen([self.checkout / "scripts/run"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    env=self.environment) for _ in range(5)]
        for process in started:
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 7)
        self.assertEqual(self.builds(), 1)

    def test_the_program_does_not_hold_the_lock_of_the_build(self):
        self.write_program("program", "#!/bin/sh\nreadlink /proc/self/fd/*\n")
        self.assertNotIn("release.lock", self.run_script().stdout)

    def test_starts_over_in_a_copied_checkout(self):
        self.run_script()
        shutil.copytree(self.checkout, self.root / "copy")
        shutil.rmtree(self.checkout)
        copied = self.run_script(command=self.root / "copy/scripts/run")
        self.assertEqual(copied.returncode, 7, copied.stderr)

    def test_configures_again_after_being_interrupted(self):
        self.run_script()
        (self.checkout / "build/release/build.ninja").unlink()
        self.assertEqual(self.run_script().returncode, 7)

    def test_shows_why_a_build_failed_and_runs_nothing(self):
        self.write("a checkout/CMakeLists.txt", PROJECT.replace("-E copy", "-E no-such-verb"))
        failed = self.run_script()
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("no-such-verb", failed.stderr)

    def test_shows_why_configuring_failed(self):
        self.write("a checkout/CMakeLists.txt", PROJECT + 'message(FATAL_ERROR "no such luck")')
        failed = self.run_script()
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("no such luck", failed.stderr)

    def test_runs_nothing_if_the_set_up_failed(self):
        self.write_program("scripts/setup", "#!/bin/sh\necho offline\nexit 1\n")
        failed = self.run_script()
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertEqual(failed.stderr, "offline\n")


if __name__ == "__main__":
    unittest.main()
