# SPDX-License-Identifier: Apache-2.0
getent group pyrometer >/dev/null || groupadd --system pyrometer
getent passwd pyrometer >/dev/null || useradd --system --gid pyrometer --no-create-home \
  --home-dir /var/lib/pyrometer --shell /sbin/nologin --comment "Pyrometer profiler" pyrometer
