package caddyhttp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

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
