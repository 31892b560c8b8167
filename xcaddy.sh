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
#	CGO_ENABLED=0 go run -modfile newest.mod -trimpath -tags nobadger,nomysql,nopgx ./cmd/caddy version
#
# newest.mod has the newest Caddy and libraries, which releases are built with, go.mod the oldest
# that work, which the tests use. CADDY_VERSION is the version of Caddy for xcaddy.
set -eu

build() {
	CGO_ENABLED=0 go build -modfile newest.mod -trimpath -ldflags "-s -w" -tags nobadger,nomysql,nopgx -o caddy ./cmd/caddy
}

# steps prints how many packages Go would have to compile and programs to link. With -n,
# go build prints its commands and runs none.
steps() (
	export GOFLAGS="${GOFLAGS-} -n"
	build 2>&1 | grep -cE '/(compile|link)(\.exe)? ' || true
)

say() { echo "xcaddy.sh: $*" >&2; }

# The build happens in the folder of this script. The arguments are used in
# the caller's folder, so that they may name files relative to it.
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
(
	cd "$folder"
	first="two to four minutes the first time, because Go compiles Caddy"
	if command -v xcaddy >/dev/null 2>&1; then
		say "building ./caddy with xcaddy, which takes $first, and less than a minute after that"
		# The version v0.0.0 stands for this folder. Without a version, xcaddy asks
		# the module proxy for one, which fails for a module that it does not know.
		newest=$(sed -n 's|^	github.com/caddyserver/caddy/v2 ||p' newest.mod)
		xcaddy build "${CADDY_VERSION:-$newest}" --with github.com/caddy-notify/caddy-notify@v0.0.0=. --output caddy
	else
		if [ ! -e caddy ]; then # what Go would have to do is not asked, because it would fetch modules for the answer
			say "building ./caddy, which takes $first"
		else
			n=$(steps)
			if [ "$n" -gt 100 ]; then
				say "building ./caddy anew, which takes two to four minutes, because Go compiles Caddy"
			elif [ "$n" -gt 0 ]; then
				say "building ./caddy anew, which takes less than a minute"
			fi
		fi
		build
	fi
)
if [ $# -gt 0 ]; then
	exec "$folder/caddy" "$@"
fi
