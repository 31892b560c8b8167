package caddyhttp

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// ruledKey returns a key k with one URL and rules.
func ruledKey(p *gatewaytest.Pager, rules ...string) string {
	return "key k {\nurl " + p.NotifyURL() + "?tz=UTC\n" + strings.Join(rules, "\n") + "\n}"
}
