# SPDX-License-Identifier: Apache-2.0
# An RPM package has no purge: what was recorded stays, and the user with it.
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
