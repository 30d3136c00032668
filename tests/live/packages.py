# SPDX-License-Identifier: Apache-2.0
"""Programs to look at, from the distribution's packages."""

import functools
import glob
import os
import shutil
import subprocess
import sys

# Where daemons are that nobody has in the PATH.
DIRECTORIES = ["/usr/sbin", "/usr/local/sbin", *sorted(glob.glob("/usr/lib/postgresql/*/bin"))]


class Missing(Exception):
    """A program that cannot be had; the text says why."""


def find(command):
    """The path of `command`, or None."""
    search = os.pathsep.join([os.environ.get("PATH", ""), *DIRECTORIES,
                              *glob.glob("/usr/lib/postgresql/*/bin")])  # fmt: skip
    return shutil.which(command, path=search)


@functools.cache
def _update():
    _apt("update")


def _apt(*words):
    return subprocess.run(
        ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", *words],
        env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def need(command, package):
    """The path of `command`, after installing `package` if need be. Raises Missing."""
    path = find(command)
    if path:
        return path
    if not shutil.which("apt-get"):
        raise Missing("no %s, and no apt-get to install %s with" % (command, package))
    print("installing %s" % package, file=sys.stderr, flush=True)
    _update()
    result = _apt("install", "--no-install-recommends", package)
    path = find(command)
    if not path:
        last = (result.stdout.strip().splitlines() or ["apt-get said nothing"])[-1]
        raise Missing("no %s: package %s cannot be installed: %s" % (command, package, last))
    return path
