package httpapi

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// CheckOwnOrigin returns a 403 if a page of another site sent a request that changes
// something, also a page of an origin that may send messages.
func CheckOwnOrigin(r *http.Request) error {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return site.ErrForeignChange
	}
	return nil
}
