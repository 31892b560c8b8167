// Command modules is Caddy with this module and others, which the integration tests drive
// together. It is a module of its own, so that nothing else depends on them, and so is the store of the
// queue in journal/, as one of another repository would be.
package main

import (
	_ "example.com/caddy-notify-journal"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/lucaslorentz/caddy-docker-proxy/v2"
	_ "github.com/mholt/caddy-ratelimit"

	_ "github.com/caddy-notify/caddy-notify"
)

func main() { caddycmd.Main() }
