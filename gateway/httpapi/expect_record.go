package httpapi

import (
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// heartbeat.ExpectedBeat returns the beat of an expectation of a key of the site.
func (h *API) ExpectedBeat(k *site.Key, e *site.ExpectedBeat) *heartbeat.ExpectedBeat {
	if !k.OfSite {
		return &heartbeat.ExpectedBeat{Site: "", Settings: h.App.Resolved, Key: k, ExpectedBeat: e}
	}
	return &heartbeat.ExpectedBeat{Site: h.Site(), Settings: h.Resolved, Key: k, ExpectedBeat: e}
}
