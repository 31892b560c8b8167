package alerting_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
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

// backupSource returns the source backup.
func backupSource(t *testing.T) source.Set {
	t.Helper()
	s, err := source.New(source.Config{
		Name:      "backup",
		Templates: source.Templates{Title: "{{.job}}", Type: "{{.state}}", Incident: "{{.job}}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return source.Set{"backup": s}
}

// payloadSample returns a payload of a program from the test data of package programs.
func payloadSample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../source/programs/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestIncidents checks which incident and which state destinations get, for each
// way in which a message comes in.
func TestIncidents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys:   []site.KeyOptions{gatewaytest.Key("ops", d.url()), gatewaytest.Key("web", d.url())},
		Egress: gatewaytest.Loopback(),
	}, Sources: backupSource(t)})
	name := notifier.Incident{Name: "disk db1"}
	group := notifier.Incident{Name: `http://am.example.net {}:{alertname="DiskFull"}`}.For("ops", "alertmanager")
	firing := group
	firing.Alerts = notifier.AlertWords([]string{"a1b21", "a1b22"})
	for _, tt := range []struct {
		target, contentType, body string
		want                      notifier.Incident
		state                     notifier.IncidentState
	}{
		{"/notify/ops", gatewaytest.TypeForm, "body=x&type=failure&incident=disk+db1", name.For("ops", ""), notifier.Open},
		{"/notify/ops", gatewaytest.TypeForm, "body=x&type=warning&incident=disk+db1", name.For("ops", ""), notifier.Open},
		{"/notify/ops", gatewaytest.TypeForm, "body=x&incident=disk+db1", name.For("ops", ""), notifier.Updated},
		{"/notify/ops", gatewaytest.TypeForm, "body=x&type=success&incident=disk+db1", name.For("ops", ""), notifier.Resolved},
		{"/notify/web", gatewaytest.TypeForm, "body=x&incident=disk+db1", name.For("web", ""), notifier.Updated},
		{"/notify", gatewaytest.TypeForm, "body=x&incident=disk+db1&urls=" + d.url(), name.For("", ""), notifier.Updated},
		{"/notify/ops", gatewaytest.TypeForm, "body=x&type=failure", notifier.Incident{}, ""},
		{"/notify/ops/alertmanager", gatewaytest.TypeJSON, payloadSample(t, "alertmanager/group"), firing, notifier.Open},
		{"/notify/ops/alertmanager", gatewaytest.TypeJSON, payloadSample(t, "alertmanager/resolved"), group, notifier.Resolved},
		{
			"/notify/ops/backup", gatewaytest.TypeJSON, `{"job":"nightly","state":"acknowledged"}`,
			notifier.Incident{Name: "nightly"}.For("ops", "backup"), notifier.Acknowledged,
		},
		{
			"/notify/ops/backup?incident=q", gatewaytest.TypeJSON, `{"job":"nightly","state":"down"}`,
			notifier.Incident{Name: "nightly"}.For("ops", "backup"), notifier.Open,
		},
		{
			"/notify/ops/uptime_kuma?incident=q", gatewaytest.TypeJSON, payloadSample(t, "uptime_kuma/test"),
			notifier.Incident{Name: "q"}.For("ops", "uptime_kuma"), notifier.Updated,
		},
	} {
		if r := g.Post(tt.target, tt.contentType, tt.body); r.Status != 200 || strings.Contains(r.Body, "unknown") {
			t.Errorf("%s: status %d: %s", tt.target, r.Status, r.Body)
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
	t.Parallel()
	d := newDesk(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:    site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", d.url())}},
		Sources: backupSource(t), Queue: &outbox.Settings{},
	})
	for body, want := range map[string]notifier.Incident{
		`{"job":"nightly","state":"down"}`: {Name: "nightly", State: notifier.Open},
		`{"job":"weekly","state":"acked"}`: {Name: "weekly", State: notifier.Acknowledged},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops/backup", strings.NewReader(body))
		r.Header.Set("Content-Type", gatewaytest.TypeJSON)
		r.Header.Set("Accept", gatewaytest.TypeJSON)
		r.Header.Set("Prefer", "respond-async")
		a := g.Do(r)
		var got []paged
		for deadline := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			got = d.take()
		}
		state := want.State
		want = want.For("ops", "backup")
		if want.State = state; len(got) != 1 || got[0].Incident != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		m := g.Message(http.MethodGet, a.JSON(t).ID, gatewaytest.TypeJSON)
		if !strings.Contains(m.Body, `"incident":"`+want.Name+`"`) {
			t.Errorf("the message is shown as %s", m.Body)
		}
	}
	e := slices.DeleteFunc(g.Process.History.List(), func(e history.Entry) bool {
		return e.Key == "" || e.Key != "ops" || e.Site != g.Site()
	})
	if len(e) == 0 || e[0].Incident == "" {
		t.Errorf("the history has %+v", e)
	}
}
