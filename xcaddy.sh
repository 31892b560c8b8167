#!/bin/sh
# Builds ./caddy, Caddy with the notify module in it: with xcaddy where there
# is one, else with Go alone. Given arguments, hands them to what it built:
#
#	./xcaddy.sh run --config Caddyfile.example
set -eu

# Arguments may name files relative to where the caller is; the build is made
# in the folder of this script.
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
(
	cd "$folder"
	if command -v xcaddy >/dev/null 2>&1; then
		xcaddy build "${CADDY_VERSION:-v2.11.9}" --with github.com/caddy-notify/caddy-notify=. --output caddy
	else
		CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -tags nobadger,nomysql,nopgx -o caddy ./cmd/caddy
	fi
)
if [ $# -gt 0 ]; then
	exec "$folder/caddy" "$@"
fi
