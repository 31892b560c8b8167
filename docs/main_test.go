// Package docs_test runs the documentation: it follows links, loads Caddyfiles
// and JSON, sends the curl commands to a gateway, runs the caddy commands, and
// compares their output with that in the pages.
//
// How a block is used depends on its language:
//
//	caddyfile  is adapted and provisioned, without binding a port. A
//	           fragment is put into the block that it belongs to.
//	json       is a configuration if it has apps, a request if it has body, and
//	           the output of a sh block if it directly follows that block.
//	sh         curl and caddy commands are run; other programs must be in
//	           the list programs.
//	text       is the output of a sh block if it directly follows that block.
//	           Times and durations may differ, … stands for any text, and lines
//	           may be in any order. Lines that begin with curl or caddy are run
//	           at a gateway that has everything, and so are the calls of curl in
//	           crontabs.
//	yaml       must be YAML.
//
// Of the code in the text, Caddyfile lines are loaded, and the subcommands and flags of
// commands must exist.
package docs_test

import (
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-notify/caddy-notify"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
)

// asCaddy is the environment variable that makes the test program behave as
// caddy, so that no build is needed.
const asCaddy = "DOCS_TEST_AS_CADDY"

func TestMain(m *testing.M) {
	if os.Getenv(asCaddy) != "" {
		caddycmd.Main()
		return
	}
	os.Exit(hometest.Main(m))
}
