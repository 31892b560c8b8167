package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// newLoggedGateway is newQueueGateway with what it logs.
func newLoggedGateway(t *testing.T, dir, block, queue string) (*Handler, *observer.ObservedLogs) {
	t.Helper()
	h := newGateway(t, "", "queue {\npath "+dir+"\nwait 5s\n"+queue+"\n}\n"+block)
	core, logs := observer.New(zapcore.DebugLevel)
	h.app.gateway.Engine.Log = zap.New(core)
	startApp(t, h)
	return h, logs
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
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h, logs := newLoggedGateway(t, dir, ruledKey(p, "dedupe 1h"), "")
		for _, text := range []string{"confidential", "confidential", "confidential", "another confidential one"} {
			postWith(t, h, "/notify/k", "body="+text)
		}
		for range 2 { // these are told
			postWith(t, h, "/notify/k", alertForm("failure", "confidential", "db1"))
		}
		wantResult(t, h, alertForm("success", "confidential", "db1"), notifier.Delivered, "")
		away(t, h, "2000-01-07 23:00:00", func() *Handler {
			h, logs = newLoggedGateway(t, dir, ruledKey(p, "dedupe 1h"), "")
			return h
		})
		until(t, "2000-01-09 00:00:00")
		wantForgotten(t, logs, "repetitions that dedupe has left out", map[string]any{"key": "k", "messages": int64(2)})
	})
}

// TestForgottenIncident checks that an incident of which nothing is heard has a line in the
// log when it is forgotten, and is not while a rule holds a message about it or a silence
// matches it.
func TestForgottenIncident(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h, logs := newLoggedGateway(t, dir, ruledKey(p, "dedupe 1m", "digest 20h {\ntypes warning\n}"), "keep 1h")
		postWith(t, h, "/notify/k", alertForm("failure", "confidential", "open"))
		postWith(t, h, "/notify/k", alertForm("failure", "confidential", "over"))
		postWith(t, h, "/notify/k", alertForm("success", "confidential", "over"))
		postWith(t, h, "/notify/k", alertForm("warning", "confidential", "held"))
		s := rules.Silence{ID: uuid.New(), Until: time.Now().Add(20 * time.Hour), Incident: "silent"}
		if err := h.app.gateway.Rooms.Alerts.Silences.Make(t.Context(), h.api.Resolved.Keys["k"], h.api.Site(), s); err != nil {
			t.Fatal(err)
		}
		postWith(t, h, "/notify/k", alertForm("failure", "confidential", "silent"))
		const open, over = "an incident that is still open is forgotten", "an incident that is resolved is forgotten"
		time.Sleep(10 * time.Hour)
		wantForgotten(t, logs, open, map[string]any{"key": "k", "incident": "open"})
		wantForgotten(t, logs, over, map[string]any{"key": "k", "incident": "over"})
		if n := len(incidentsOf(t, h)); n != 2 {
			t.Errorf("%d incidents are known, want 2", n)
		}
		time.Sleep(20 * time.Hour)
		wantForgotten(t, logs, open, map[string]any{"incident": "open"}, map[string]any{}, map[string]any{})
	})
}

// TestNumberAfterCancelling checks that the number of messages for which there was no room is
// told also if all that was held is cancelled.
func TestNumberAfterCancelling(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h, logs := newLoggedGateway(t, dir, ruledKey(p, "digest 1h"), "")
		var held []string
		for i := range rules.MaxItems + 3 {
			if a := postWith(t, h, "/notify/k", fmt.Sprintf("body=No+%d", i)).queued(t); a.Results[0].Status == "queued" {
				held = append(held, a.ID)
			}
		}
		for _, id := range held {
			getMessage(t, h, http.MethodDelete, id, typeJSON)
		}
		time.Sleep(3 * time.Hour)
		p.wantTold(t, "info: k: 3 messages | and 3 more")
		wantForgotten(t, logs, "messages are told by nobody")
	})
}
