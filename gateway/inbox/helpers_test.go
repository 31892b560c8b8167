package inbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/feed"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

const (
	testReader = "reader-of-the-inbox"
	otherToken = "token-of-another-key"
)

// kept returns the options of a key whose messages a reader can read for seven days.
func kept(name string) site.KeyOptions {
	return site.KeyOptions{Name: name, Readers: []string{testReader}, KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour}}
}

// newGateway starts a gateway with a queue and with keys.
func newGateway(t *testing.T, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: keys}, Queue: &outbox.Settings{}})
}

// serve serves a gateway until the end of the test.
func serve(t *testing.T, g *gatewaytest.Gateway) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		g.Streams.Stop()
		s.Close()
	})
	return s
}

// asReader returns a request of a reader.
func asReader(t *testing.T, target string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Header.Set("Authorization", "Bearer "+testReader)
	return r
}

// inboxOf returns the messages that a reader sees.
func inboxOf(t *testing.T, g *gatewaytest.Gateway, target string) (list httpapi.MessagesJSON) {
	t.Helper()
	resp := g.Do(asReader(t, target))
	if err := json.Unmarshal([]byte(resp.Body), &list); err != nil || resp.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", target, resp.Status, resp.Body)
	}
	return list
}

// bodies returns the texts of messages.
func bodies(list []feed.JSON) string {
	var out []string
	for _, m := range list {
		out = append(out, m.Body)
	}
	return strings.Join(out, " ")
}

// listener reads a stream, line by line.
type listener struct {
	t      *testing.T
	lines  *bufio.Scanner
	header http.Header
	cancel context.CancelFunc
}

func listen(t *testing.T, s *httptest.Server, target string, header ...string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testReader)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", target, resp.Status)
	}
	return &listener{t, bufio.NewScanner(resp.Body), resp.Header, cancel}
}

// next returns the next line that is not empty, or "" at the end.
func (l *listener) next() string {
	l.t.Helper()
	for l.lines.Scan() {
		if l.lines.Text() != "" {
			return l.lines.Text()
		}
	}
	return ""
}

// wants checks that the next line has texts.
func (l *listener) wants(texts ...string) string {
	l.t.Helper()
	line := l.next()
	for _, text := range texts {
		if !strings.Contains(line, text) {
			l.t.Fatalf("got %q, want %q in it", line, text)
		}
	}
	return line
}
