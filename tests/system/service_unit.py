# SPDX-License-Identifier: Apache-2.0
"""What a systemd unit gives a service, where systemd is not process 1: its user, capabilities and
view of the file system, by setpriv(1) and unshare(1)."""

import shlex


def parse(path):
    """key -> the values of its lines. Sections are not told apart: no key of ours is in two."""
    settings = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, separator, value = line.strip().partition("=")
            if separator and not key.startswith(("#", ";")):
                settings.setdefault(key, []).append(value)
    return settings


def one(settings, key):
    values = settings[key]
    if len(values) != 1:
        raise AssertionError("%s is there %d times" % (key, len(values)))
    return values[0]


def capabilities(settings, key):
    """As libcap-ng writes them: "bpf", "perfmon"."""
    return [name.removeprefix("CAP_").lower() for name in one(settings, key).split()]


def command(settings, without=()):
    """What ExecStart= runs, with the unit's user and capabilities but for those in `without`."""
    def exactly(key):
        kept = [name for name in capabilities(settings, key) if name not in without]
        return "-all," + ",".join("+" + name for name in kept)

    ambient = exactly("AmbientCapabilities")
    if one(settings, "NoNewPrivileges") != "yes":
        raise AssertionError("NoNewPrivileges=yes is not in the unit")
    return [
        "setpriv", "--reuid", one(settings, "User"), "--regid", one(settings, "Group"),
        "--init-groups", "--no-new-privs", "--inh-caps", ambient, "--ambient-caps", ambient,
        "--bounding-set", exactly("CapabilityBoundingSet"), "--reset-env",
        *shlex.split(one(settings, "ExecStart")),
    ]


# What ProtectSystem=strict, ProtectHome=, PrivateTmp=, ProtectControlGroups=, ReadOnlyPaths= and
# InaccessiblePaths= amount to (systemd.exec(5)), with the directories that the service owns.
_CONFINE = """
set -e
mount --make-rprivate /
for path in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 private "$path"; done
for path in /home /root /run/user /usr/lib/modules; do
  if [ -d "$path" ]; then mount -t tmpfs -o ro,mode=0 hidden "$path"; fi
done
for path in $OWNED; do mount --bind "$path" "$path"; done
for path in $INACCESSIBLE; do if [ -e "$path" ]; then mount --bind /dev/null "$path"; fi; done
for path in $READ_ONLY; do
  if [ -e "$path" ]; then mount --rbind "$path" "$path"; mount -o remount,bind,ro "$path"; fi
done
mount --bind / / && mount -o remount,bind,ro /
exec "$@"
"""


def confined(settings, command_line):
    """`command_line` with the unit's view of the file system. For root."""
    for key in ("ProtectHome", "PrivateTmp", "ProtectKernelModules", "ProtectControlGroups"):
        if one(settings, key) != "yes":
            raise AssertionError(key + "=yes is not in the unit")

    def paths(key):
        return " ".join(p.lstrip("-") for line in settings.get(key, []) for p in line.split())

    owned = ["/var/lib/" + name for name in settings["StateDirectory"]]
    owned += ["/var/cache/" + name for name in settings["CacheDirectory"]]
    return [
        "env", "OWNED=" + " ".join(owned), "READ_ONLY=" + paths("ReadOnlyPaths"),
        "INACCESSIBLE=" + paths("InaccessiblePaths"),
        "unshare", "--mount", "sh", "-c", _CONFINE, "sh", *command_line,
    ]
