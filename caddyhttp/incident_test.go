package caddyhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[pageDesk]()

// pageDesk is a service that shows the incidents of messages.
type pageDesk struct{ server notifier.Server }

func (d *pageDesk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Page desk", "https://example.com/"
	s.URL("pagedesk://{host}[:{port}]")
	s.Server(&d.server)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
}

func (d *pageDesk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, d.server.URL("/"), paged{m.Body, m.Type, m.Incident})
}

// paged is a message at a pageDesk.
type paged struct {
	Body     string
	Type     notifier.Type
	Incident notifier.Incident
}

// desk is the server of a pageDesk.
type desk struct {
	*httptest.Server
	mu  sync.Mutex
	got []paged
}

func newDesk(t *testing.T) *desk {
	d := new(desk)
	d.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var p paged
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.got = append(d.got, p)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) url() string { return "pagedesk://" + strings.TrimPrefix(d.URL, "http://") }

// take returns and removes the messages.
func (d *desk) take() []paged {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.got
	d.got = nil
	return got
}

// TestIncidents checks which incident and which state destinations get, for each
// way in which a message comes in.
func TestIncidents(t *testing.T) {
	d := newDesk(t)
	h := newGateway(t, open+"key ops {\nurl "+d.url()+"\n}\nkey web {\nurl "+d.url()+"\n}\nfrom backup {\ntitle {{.job}}\ntype {{.state}}\nincident {{.job}}\n}", "")
	name := notifier.Incident{Name: "disk db1"}
	group := notifier.Incident{Name: `http://am.example.net {}:{alertname="DiskFull"}`}.For("ops", "alertmanager")
	firing := group
	firing.Alerts = notifier.AlertWords([]string{"a1b21", "a1b22"})
	for _, tt := range []struct {
		target, contentType, body string
		want                      notifier.Incident
		state                     notifier.IncidentState
	}{
		{"/notify/ops", typeForm, "body=x&type=failure&incident=disk+db1", name.For("ops", ""), notifier.Open},
		{"/notify/ops", typeForm, "body=x&type=warning&incident=disk+db1", name.For("ops", ""), notifier.Open},
		{"/notify/ops", typeForm, "body=x&incident=disk+db1", name.For("ops", ""), notifier.Updated},
		{"/notify/ops", typeForm, "body=x&type=success&incident=disk+db1", name.For("ops", ""), notifier.Resolved},
		{"/notify/web", typeForm, "body=x&incident=disk+db1", name.For("web", ""), notifier.Updated},
		{"/notify", typeForm, "body=x&incident=disk+db1&urls=" + d.url(), name.For("", ""), notifier.Updated},
		{"/notify/ops", typeForm, "body=x&type=failure", notifier.Incident{}, ""},
		{"/notify/ops/alertmanager", typeJSON, sample(t, "alertmanager/group"), firing, notifier.Open},
		{"/notify/ops/alertmanager", typeJSON, sample(t, "alertmanager/resolved"), group, notifier.Resolved},
		{"/notify/ops/backup", typeJSON, `{"job":"nightly","state":"acknowledged"}`, notifier.Incident{Name: "nightly"}.For("ops", "backup"), notifier.Acknowledged},
		{"/notify/ops/backup?incident=q", typeJSON, `{"job":"nightly","state":"down"}`, notifier.Incident{Name: "nightly"}.For("ops", "backup"), notifier.Open},
		{"/notify/ops/uptime_kuma?incident=q", typeJSON, sample(t, "uptime_kuma/test"), notifier.Incident{Name: "q"}.For("ops", "uptime_kuma"), notifier.Updated},
	} {
		if r := post(t, h, tt.target, tt.contentType, tt.body); r.status != 200 || strings.Contains(r.body, "unknown") {
			t.Errorf("%s: status %d: %s", tt.target, r.status, r.body)
		}
		tt.want.State = tt.state
		if got := d.take(); len(got) != 1 || got[0].Incident != tt.want {
			t.Errorf("%s %s: got %+v, want %+v", tt.target, tt.body, got, tt.want)
		}
	}
}

// TestQueuedIncidents checks that a message keeps its incident in the queue, and
// that whoever asks for the message sees it.
func TestQueuedIncidents(t *testing.T) {
	d := newDesk(t)
	h := newQueueGateway(t, t.TempDir(), "key ops {\nurl "+d.url()+"\n}\nfrom backup {\ntitle {{.job}}\ntype {{.state}}\nincident {{.job}}\n}", "")
	for body, want := range map[string]notifier.Incident{
		`{"job":"nightly","state":"down"}`: {Name: "nightly", State: notifier.Open},
		`{"job":"weekly","state":"acked"}`: {Name: "weekly", State: notifier.Acknowledged},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops/backup", strings.NewReader(body))
		r.Header.Set("Content-Type", typeJSON)
		r.Header.Set("Accept", typeJSON)
		r.Header.Set("Prefer", "respond-async")
		a := do(t, h, r)
		var got []paged
		for deadline := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			got = d.take()
		}
		state := want.State
		want = want.For("ops", "backup")
		if want.State = state; len(got) != 1 || got[0].Incident != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		m := getMessage(t, h, http.MethodGet, a.queued(t).ID, typeJSON)
		if !strings.Contains(m.body, `"incident":"`+want.Name+`"`) {
			t.Errorf("the message is shown as %s", m.body)
		}
	}
	e := slices.DeleteFunc(h.shared.History.List(), func(e history.Entry) bool {
		return e.Key == nil || *e.Key != "ops" || e.Site != h.api.Site()
	})
	if len(e) == 0 || e[0].Incident == "" {
		t.Errorf("the history has %+v", e)
	}
}

// TestIncidentsInEvents checks that events about messages name their incident.
func TestIncidentsInEvents(t *testing.T) {
	s := gatewaytest.NewStation(t)
	_, _ = startEventApps(t, `
	notify {
		key meta {
			url `+s.NotifyURL("/meta")+`
		}
	}
	events {
		on notify_failed notify meta {
			title "{event.data.incident}"
		}
	}`)
	h := newGateway(t, open, "")
	post(t, h, "/notify", typeForm, "body=x&incident=disk+db1&urls="+s.NotifyURL("/refuse"))
	if left := h.shared.Background.Wait(time.Minute); left > 0 {
		t.Fatal(left)
	}
	for _, got := range s.Take() {
		if got.Path == "/meta" && got.Title == "disk db1" {
			return
		}
	}
	t.Error("the event does not name the incident")
}
