package httpapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// streamEnd is the last line of a stream.
type streamEnd struct {
	Status int `json:"status"`
	gatewaytest.Answer
}

// TestStreamIsLive checks that a result is written as soon as it is known,
// before the others.
func TestStreamIsLive(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", "json://"+strings.TrimPrefix(slow.URL, "http://")+" a", s.NotifyURL("/refuse")))
	front := httptest.NewServer(g)
	defer front.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/notify/ops", strings.NewReader("body=x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Accept", gatewaytest.TypeStream)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != gatewaytest.TypeStream {
		t.Fatalf("status %d, Content-Type %q", resp.StatusCode, got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(v any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the stream ends too early: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), v); err != nil {
			t.Fatalf("%v\n%s", err, lines.Text())
		}
	}
	var begin struct{ Sending []api.Result }
	var failed, delivered struct {
		Index  int
		Result api.Result
	}
	var end streamEnd
	next(&begin)
	next(&failed)
	close(release)
	next(&delivered)
	next(&end)
	if lines.Scan() {
		t.Errorf("a line after the last: %s", lines.Text())
	}
	if len(begin.Sending) != 2 || begin.Sending[0].Service != "JSON" || begin.Sending[0].Tags[0] != "a" {
		t.Errorf("first line %+v", begin)
	}
	if failed.Index != 1 || failed.Result.Status != "failed" || delivered.Index != 0 || delivered.Result.Status != "delivered" {
		t.Errorf("results %+v, %+v", failed, delivered)
	}
	if end.Status != 424 || end.Error == nil || len(end.Results) != 2 || len(end.Details) != 2 {
		t.Errorf("last line %+v", end)
	}
}

// TestStreamOfRefusal checks that a refused request has its status and one
// line.
func TestStreamOfRefusal(t *testing.T) {
	t.Parallel()
	g := siteWith(t)
	r := httptest.NewRequest(http.MethodPost, "/notify/none", strings.NewReader("body=x"))
	r.Header.Set("Accept", gatewaytest.TypeStream)
	got := g.Do(r)
	var end streamEnd
	if err := json.Unmarshal([]byte(got.Body), &end); err != nil || got.Status != 404 || end.Status != 404 || *end.Error != "there is no such key" {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
}

// stuckClient is a client that does not read.
type stuckClient struct {
	*httptest.ResponseRecorder
	wake     chan struct{}
	deadline time.Time
}

func (s *stuckClient) Write(p []byte) (int, error) {
	<-s.wake
	return len(p), nil
}

func (s *stuckClient) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

// TestStreamIsNotRead checks that a client that does not read does not count as
// a message under way, and is disconnected after a time.
func TestStreamIsNotRead(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{gatewaytest.TypeStream, gatewaytest.TypeJSON} {
		s := gatewaytest.NewStation(t)
		g := siteWith(t, gatewaytest.Key("k", s.NotifyURL("/x")))
		r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("Accept", accept)
		w := &stuckClient{ResponseRecorder: httptest.NewRecorder(), wake: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.ServeHTTP(w, r)
		}()
		gatewaytest.Eventually(t, func() bool { return s.Paths() != "" })
		gatewaytest.Eventually(t, func() bool { return g.Process.InFlight.Load() == 0 })
		close(w.wake)
		<-done
		if w.deadline.IsZero() {
			t.Errorf("%s: the time of the client is not limited", accept)
		}
	}
}
