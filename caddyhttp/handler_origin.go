package caddyhttp

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

// anyOrigin among trusted origins stands for all.
const anyOrigin = "*"

// crossOrigin makes the check that keeps other web sites from sending messages
// with the browser, and so with the password or the network, of somebody who
// looks at them (cross-site request forgery). It is by headers that browsers
// set and other clients do not: Sec-Fetch-Site, or else Origin beside Host.
func crossOrigin(trusted []string) (*http.CrossOriginProtection, error) {
	check := http.NewCrossOriginProtection()
	for _, text := range trusted {
		if text == anyOrigin {
			continue
		}
		origin, err := parseOrigin(text)
		if err != nil {
			return nil, err
		}
		if err := check.AddTrustedOrigin(origin); err != nil {
			return nil, errOrigin
		}
	}
	if slices.Contains(trusted, anyOrigin) {
		return nil, nil
	}
	return check, nil
}

var errOrigin = errors.New("an origin is a scheme and a host, as in https://example.com or https://example.com:8443, with nothing behind it, no wildcard within it, and an international name in its xn-- form; or * for all")

// parseOrigin writes an origin as browsers do (WHATWG URL, section 4.7): in
// small letters and without the port that goes without saying. What no browser
// would send is an error.
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || strings.ContainsAny(text, "?#") {
		return "", errOrigin
	}
	host, port := strings.ToLower(u.Host), u.Port()
	if strings.ContainsFunc(host, func(r rune) bool { return r == '*' || r == '%' || r <= ' ' || r >= unicode.MaxASCII }) {
		return "", errOrigin
	}
	host = strings.TrimSuffix(host, ":"+port)
	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		if port = ""; number != defaultPorts[u.Scheme] {
			port = ":" + strconv.FormatUint(number, 10)
		}
	} else if port != "" {
		return "", errOrigin
	}
	return u.Scheme + "://" + host + port, nil
}

// defaultPorts are the ports that are not written out in an origin.
var defaultPorts = map[string]uint64{"http": 80, "https": 443}

// checkOrigin refuses a message that another site's page sends.
func (r *resolved) checkOrigin(req *http.Request) error {
	if r.origins == nil || r.origins.Check(req) == nil {
		return nil
	}
	return api.Errorf(http.StatusForbidden, "a page of another site wants to send this message; the operator can allow its origin with trusted_origins")
}
