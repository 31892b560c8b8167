package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentKey returns the key with a name and one URL, which remembers incidents.
func incidentKey(name string, p *gatewaytest.Pager) site.KeyOptions {
	k := gatewaytest.Key(name, p.NotifyURL())
	k.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
	return k
}

// newIncidentGateway starts a gateway on the queue in a folder, with keys for all sites, at
// which everybody manages.
func newIncidentGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: keys},
		Site:   site.Options{Managers: gatewaytest.Everybody()},
		Queue:  &outbox.Settings{Path: dir},
	})
}

// askIncident makes a request to the page of an incident.
func askIncident(t *testing.T, g *gatewaytest.Gateway, method, id, form string, header ...string) gatewaytest.Reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, site.RouteIncidents+"/"+id, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return g.Do(r)
}

// onCall is a chat without a number, and phones that are steps.
type onCall struct {
	chat   *gatewaytest.Pager
	phones []*gatewaytest.Pager
}

func newOnCall(t *testing.T, phones int) *onCall {
	x := &onCall{chat: gatewaytest.NewPager(t, http.StatusOK)}
	for range phones {
		x.phones = append(x.phones, gatewaytest.NewPager(t, http.StatusOK))
	}
	return x
}

// options returns the options of a gateway on the queue in a folder with the key k, which
// escalates, and the setting that it needs.
func (x *onCall) options(dir string, e *rules.Escalate) gatewaytest.Options {
	urls := []string{x.chat.NotifyURL() + " chat"}
	for i, p := range x.phones {
		urls = append(urls, fmt.Sprintf("%s %d:oncall", p.NotifyURL(), i+1))
	}
	k := gatewaytest.Key("k", urls...)
	k.Rules = &rules.Rules{Escalate: e}
	return gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: "https://alerts.example.com/x"},
		Queue:  &outbox.Settings{Path: dir},
	}
}

// escalateAfter returns the rule with the defaults of the Caddyfile.
func escalateAfter(after time.Duration) *rules.Escalate {
	return &rules.Escalate{After: []time.Duration{after}, Repeat: 3, Ack: 24 * time.Hour}
}

// wantCounts checks how many messages the chat and the phones got.
func (x *onCall) wantCounts(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	got := []int{x.chat.Count()}
	for _, p := range x.phones {
		got = append(got, p.Count())
	}
	if !slices.Equal(got, want) {
		t.Errorf("at %s the chat and the phones got %v messages, want %v", time.Now().UTC().Format(time.TimeOnly), got, want)
	}
}
