package caddyhttp

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// checkOwnOrigin returns a 403 if a page of another site sent a request that changes
// something, also a page of an origin that may send messages.
func checkOwnOrigin(r *http.Request) error {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return site.ErrForeignChange
	}
	return nil
}
