package api

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// OriginCheck protects against cross-site request forgery, in which a page of another site sends
// messages through a visitor's browser, with the visitor's password or network. It relies on
// headers that only browsers set: Sec-Fetch-Site or, in older ones, Origin. The zero value checks
// nothing.
type OriginCheck struct{ protection *http.CrossOriginProtection }

// NewOriginCheck returns the check for a site, which lets pages of its trusted origins send.
func NewOriginCheck(s *site.Site) (c OriginCheck) {
	if len(s.TrustedOrigins) == 1 && s.TrustedOrigins[0] == site.AnyOrigin {
		return c
	}
	c.protection = http.NewCrossOriginProtection()
	for _, origin := range s.TrustedOrigins {
		_ = c.protection.AddTrustedOrigin(origin) // site.New has checked the origin
	}
	return c
}

// CheckOrigin returns a 403 if a page of another site sent r.
func (c OriginCheck) CheckOrigin(r *http.Request) error {
	if c.protection == nil || c.protection.Check(r) == nil {
		return nil
	}
	return ErrCrossOrigin
}

// ErrCrossOrigin is returned for a message of a page that may not send.
var ErrCrossOrigin = Errorf(http.StatusForbidden, "a page of another site sent this message; the operator can allow its origin with trusted_origins")
