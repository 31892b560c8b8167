// Package docs_test runs the documentation: it follows the links, loads the
// Caddyfiles and the JSON, sends the curl commands to a gateway, runs the caddy
// commands, and compares what the pages say that they print.
//
// How a block is used depends on its language:
//
//	caddyfile  is adapted and provisioned, without binding a port. A part of a
//	           Caddyfile is put into the block that it belongs to.
//	json       is a configuration if it has apps, a request if it has body, and
//	           directly after a sh block the output of that.
//	sh         curl and caddy commands are run; other programs must be known.
//	text       directly after a sh block, is the output of that. Times and
//	           durations may differ, … stands for any text, and lines may come
//	           in another order.
//	yaml       must be YAML.
package docs_test

import (
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-notify/caddy-notify"
)

// asCaddy in the environment makes the test program behave as caddy, so that
// nothing has to be built.
const asCaddy = "DOCS_TEST_AS_CADDY"

func TestMain(m *testing.M) {
	if os.Getenv(asCaddy) != "" {
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}
