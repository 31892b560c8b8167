#!/bin/sh
# The user and the folder /var/lib/caddy stay: they have the certificates and what
# the gateway has saved.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
