# SPDX-License-Identifier: Apache-2.0
"""The Debian package for tests: made, installed, made again as another version, and purged."""

import os
import re
import shutil
import subprocess

from pyrometer_harness import BpfTestCase, skip_or_fail

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = "/usr/lib/systemd/system/pyrometer.service"
CONFIGURATION = "/etc/pyrometer/pyrometer.yaml"
STATE, CACHE = "/var/lib/pyrometer", "/var/cache/pyrometer"
BUILD_SECONDS = 1800

environment = dict(
    os.environ, DEBIAN_FRONTEND="noninteractive",
    PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)


def run(*command, **options):
    """The output of a command that succeeds."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment, timeout=120, **options,
    )
    if result.returncode != 0:
        raise AssertionError("%s: %s" % (" ".join(command), result.stdout))
    return result.stdout


def status():
    """dpkg's word for the package: "ii", "rc", or "" """
    result = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "pyrometer"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )
    return result.stdout.strip()


def why_not_here():
    if os.geteuid() != 0:
        return "not root"
    if not shutil.which("dpkg"):
        return "no dpkg: this is no Debian"
    if status() or os.path.exists("/etc/pyrometer"):
        return "Pyrometer is, or was, installed on this machine"
    return None


def build_package():
    result = subprocess.run(
        [os.path.join(ROOT, "scripts", "package"), "deb"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=BUILD_SECONDS,
        check=False,
    )
    if result.returncode != 0:
        raise AssertionError("scripts/package deb: " + result.stderr)
    return result.stdout.strip()


def repack(package, directory, version, line):
    """The same package as another version, whose configuration file ends in `line`."""
    tree = os.path.join(directory, "tree-" + version)
    run("dpkg-deb", "--raw-extract", package, tree)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = re.sub(r"(?m)^Version: .*$", "Version: " + version, file.read())
    with open(control, "w", encoding="utf-8") as file:
        file.write(text)
    with open(tree + CONFIGURATION, "a", encoding="utf-8") as file:
        file.write(line)
    result = os.path.join(directory, version + ".deb")
    run("dpkg-deb", "--root-owner-group", "--build", tree, result)
    return result


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def set_profiles_aside(test_class):
    """What an agent that was not installed has kept on this machine comes back after the tests."""
    if not os.path.exists(STATE):
        return
    aside = "%s.aside-%d" % (STATE, os.getpid())
    os.rename(STATE, aside)
    test_class.addClassCleanup(os.rename, aside, STATE)


class PackageTestCase(BpfTestCase):
    """Every test begins with the package installed and ends with it purged."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = why_not_here()
        if reason:
            skip_or_fail(reason)
        set_profiles_aside(cls)
        cls.package = build_package()

    def setUp(self):
        self.addCleanup(subprocess.run, ["dpkg", "--purge", "pyrometer"], check=False,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        run("dpkg", "--install", self.package)

    def append_to_configuration(self, text):
        with open(CONFIGURATION, "a", encoding="utf-8") as file:
            file.write(text)
