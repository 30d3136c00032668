# SPDX-License-Identifier: Apache-2.0
# $1: how many versions are installed now; 1 at the first.
install -d -m 0750 -o pyrometer -g pyrometer /var/lib/pyrometer \
  /var/lib/pyrometer/profiles /var/lib/pyrometer/spool /var/lib/pyrometer/store
install -d -m 0700 -o pyrometer -g pyrometer /var/cache/pyrometer
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || :
  # Whether a new service is enabled and started is a preset of the distribution's.
  if [ "$1" -eq 1 ]; then
    systemctl preset pyrometer.service || :
    if systemctl --quiet is-enabled pyrometer.service; then systemctl start pyrometer.service || :; fi
  fi
fi
