package alerting_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentOptions are the options of a gateway on the queue in a folder, with keys for all
// sites.
func incidentOptions(dir string, keys ...site.KeyOptions) gatewaytest.Options {
	return gatewaytest.Options{Global: site.Options{Keys: keys}, Queue: &outbox.Settings{Path: dir}}
}

// newIncidentGateway starts a gateway with [incidentOptions].
func newIncidentGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, incidentOptions(dir, keys...))
}

// newSilenceGateway is [newIncidentGateway] with managers, who may make silences.
func newSilenceGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	o := incidentOptions(dir, keys...)
	o.Site.Managers = gatewaytest.Everybody()
	return gatewaytest.New(t, o)
}

// pagerKey returns the key k with one URL and rules, or nil for none.
func pagerKey(p *gatewaytest.Pager, r *rules.Rules) site.KeyOptions {
	k := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
	k.Rules = r
	return k
}

// dedupeMinute suppresses repetitions for a minute.
func dedupeMinute() *rules.Rules { return &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Minute}} }

// wantFirst posts a message to the key k, and checks the status and the rule of its first
// result.
func wantFirst(t *testing.T, g *gatewaytest.Gateway, form string, status notifier.Status, rule notifier.Rule) gatewaytest.Answer {
	t.Helper()
	got := g.PostForm("/notify/k", form)
	a := got.JSON(t)
	if r := a.Results[0]; got.Status != http.StatusOK || r.Status != status || r.Rule != rule {
		t.Errorf("%s: status %d, %s %q; want %s %q", form, got.Status, r.Status, r.Rule, status, rule)
	}
	return a
}

// messageID returns the ID of a message for the queue.
func messageID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
