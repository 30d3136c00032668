# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what it installs, what it asks of systemd, and what is left when it is gone.
Needs root, dpkg, and a machine on which Pyrometer is not installed."""

import grp
import os
import pwd
import shutil
import stat

from debian_package import (
    CACHE, CONFIGURATION, STATE, UNIT, PackageTestCase, read, repack, run, status,
)
from pyrometer_harness import main, skip_or_fail
from systemctl_stand_in import asked_of_systemctl


def description_of(path):
    """ "drwxr-x--- user group" """
    found = os.stat(path)
    return "%s %s %s" % (
        stat.filemode(found.st_mode), pwd.getpwuid(found.st_uid).pw_name,
        grp.getgrgid(found.st_gid).gr_name,
    )


def user_exists():
    try:
        pwd.getpwnam("pyrometer")
    except KeyError:
        return False
    return True


class Package(PackageTestCase):
    def test_installs_files_directories_and_a_user_without_a_login(self):
        expected = {
            "/usr/bin/pyrometer": "-rwxr-xr-x root root",
            UNIT: "-rw-r--r-- root root",
            "/usr/share/doc/pyrometer/copyright": "-rw-r--r-- root root",
            "/etc/pyrometer": "drwxr-xr-x root root",
            CONFIGURATION: "-rw-r----- root pyrometer",
            STATE: "drwxr-x--- pyrometer pyrometer",
            STATE + "/spool": "drwxr-x--- pyrometer pyrometer",
            STATE + "/profiles": "drwxr-x--- pyrometer pyrometer",
            STATE + "/store": "drwxr-x--- pyrometer pyrometer",
            CACHE: "drwx------ pyrometer pyrometer",
        }
        self.assertEqual({path: description_of(path) for path in expected}, expected)
        user = pwd.getpwnam("pyrometer")
        self.assertEqual((user.pw_dir, user.pw_shell), (STATE, "/usr/sbin/nologin"))
        self.assertLess(user.pw_uid, 1000)
        self.assertIn(": ok\n", run("/usr/bin/pyrometer", "agent", "--check-config"))

    def test_names_the_libraries_that_the_program_needs(self):
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libc6", "libbpf1", "libgrpc++", "libcurl4", "adduser"):
            self.assertIn(library, depends)

    def test_is_built_without_debug_information(self):
        self.assertNotIn(".debug_info", run("readelf", "--wide", "--sections", "/usr/bin/pyrometer"))

    def test_the_unit_is_one_that_systemd_accepts(self):
        if not shutil.which("systemd-analyze"):
            skip_or_fail("no systemd-analyze (Debian package systemd)")
        self.assertEqual(run("systemd-analyze", "verify", UNIT), "")

    def test_an_upgrade_keeps_a_changed_configuration(self):
        changed = read(CONFIGURATION) + "# mine\n"
        self.append_to_configuration("# mine\n")
        os.chmod(CONFIGURATION, 0o600)
        higher = repack(self.package, self.directory, "98.0", "")
        run("dpkg", "--install", higher)
        self.assertEqual(read(CONFIGURATION), changed)
        # Also when the new version brings another; dpkg would ask, apt without a terminal does not.
        highest = repack(self.package, self.directory, "99.0", "# new\n")
        run("dpkg", "--force-confdef", "--force-confold", "--install", highest)
        self.assertEqual(read(CONFIGURATION), changed)
        self.assertTrue(read(CONFIGURATION + ".dpkg-dist").endswith("# new\n"))
        self.assertEqual(description_of(CONFIGURATION), "-rw------- root pyrometer")

    def test_an_upgrade_brings_a_new_configuration_where_the_old_was_not_changed(self):
        run("dpkg", "--install", repack(self.package, self.directory, "98.1", "# new\n"))
        self.assertTrue(read(CONFIGURATION).endswith("# new\n"))
        self.assertEqual(description_of(CONFIGURATION), "-rw-r----- root pyrometer")

    def test_removing_keeps_configuration_and_profiles_and_purging_nothing(self):
        packaged = run("dpkg", "--listfiles", "pyrometer").splitlines()
        kept = os.path.join(STATE, "profiles", "kept")
        self.append_to_configuration("# mine\n")
        with open(kept, "w", encoding="utf-8"):
            pass
        run("dpkg", "--remove", "pyrometer")
        self.assertFalse(os.path.exists("/usr/bin/pyrometer"))
        self.assertTrue(os.path.exists(kept))
        self.assertTrue(read(CONFIGURATION).endswith("# mine\n"))
        run("dpkg", "--purge", "pyrometer")
        left = [path for path in [*packaged, STATE, CACHE, "/etc/pyrometer"]
                if "pyrometer" in path and os.path.lexists(path)]
        self.assertEqual(left, [])
        self.assertEqual(links_of_systemd(), [])
        self.assertFalse(user_exists())
        self.assertNotIn("pyrometer", [group.gr_name for group in grp.getgrall()])
        self.assertEqual(status(), "")


def links_of_systemd():
    """What names the unit in systemd's own directories, and in those of Debian's helpers."""
    return [
        os.path.join(directory, name)
        for top in ("/etc/systemd", "/var/lib/systemd")
        for directory, directories, names in os.walk(top)
        for name in [*directories, *names]
        if name.startswith("pyrometer.service")
    ]


class WhereSystemdRuns(PackageTestCase):
    def dpkg(self, *arguments):
        return asked_of_systemctl(self.directory, "dpkg", *arguments)

    def test_installing_starts_upgrading_restarts_and_removing_stops(self):
        run("dpkg", "--purge", "pyrometer")
        asked = self.dpkg("--install", self.package)
        self.assertTrue(any(" start " in " %s " % line for line in asked), asked)
        wanted = "/etc/systemd/system/multi-user.target.wants/pyrometer.service"
        self.assertEqual(os.readlink(wanted).removeprefix("/usr"), UNIT.removeprefix("/usr"))
        asked = self.dpkg("--install", repack(self.package, self.directory, "98.2", ""))
        self.assertTrue(any("try-restart" in line for line in asked), asked)
        self.assertFalse(any("stop" in line.split() for line in asked), asked)
        asked = self.dpkg("--remove", "pyrometer")
        self.assertTrue(any("stop" in line.split() for line in asked), asked)
        self.dpkg("--purge", "pyrometer")
        self.assertEqual(links_of_systemd(), [])


if __name__ == "__main__":
    main()
