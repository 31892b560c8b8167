package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// sourceSample returns a payload of a program from the test data of package programs.
func sourceSample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../source/programs/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// siteWith starts a gateway whose site has keys.
func siteWith(t *testing.T, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys}})
}

// sourcesWith returns sources with settings, by their names.
func sourcesWith(t *testing.T, all ...source.Config) source.Set {
	t.Helper()
	out := source.Set{}
	for _, c := range all {
		s, err := source.New(c)
		if err != nil {
			t.Fatal(err)
		}
		out[c.Name] = s
	}
	return out
}

// lockedKey returns a key with a token and URLs.
func lockedKey(name, token string, urls ...string) site.KeyOptions {
	k := gatewaytest.Key(name, urls...)
	k.Tokens = []string{token}
	return k
}

// acceptingKey returns a key with a URL that accepts only messages of sources.
func acceptingKey(name, url string, sources ...string) site.KeyOptions {
	k := gatewaytest.Key(name, url)
	k.Accept = sources
	return k
}

var _ = notifier.Register[sourceDesk]()

// sourceDesk is a service that shows the incidents of messages.
type sourceDesk struct{ server notifier.Server }

func (d *sourceDesk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Source desk", "https://example.com/"
	s.URL("sourcedesk://{host}[:{port}]")
	s.Server(&d.server)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
}

func (d *sourceDesk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.PostJSON(ctx, d.server.URL("/"), m.Incident)
}

// sourceDeskServer is the server of a sourceDesk.
type sourceDeskServer struct {
	*httptest.Server
	mu  sync.Mutex
	got []notifier.Incident
}

func newSourceDesk(t *testing.T) *sourceDeskServer {
	d := new(sourceDeskServer)
	d.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var i notifier.Incident
		if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.got = append(d.got, i)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *sourceDeskServer) url() string {
	return "sourcedesk://" + strings.TrimPrefix(d.URL, "http://")
}

// take returns and removes the incidents of the messages that have arrived.
func (d *sourceDeskServer) take() []notifier.Incident {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.got
	d.got = nil
	return got
}
