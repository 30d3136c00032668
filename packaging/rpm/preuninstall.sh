# SPDX-License-Identifier: Apache-2.0
if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
  systemctl disable --quiet --now pyrometer.service
fi
