package site

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// anyOrigin in trusted_origins stands for all origins.
const anyOrigin = "*"

// NewOriginCheck returns the protection against cross-site request forgery:
// pages of other sites that send messages through a visitor's browser, which has
// the visitor's password or network. It relies on headers that only
// browsers set: Sec-Fetch-Site or, in older ones, Origin. The pages of trusted
// origins may send. The result is nil, for no check, if all origins are
// trusted.
func NewOriginCheck(trusted []string) (*http.CrossOriginProtection, error) {
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

var errOrigin = errors.New("it is not an origin; write a scheme and a host, such as https://example.com or https://example.com:8443, without a path or wildcard and with an international name in its xn-- form, or * for all origins")

// parseOrigin returns an origin as browsers write it (WHATWG URL, section 4.7):
// in lower case and without the default port.
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

// defaultPorts are the ports that an origin leaves out.
var defaultPorts = map[string]uint64{"http": 80, "https": 443}

// CheckOrigin returns a 403 if a page of another site sent req.
func (s *Site) CheckOrigin(req *http.Request) error {
	if s.originCheck == nil || s.originCheck.Check(req) == nil {
		return nil
	}
	return ErrCrossOrigin
}

// ErrCrossOrigin is returned for a message of a page that may not send.
var ErrCrossOrigin = message.Errorf(message.Forbidden, "a page of another site sent this message; the operator can allow its origin with trusted_origins")
