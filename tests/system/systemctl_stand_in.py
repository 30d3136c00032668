# SPDX-License-Identifier: Apache-2.0
"""What a package's scripts ask of systemd, on a machine where systemd need not run."""

import os
import shutil

from debian_package import read, run

# Writes down what it is asked, and knows only whether the service was started.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"{0}/log"
case " $* " in
  *" --root="*) exec "{0}/real-systemctl" "$@" ;;
  *" is-enabled "*) echo enabled ;;
  *" start "*) : >"{0}/started" ;;
  *" is-active "*) [ -e "{0}/started" ] ;;
esac
"""

# Says that systemd is process 1.
SCRIPT = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/system
for stand_in in "$1"/systemctl:/usr/bin/systemctl "$1"/allow:/usr/sbin/policy-rc.d; do
  if [ -e "${stand_in#*:}" ]; then mount --bind "${stand_in%%:*}" "${stand_in#*:}"; fi
done
shift
exec "$@"
"""


def asked_of_systemctl(directory, *command):
    """What systemctl was asked for `pyrometer` while this command ran; `directory` is for the stand-ins."""
    log = os.path.join(directory, "log")
    shutil.copy(shutil.which("systemctl"), os.path.join(directory, "real-systemctl"))
    for name, text in (("systemctl", SYSTEMCTL.format(directory)), ("allow", "#!/bin/sh\nexit 0\n")):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
    with open(log, "w", encoding="utf-8"):
        pass
    run("unshare", "--mount", "sh", "-c", SCRIPT, "sh", directory, *command)
    return [line for line in read(log).splitlines() if "pyrometer" in line]
