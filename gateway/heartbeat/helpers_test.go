package heartbeat_test

import (
	"cmp"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// newGateway starts a gateway on the queue in a folder, with keys for all sites.
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Queued(dir, keys...))
}

// expect returns the expectation of a beat. A grace of 0 is the default one.
func expect(name string, every, grace time.Duration) site.BeatOptions {
	return site.BeatOptions{Expect: rules.Expect{Name: name, Every: every, Grace: cmp.Or(grace, rules.DefaultGrace(every))}}
}

// nightlyKey returns the key k with one URL, which expects the beat nightly every 20 minutes
// with a grace of 5.
func nightlyKey(p *gatewaytest.Pager) site.KeyOptions {
	k := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
	k.Expects = []site.BeatOptions{expect("nightly", 20*time.Minute, 5*time.Minute)}
	return k
}

// beat sends a beat, and checks the status.
func beat(t *testing.T, g *gatewaytest.Gateway, method, target, body string, status int) gatewaytest.Reply {
	t.Helper()
	got := g.Do(httptest.NewRequest(method, target, strings.NewReader(body)))
	if got.Status != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, target, got.Status, status, got.Body)
	}
	synctest.Wait()
	return got
}

// byCalendar returns the expectation of a beat by a schedule in UTC.
func byCalendar(t *testing.T, name, fields string, grace, maxRun time.Duration) site.BeatOptions {
	t.Helper()
	c, err := rules.ParseCalendar(fields, "UTC")
	if err != nil {
		t.Fatal(err)
	}
	return site.BeatOptions{Expect: rules.Expect{Name: name, Calendar: c, Grace: grace, MaxRun: maxRun}}
}
