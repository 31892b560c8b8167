package alerting_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// newLoggedGateway starts a gateway, and returns what it logs.
func newLoggedGateway(t *testing.T, o gatewaytest.Options) (*gatewaytest.Gateway, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	o.Log = zap.New(core)
	return gatewaytest.New(t, o), logs
}

// wantForgotten checks the lines that begin with text: their fields, and that no line has
// the text of a message.
func wantForgotten(t *testing.T, logs *observer.ObservedLogs, text string, want ...map[string]any) {
	t.Helper()
	var found []map[string]any
	for _, e := range logs.All() {
		if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), "confidential") {
			t.Errorf("the log has the text of a message: %s %v", e.Message, e.ContextMap())
		}
		if strings.HasPrefix(e.Message, text) {
			found = append(found, e.ContextMap())
		}
	}
	if len(found) != len(want) {
		t.Fatalf("%q: %d lines, want %d: %v", text, len(found), len(want), found)
	}
	for i := range want {
		for name, value := range want[i] {
			if found[i][name] != value {
				t.Errorf("%q: %s is %v, want %v", text, name, found[i][name], value)
			}
		}
	}
}

// TestForgottenRepetitions checks that repetitions which no message tells have a line in the
// log when they are forgotten, and others have none.
func TestForgottenRepetitions(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, ruledKey(p, rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}))
		g := gatewaytest.New(t, o)
		for _, text := range []string{"confidential", "confidential", "confidential", "another confidential one"} {
			g.PostForm("/notify/k", "body="+text)
		}
		for range 2 { // these are told
			g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "confidential", "db1"))
		}
		wantResult(t, g, gatewaytest.AlertForm("success", "confidential", "db1"), notifier.Delivered, "")
		g.Stop()
		gatewaytest.Until(t, "2000-01-07 23:00:00")
		_, logs := newLoggedGateway(t, o)
		gatewaytest.Until(t, "2000-01-08 03:00:00")
		wantForgotten(t, logs, "repetitions that dedupe has left out", map[string]any{"key": "k", "messages": int64(2)})
	})
}

// TestForgottenIncident checks that an incident without news is forgotten with a line in the log,
// but not while a rule holds a message about it or a silence matches it.
func TestForgottenIncident(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := gatewaytest.Queued(dir, ruledKey(p, rules.Rules{
			Dedupe: &rules.Dedupe{Window: time.Minute},
			Digest: &rules.Digest{Every: 8 * time.Hour, Scope: rules.Scope{Types: []notifier.Type{notifier.Warning}}},
		}))
		o.Queue.Keep = time.Hour
		g, logs := newLoggedGateway(t, o)
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "confidential", "open"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "confidential", "over"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("success", "confidential", "over"))
		g.PostForm("/notify/k", gatewaytest.AlertForm("warning", "confidential", "held"))
		silenceKey(t, g, rules.Silence{ID: uuid.New(), Until: time.Now().Add(8 * time.Hour), Incident: "silent"})
		g.PostForm("/notify/k", gatewaytest.AlertForm("failure", "confidential", "silent"))
		const open, over = "an incident that is still open is forgotten", "an incident that is resolved is forgotten"
		time.Sleep(4 * time.Hour)
		wantForgotten(t, logs, open, map[string]any{"key": "k", "incident": "open"})
		wantForgotten(t, logs, over, map[string]any{"key": "k", "incident": "over"})
		if n := len(g.ListIncidents("k")); n != 2 {
			t.Errorf("%d incidents are known, want 2", n)
		}
		time.Sleep(8 * time.Hour)
		wantForgotten(t, logs, open, map[string]any{"incident": "open"}, map[string]any{}, map[string]any{})
	})
}

// TestNumberAfterCancelling checks that the number of messages for which there was no room is
// told also if all that was held is cancelled.
func TestNumberAfterCancelling(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g, logs := newLoggedGateway(t, gatewaytest.Queued(dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: time.Hour}})))
		var held []string
		for i := range rules.MaxItems + 3 {
			if a := g.PostForm("/notify/k", fmt.Sprintf("body=No+%d", i)).JSON(t); a.Results[0].Status == "queued" {
				held = append(held, a.ID)
			}
		}
		for _, id := range held {
			g.Message(http.MethodDelete, id, gatewaytest.TypeJSON)
		}
		time.Sleep(3 * time.Hour)
		p.WantTold(t, "info: k: 3 messages | and 3 more")
		wantForgotten(t, logs, "messages are told by nobody")
	})
}
