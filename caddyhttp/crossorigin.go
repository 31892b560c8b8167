package caddyhttp

import (
	"errors"
	"net/http"
	"slices"
)

// anyOrigin among trusted origins stands for all.
const anyOrigin = "*"

// crossOrigin makes the check that keeps other web sites from sending messages
// with the browser, and so with the password or the network, of somebody who
// looks at them (cross-site request forgery). It is by headers that browsers
// set and other clients do not: Sec-Fetch-Site, or else Origin beside Host.
func crossOrigin(trusted []string) (*http.CrossOriginProtection, error) {
	if slices.Contains(trusted, anyOrigin) {
		return nil, nil
	}
	check := http.NewCrossOriginProtection()
	for _, origin := range trusted {
		if err := check.AddTrustedOrigin(origin); err != nil {
			return nil, errors.New("an origin is a scheme and a host, as in https://example.com, or * for all")
		}
	}
	return check, nil
}

// checkOrigin refuses a message that another site's page sends.
func (r *rules) checkOrigin(req *http.Request) error {
	if r.origins == nil || r.origins.Check(req) == nil {
		return nil
	}
	return refuse(http.StatusForbidden, "a page of another site wants to send this message; the operator can allow its origin with trusted_origins")
}
