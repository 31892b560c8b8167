package site

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// AnyOrigin in trusted_origins means all origins.
const AnyOrigin = "*"

// TrustedOrigins returns origins as browsers write them, or only "*" if that is among them.
func TrustedOrigins(texts []string) (out []string, err error) {
	for _, text := range texts {
		if text != AnyOrigin {
			if text, err = parseOrigin(text); err != nil {
				return nil, err
			}
		}
		out = append(out, text)
	}
	if slices.Contains(out, AnyOrigin) {
		return []string{AnyOrigin}, nil
	}
	return out, nil
}

var errOrigin = errors.New("it is not an origin; write a scheme and a host, such as https://example.com or https://example.com:8443, " +
	"without a path or wildcard and with an international name in its xn-- form, or * for all origins")

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
	if host+port == "" {
		return "", errOrigin
	}
	return u.Scheme + "://" + host + port, nil
}

// defaultPorts are the ports that an origin leaves out.
var defaultPorts = map[string]uint64{"http": 80, "https": 443}
