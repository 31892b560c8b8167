#!/bin/sh
# Stops the gateway when the package is removed, but not when it is upgraded: dpkg
# calls this with "upgrade", rpm with the number of versions that stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now caddy-notify
	fi
	;;
esac
