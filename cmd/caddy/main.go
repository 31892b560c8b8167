// Command caddy is Caddy with the notify module, as xcaddy would build it.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-notify/caddy-notify"
)

func main() {
	caddycmd.Main()
}
