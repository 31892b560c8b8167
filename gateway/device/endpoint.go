package device

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// services are the hosts of the services that deliver the pushes of Chrome, Firefox, Safari
// and Edge.
var services = []string{"fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com"}

// maxEndpoint is the maximum length of the address of a subscription.
const maxEndpoint = 2 << 10

// ErrEndpoint is returned for a subscription at a push service that is not allowed.
var ErrEndpoint = message.Errorf(message.Invalid,
	"subscription: the endpoint is not that of a push service that is known; the operator can allow its host with push { services <host> }")

// checkEndpoint returns [ErrEndpoint] unless the host of a subscription's endpoint is a known push
// service or one of others. others are hosts that passed [CheckHost], in lower case. The host is
// compared after parsing, because a URL can disguise a name.
func checkEndpoint(endpoint string, others []string) error {
	u, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > maxEndpoint {
		return ErrEndpoint
	}
	host := strings.ToLower(u.Hostname())
	of := func(service string) bool {
		ip, err := netip.ParseAddr(strings.Trim(service, "[]"))
		return host == strings.Trim(service, "[]") || err != nil && !ip.IsValid() && strings.HasSuffix(host, "."+service)
	}
	if slices.ContainsFunc(others, of) {
		return nil
	}
	if port := u.Port(); port != "" && port != "443" || net.ParseIP(host) != nil || !slices.ContainsFunc(services, of) {
		return ErrEndpoint
	}
	return nil
}

// CheckHost returns an error if text is neither a host name nor an IP address.
func CheckHost(text string) error {
	u, err := url.Parse("https://" + text)
	if err != nil || text == "" || u.Host != text || u.Port() != "" || strings.HasSuffix(text, ".") || strings.ContainsAny(text, "*{}@/ ") {
		return errors.New("it must be the name of a host, such as push.example.com, without a scheme, a port or a wildcard")
	}
	return nil
}
