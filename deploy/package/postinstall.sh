#!/bin/sh
# Makes the user that runs the gateway. A new installation does not start it: it
# has no password and no destination yet. An upgrade restarts it if it runs.
set -e
if ! getent passwd caddy >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/caddy --shell /usr/sbin/nologin caddy
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# A gateway that does not start with its configuration is no fault of the package.
	systemctl try-restart caddy-notify || true
fi
