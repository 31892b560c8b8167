package services

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// detour has the connections of a program lead elsewhere, for services whose
// servers stand in the Internet or on the machine itself. What is not listed
// does not exist.
type detour map[string]string

func (detour) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nothing goes over HTTP here")
}

func (d detour) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := d[network+" "+address]
	if !ok {
		to = "/nowhere"
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, to)
}

// detourSender is a sender that takes detours.
func detourSender(t *testing.T, d detour) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPoolWithTransport("test", d), 0)
	t.Cleanup(s.Close)
	return s
}

// namesParams demands that each parameter which a service has for itself and
// takes from the query occurs in one of the URLs of a test.
func namesParams(t *testing.T, service string, urls []string) {
	t.Helper()
	for _, s := range notifier.Services() {
		if s.Name != service {
			continue
		}
		for _, p := range s.Params {
			named := slices.ContainsFunc(urls, func(u string) bool {
				return strings.Contains(u, "?"+p.Name+"=") || strings.Contains(u, "&"+p.Name+"=")
			})
			if !p.Common && !p.InURL && !named {
				t.Errorf("no case is about %s", p.Name)
			}
		}
		return
	}
	t.Errorf("no service is called %s", service)
}
