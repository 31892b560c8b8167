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

// dialMap maps "network address" to the address that is dialled instead. It is for
// services with a fixed server. Connections to other addresses fail.
type dialMap map[string]string

func (dialMap) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("unexpected HTTP request")
}

func (d dialMap) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, ok := d[network+" "+address]
	if !ok {
		to = "/nowhere"
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, to)
}

// newDialSender returns a sender that dials as d says.
func newDialSender(t *testing.T, d dialMap) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPoolWithTransport("test", d), 0)
	t.Cleanup(s.Close)
	return s
}

// expectParams checks that each query parameter of the service occurs in one of
// the URLs. It ignores the parameters that every service has.
func expectParams(t *testing.T, service string, urls []string) {
	t.Helper()
	for _, s := range notifier.Services() {
		if s.Name != service {
			continue
		}
		for _, p := range s.Params {
			found := slices.ContainsFunc(urls, func(u string) bool {
				return strings.Contains(u, "?"+p.Name+"=") || strings.Contains(u, "&"+p.Name+"=")
			})
			if !p.Common && !p.InURL && !found {
				t.Errorf("no case has the parameter %s", p.Name)
			}
		}
		return
	}
	t.Errorf("there is no service %s", service)
}
