package caddyhttp

import (
	"errors"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// errPublicURL is returned for an address that links cannot begin with.
var errPublicURL = errors.New("it must be the address at which the gateway is reached, " +
	"such as https://alerts.example.com, with the path before /notify if there is one, " +
	"and without a user, a query and a fragment")

// parsePublicURL returns the beginning of links to the gateway, without a slash at its
// end.
func parsePublicURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errPublicURL
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '<' || r == '>' || r == '{' || r == '}' || r == '#' || r == '*'
	}) {
		return "", errPublicURL
	}
	if site.HasDotSegment(u.Path) || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), httpapi.RouteNotify) {
		return "", errPublicURL
	}
	return strings.TrimRight(u.String(), "/"), nil
}
