# SPDX-License-Identifier: Apache-2.0
# $1: how many versions are left; 0 if this is no upgrade.
if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload --quiet disable --now pyrometer.service || :
fi
