# SPDX-License-Identifier: Apache-2.0
# RPM knows no purge: what was recorded stays, and its user with it.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || :
  # The old version's script runs after the new one is there.
  if [ "$1" -ge 1 ]; then systemctl try-restart pyrometer.service || :; fi
fi
