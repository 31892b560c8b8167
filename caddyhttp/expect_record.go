package caddyhttp

import (
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// heartbeat.ExpectedBeat returns the beat of an expectation of a key of the site.
func (h *httpAPI) expectedBeat(k *site.Key, e *site.ExpectedBeat) *heartbeat.ExpectedBeat {
	if !k.OfSite {
		return &heartbeat.ExpectedBeat{Site: "", Settings: h.app.Resolved, Key: k, ExpectedBeat: e}
	}
	return &heartbeat.ExpectedBeat{Site: h.site(), Settings: h.resolved, Key: k, ExpectedBeat: e}
}
