# SPDX-License-Identifier: Apache-2.0
getent group pyrometer >/dev/null || groupadd --system pyrometer
getent passwd pyrometer >/dev/null || useradd --system --gid pyrometer --no-create-home \
  --home-dir /var/lib/pyrometer --shell /sbin/nologin --comment "Pyrometer profiler" pyrometer
install -d -m 0750 -o pyrometer -g pyrometer /var/lib/pyrometer \
  /var/lib/pyrometer/profiles /var/lib/pyrometer/spool
install -d -m 0700 -o pyrometer -g pyrometer /var/cache/pyrometer
chown root:pyrometer /etc/pyrometer/pyrometer.yaml
chmod 0640 /etc/pyrometer/pyrometer.yaml
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ "$1" = 1 ]; then systemctl enable --quiet --now pyrometer.service; fi
  if [ "$1" -gt 1 ]; then systemctl try-restart pyrometer.service; fi
fi
