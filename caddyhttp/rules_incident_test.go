package caddyhttp

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// incidentsOf returns the incidents of the key k of a gateway.
func incidentsOf(t *testing.T, h *Handler) (out []*rules.Incident) {
	t.Helper()
	for _, stage := range rules.Stages {
		by := alerting.IncidentQuery{Stage: stage, Limit: 2}
		for more := true; more; more = by.After != (alerting.IncidentCursor{}) {
			var list []alerting.StoredIncident
			var err error
			if list, by.After, err = h.app.gateway.Rooms.Alerts.Incidents.List(t.Context(), []string{"\x00k"}, &by); err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				if x.Incident.Stage() != stage {
					t.Errorf("%s is among those that are %s", x.Incident.Name, stage)
				}
				out = append(out, x.Incident)
			}
		}
	}
	return out
}

// stored returns an incident for what changes it.
func stored(t *testing.T, h *Handler, x *rules.Incident) *alerting.StoredIncident {
	t.Helper()
	at, err := h.app.gateway.Rooms.Alerts.Incidents.ByID(t.Context(), x.ID)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestIncidentRecords checks what is known of the incidents of a key with rules: each
// opening has an ID of its own, and the end of a record.
func TestIncidentRecords(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		start := func() *Handler { return newQueueGateway(t, dir, "", ruledKey(p, "dedupe 1h")) }
		h := start()
		postWith(t, h, "/notify/k", alertForm("success", "up", "never told"))
		postWith(t, h, "/notify/k", "body=x&type=failure")
		for _, name := range []string{"db1", "db2", "db3", "db4", "db5"} {
			postWith(t, h, "/notify/k", "title=Secret+free&body=secret&type=warning&incident="+name)
		}
		list := incidentsOf(t, h)
		if len(list) != 5 {
			t.Fatalf("%d incidents", len(list))
		}
		for _, x := range list {
			if x.State != notifier.Open || x.Title != "Secret free" || x.Type != notifier.Warning || x.Key != "k" || x.Source != "http" || !x.Opened.Equal(time.Now()) {
				t.Errorf("%+v", x)
			}
			if found, err := h.app.gateway.Rooms.Alerts.Incidents.ByID(t.Context(), x.ID); err != nil || found == nil || found.Incident.Name != x.Name {
				t.Errorf("%v, %v", found, err)
			}
		}
		for _, id := range []string{"", "x", rules.NewIncidentID()} {
			if found, err := h.app.gateway.Rooms.Alerts.Incidents.ByID(t.Context(), id); !errors.Is(err, alerting.ErrNoIncident) || found != nil {
				t.Errorf("%q: %v, %v", id, found, err)
			}
		}
		byName := func(name string) *rules.Incident {
			for _, x := range incidentsOf(t, h) {
				if x.Name == name {
					return x
				}
			}
			t.Fatalf("no incident %s", name)
			return nil
		}
		first := byName("db1")
		time.Sleep(time.Minute)
		postWith(t, h, "/notify/k", alertForm("success", "up", "db1"))
		if x := byName("db1"); x.State != notifier.Resolved || x.ID != first.ID || !x.Resolved.Equal(time.Now()) || !x.Opened.Equal(first.Opened) {
			t.Errorf("%+v", x)
		}
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db1"))
		if x := byName("db1"); x.State != notifier.Open || x.ID == first.ID || !x.Resolved.IsZero() {
			t.Errorf("%+v", x)
		}
		if found, err := h.app.gateway.Rooms.Alerts.Incidents.ByID(t.Context(), first.ID); !errors.Is(err, alerting.ErrNoIncident) || found != nil {
			t.Errorf("the ID of the first opening: %v, %v", found, err)
		}
		h = away(t, h, "2000-01-07 23:00:00", start)
		if list := incidentsOf(t, h); len(list) != 5 {
			t.Errorf("%d incidents are known, want 5", len(list))
		}
		until(t, "2000-01-08 01:00:00")
		if list := incidentsOf(t, h); len(list) != 0 {
			t.Errorf("%d incidents are not forgotten", len(list))
		}
	})
}

// TestResolveTellsTheTold checks that a person who resolves an incident tells those who were
// told of it or will be, and nobody else.
func TestResolveTellsTheTold(t *testing.T) {
	t.Parallel()
	a, b, c := newPager(t, http.StatusOK), newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "key k {\nurl "+a.NotifyURL()+" one\nurl "+b.NotifyURL()+" two\nurl "+c.NotifyURL()+" three\ndedupe 1h\nquiet 23:00-08:00 UTC {\ntypes failure\ntag three\n}\n}")
		postWith(t, h, "/notify/k", alertForm("failure", "down", "db1")+"&tag=two,three")
		x := incidentsOf(t, h)[0]
		if _, err := h.app.gateway.Rooms.Alerts.Incidents.Resolve(t.Context(), stored(t, h, x), "Eve"); err != nil {
			t.Fatal(err)
		}
		until(t, "2000-01-01 09:00:00")
		if got := []int{a.count(), b.count(), c.count()}; !slices.Equal(got, []int{0, 2, 1}) {
			t.Errorf("told %v times", got)
		}
		if got := c.toldTitles(); !strings.HasPrefix(got[0], "success: ") {
			t.Errorf("told %q", got)
		}
	})
}
