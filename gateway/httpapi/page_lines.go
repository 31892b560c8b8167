package httpapi

import (
	"net/http"
	"regexp"
)

// plainHost matches hosts that need no quotes in a shell and in YAML.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]_-]+$`)

// SiteAddress returns the scheme and host at which the client of r reaches the site.
func SiteAddress(r *http.Request) (scheme, host string) {
	scheme, host = "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	// A proxy that is trusted says what the client has used.
	if isFromTrustedProxy(r) {
		if proto := r.Header.Get("X-Forwarded-Proto"); proto == "https" || proto == "http" {
			scheme = proto
		}
	}
	if !plainHost.MatchString(host) {
		host = "HOST"
	}
	return scheme, host
}
