#!/bin/sh
# Builds ./caddy, which is Caddy with the notify module: with xcaddy if it is
# installed, else with Go alone. With arguments, the new ./caddy runs them:
#
#	./xcaddy.sh run --config Caddyfile.example
#
# Both ways compile with the settings of xcaddy, so that the second reuses what the first
# has compiled, and ./caddy is a program that runs on any Linux. A plain "go run" or
# "go build" has other settings, and Go compiles each once: three to four minutes of
# processor time. With these, they share what is compiled:
#
#	CGO_ENABLED=0 go run -trimpath -tags nobadger,nomysql,nopgx ./cmd/caddy version
set -eu

# The build happens in the folder of this script. The arguments are used in
# the caller's folder, so that they may name files relative to it.
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
(
	cd "$folder"
	if command -v xcaddy >/dev/null 2>&1; then
		# The version v0.0.0 stands for this folder. Without a version, xcaddy asks
		# the module proxy for one, which fails for a module that it does not know.
		xcaddy build "${CADDY_VERSION:-v2.11.9}" --with github.com/caddy-notify/caddy-notify@v0.0.0=. --output caddy
	else
		CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -tags nobadger,nomysql,nopgx -o caddy ./cmd/caddy
	fi
)
if [ $# -gt 0 ]; then
	exec "$folder/caddy" "$@"
fi
