package caddyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// silence makes a silence of the key k, and returns its ID.
func silence(t *testing.T, h *Handler, form string) string {
	t.Helper()
	resp := postWith(t, h, "/notify/k/silences", form)
	var s httpapi.SilenceJSON
	if err := json.Unmarshal([]byte(resp.body), &s); err != nil || resp.status != http.StatusCreated || resp.header.Get("Location") != "/notify/k/silences/"+s.ID {
		t.Fatalf("status %d, Location %q: %s", resp.status, resp.header.Get("Location"), resp.body)
	}
	return s.ID
}

const managed = "console {\nmanage open\n}\n"

// askIncident makes a request to the page of an incident.
func askIncident(t *testing.T, h *Handler, method, id, form string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, site.RouteIncidents+"/"+id, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// told returns type and text of the messages that the pager has taken.
func (p *pager) told() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		out = append(out, m.Type+": "+m.Message)
	}
	return out
}

// alertForm returns a form with a message about an incident.
func alertForm(typ, text, incident string) string {
	return fmt.Sprintf("type=%s&body=%s&incident=%s", typ, text, incident)
}

// unwritable is a store that cannot be written for a while.
type unwritable struct {
	queue.Store
	down atomic.Bool
}

func (u *unwritable) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if u.down.Load() {
		return &queue.UnavailableError{Err: errors.New("the disk fails")}
	}
	return u.Store.Accept(ctx, maxSize, entries...)
}

// newUnwritable puts such a store into the place of that of a gateway, whose queue is in
// the folder dir.
func newUnwritable(t *testing.T, h *Handler, dir string) *unwritable {
	t.Helper()
	q := h.app.gateway.Rooms
	if err := q.Outbox.Queue.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if q.Outbox.Store, err = bolt.Open(bolt.Options{Path: dir}); err != nil {
		t.Fatal(err)
	}
	u := &unwritable{Store: q.Outbox.Store}
	q.Outbox.Queue = queue.New(u, q.Options(h.app.gateway.Engine.QueueSettings))
	q.Outbox.Queue.Start()
	return u
}

func queueID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
