# SPDX-License-Identifier: Apache-2.0
"""Runs a service as its systemd unit has it, where systemd is not process 1: with its user and
capabilities by setpriv(1), or with everything by a systemd of its own."""

import os
import shlex
import shutil


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


# systemd as a manager of user services is not process 1, and still gives a service of root's all
# that its unit says: user, capabilities, mounts, system call filter. It lives in mounts of its own,
# where it finds what process 1 usually makes: the sign that systemd runs, what it mounts over what
# is to be inaccessible; and where services of other users may write into its socket.
_SYSTEMD = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/systemd/inaccessible/dir /run/manager
cd /run/systemd/inaccessible
touch reg; mkfifo fifo; mknod chr c 0 0; mknod blk b 0 0; touch sock
chmod 0 *
chmod 711 /run/manager
/usr/lib/systemd/systemd --user --unit=nothing.target >/dev/null 2>&1 &
until [ -S /run/manager/systemd/private ]; do
  kill -0 $!
  sleep 0.05
done
chmod 777 /run/manager/systemd/notify
finish() { systemctl --user stop "$1"; status=$?; systemctl --user exit; wait; exit $status; }
trap 'finish "$1"' TERM
systemctl --user start "$1" || { systemctl --user status --no-pager "$1"; finish "$1"; }
echo "STARTED $(systemctl --user show --property MainPID --value "$1")"
while read -r verb; do
  systemctl --user "$verb" "$1" && echo "DONE $verb" || echo "FAILED $verb"
done
finish "$1"
"""


def under_systemd(unit, directory, drop_in):
    """The command and environment of a systemd that runs `unit`, changed by `drop_in` ([Service]
    lines), and prints "STARTED pid" when it says that it is ready. It carries out the verbs of
    systemctl that it reads, a line each, answers "DONE verb", and ends with its input. Needs root;
    `directory` is for its own files."""
    name = os.path.basename(unit)
    units = os.path.join(directory, "configuration", "systemd", "user")
    os.makedirs(os.path.join(units, name + ".d"))
    shutil.copy(unit, units)
    for path, text in (
        (os.path.join(name + ".d", "test.conf"), "[Service]\n" + drop_in),
        # Of its own; the usual ones would start what else the machine has for users.
        ("nothing.target", "[Unit]\nDefaultDependencies=no\n"),
    ):
        with open(os.path.join(units, path), "w", encoding="utf-8") as file:
            file.write(text)
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": directory,
        "XDG_RUNTIME_DIR": "/run/manager",
        "XDG_CONFIG_HOME": os.path.join(directory, "configuration"),
    }
    return ["unshare", "--mount", "bash", "-c", _SYSTEMD, "bash", name], environment
