# SPDX-License-Identifier: Apache-2.0
"""The RPM package: what its scripts do at the first installation, an upgrade and a removal, and whose its
files are. Needs root, rpm (which Debian has as well; its database is the test's own), and a machine on
which Pyrometer is not installed."""

import grp
import os
import pwd
import shutil
import stat
import subprocess

from debian_package import (
    BUILD_SECONDS, CACHE, CONFIGURATION, ROOT, STATE, UNIT, read, run, set_profiles_aside, why_not_here,
)
from pyrometer_harness import BpfTestCase, main, skip_or_fail
from systemctl_stand_in import asked_of_systemctl


def owner_of(path):
    found = os.stat(path)
    return "%s %s %s" % (stat.filemode(found.st_mode), pwd.getpwuid(found.st_uid).pw_name,
                         grp.getgrgid(found.st_gid).gr_name)  # fmt: skip


def build(*command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=BUILD_SECONDS, check=False)  # fmt: skip
    if result.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(command), result.stdout + result.stderr))
    return result.stdout.strip()


def remove_what_rpm_leaves():
    for path in (STATE, CACHE, os.path.dirname(CONFIGURATION)):
        shutil.rmtree(path, ignore_errors=True)
    for command in ("userdel", "groupdel"):  # the group is gone if it was the user's own
        subprocess.run([command, "pyrometer"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


class RpmPackage(BpfTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("rpm"):
            skip_or_fail("no rpm (Debian package rpm)")
        if reason := why_not_here():
            skip_or_fail(reason)
        set_profiles_aside(cls)
        cls.package = build(os.path.join(ROOT, "scripts", "package"), "rpm")
        directory = os.path.join(cls.directory, "later")
        build("cpack", "--config", os.path.join(ROOT, "build", "release", "CPackConfig.cmake"), "-G", "RPM",
              "-D", "CPACK_PACKAGE_VERSION=98.0", "-B", directory)  # fmt: skip
        (cls.later,) = [os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".rpm")]

    def setUp(self):
        self.database = os.path.join(self.directory, self.id().rsplit(".", 1)[-1])
        self.addCleanup(remove_what_rpm_leaves)
        self.addCleanup(subprocess.run, [*self.rpm_command(), "--erase", "--nodeps", "pyrometer"], check=False,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def rpm_command(self):
        # Without --force-debian Debian's rpm only warns of itself.
        return ["rpm", "--force-debian", "--dbpath", self.database]

    def rpm(self, *arguments):
        """What systemctl was asked for meanwhile."""
        return asked_of_systemctl(self.directory, *self.rpm_command(), "--nodeps", *arguments)

    def test_installing_makes_a_user_and_directories_and_obeys_the_presets(self):
        asked = self.rpm("--install", self.package)
        self.assertIn("preset pyrometer.service", asked)
        self.assertIn("start pyrometer.service", asked)
        expected = {
            "/usr/bin/pyrometer": "-rwxr-xr-x root root",
            UNIT: "-rw-r--r-- root root",
            CONFIGURATION: "-rw-r----- root pyrometer",
            STATE: "drwxr-x--- pyrometer pyrometer",
            STATE + "/spool": "drwxr-x--- pyrometer pyrometer",
            STATE + "/profiles": "drwxr-x--- pyrometer pyrometer",
            CACHE: "drwx------ pyrometer pyrometer",
        }
        self.assertEqual({path: owner_of(path) for path in expected}, expected)
        self.assertEqual(pwd.getpwnam("pyrometer").pw_shell, "/sbin/nologin")
        self.assertIn(": ok\n", run("/usr/bin/pyrometer", "agent", "--check-config"))

    def test_an_upgrade_restarts_and_keeps_a_changed_configuration(self):
        self.rpm("--install", self.package)
        with open(CONFIGURATION, "a", encoding="utf-8") as file:
            file.write("# mine\n")
        asked = self.rpm("--upgrade", self.later)
        self.assertIn("try-restart pyrometer.service", asked)
        self.assertFalse([line for line in asked if {"stop", "disable", "preset"} & set(line.split())], asked)
        self.assertTrue(read(CONFIGURATION).endswith("# mine\n"))
        self.assertIn("98.0", run(*self.rpm_command(), "--query", "pyrometer"))

    def test_removing_stops_the_service_and_keeps_what_was_recorded(self):
        self.rpm("--install", self.package)
        kept = os.path.join(STATE, "profiles", "kept")
        with open(kept, "w", encoding="utf-8"):
            pass
        asked = self.rpm("--erase", "pyrometer")
        self.assertIn("--no-reload --quiet disable --now pyrometer.service", asked)
        self.assertFalse(os.path.exists("/usr/bin/pyrometer") or os.path.exists(UNIT))
        self.assertTrue(os.path.exists(kept))
        self.assertTrue(pwd.getpwnam("pyrometer"))


if __name__ == "__main__":
    main()
