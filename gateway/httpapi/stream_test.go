package httpapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
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
	var begin struct{ Sending []message.Result }
	var failed, delivered struct {
		Index  int
		Result message.Result
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
	if err := json.Unmarshal([]byte(got.Body), &end); err != nil || got.Status != 404 || end.Status != 404 ||
		!strings.HasPrefix(*end.Error, "there is no such key; ") {
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

// events returns the events of a stream, each as its name and its data. Comments have the
// name "".
func events(t *testing.T, body string) (out [][2]string) {
	t.Helper()
	if !strings.HasSuffix(body, "\n\n") {
		t.Errorf("the last event has no end: %q", body)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(part, "\n")
		if comment, ok := strings.CutPrefix(part, ": "); ok {
			out = append(out, [2]string{"", comment})
			continue
		}
		out = append(out, [2]string{strings.TrimPrefix(name, "event: "), strings.TrimPrefix(data, "data: ")})
	}
	return out
}

// TestStreamOfEvents checks who gets server-sent events, and their content.
func TestStreamOfEvents(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/a")+" good", s.NotifyURL("/refuse")+" bad"),
		gatewaytest.Key("other", s.NotifyURL("/b")+" x"))
	for _, c := range []struct {
		target, accept, body string
		status               int
		logs                 []string // levels
		outcome              string   // "" if the answer is no stream
	}{
		{"/notify/ops", "text/event-stream", "body=x&tag=good", 200, []string{"INFO"}, "SUCCESS"},
		{"/notify/ops", "text/html, application/json;q=0.9, Text/Event-Stream;q=0.1", "body=x&tag=good", 200, []string{"INFO"}, "SUCCESS"},
		{"/notify/ops?stream=yes", "application/json", "body=x&tag=good", 200, []string{"INFO"}, "SUCCESS"},
		{"/notify/ops?stream=True", "", "body=x&tag=bad", 200, []string{"ERROR"}, "FAILURE"},
		{"/notify/ops?stream=1", "", "body=x", 200, []string{"INFO", "ERROR"}, "PARTIAL"},
		{"/notify/ops?stream=yes", "", "body=x&tag=good&type=nonsense", 400, nil, ""},
		{"/notify/ops?stream=no", "application/json", "body=x&tag=good", 200, nil, ""},
		{"/notify/ops", "text/event-stream;q=0, application/json", "body=x&tag=good", 200, nil, ""},
		{"/notify/ops?stream=yes", "text/event-stream", "body=x&tag=nobody", 424, nil, ""},
		{"/notify/none", "text/event-stream", "body=x", 404, nil, ""},
		{"/notify/ops", "text/event-stream", "", 400, nil, ""},
	} {
		got := g.PostForm(c.target, c.body, "Accept", c.accept)
		if got.Status != c.status {
			t.Errorf("%+v: status %d: %s", c, got.Status, got.Body)
			continue
		}
		media := got.Header.Get("Content-Type")
		if c.outcome == "" {
			if media == "text/event-stream" {
				t.Errorf("%+v: a stream: %s", c, got.Body)
			}
			continue
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
			"Content-Encoding": "identity",
		} {
			if got := got.Header.Get(name); got != want {
				t.Errorf("%+v: %s: %q", c, name, got)
			}
		}
		all := events(t, got.Body)
		if all[0] != [2]string{"", "connected"} {
			t.Errorf("%+v: the stream begins with %q", c, all[0])
		}
		if last := all[len(all)-1]; last[0] != "result" || last[1] != `{"status":"`+c.outcome+`"}` {
			t.Errorf("%+v: the stream ends with %q", c, last)
		}
		var levels []string
		for _, e := range all[1 : len(all)-1] {
			var data struct {
				Level, Asctime, Message string
				Service                 *string
			}
			if err := json.Unmarshal([]byte(e[1]), &data); err != nil || e[0] != "log" {
				t.Fatalf("%+v: %q: %v", c, e, err)
			}
			if _, err := time.Parse("2006-01-02 15:04:05,000", data.Asctime); err != nil || data.Message == "" || data.Service == nil ||
				*data.Service != "JSON" {
				t.Errorf("%+v: %s", c, e[1])
			}
			levels = append(levels, data.Level)
		}
		slices.Sort(levels)
		slices.Sort(c.logs)
		if !slices.Equal(levels, c.logs) {
			t.Errorf("%+v: levels %q", c, levels)
		}
	}
}

// TestStreamOfEventsWarns checks that a stream of events has the warnings about a message that
// belong to no service.
func TestStreamOfEventsWarns(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/a")))
	got := g.PostForm("/notify/ops?:severity=type", "body=x&severity=nonsense", "Accept", "text/event-stream")
	all := events(t, got.Body)
	if len(all) != 4 || !strings.Contains(all[2][1], `"WARNING"`) || !strings.Contains(all[2][1], `"service":null`) || all[3][0] != "result" {
		t.Errorf("%q", all)
	}
}

// TestStreamOfEventsBeats checks that an idle stream shows that it is still there.
func TestStreamOfEventsBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops?stream=yes", http.NoBody)
		w := httptest.NewRecorder()
		s := api.NewStream(w, r, make([]notifier.Target, 1))
		time.Sleep(25 * time.Second)
		s.Result(0, notifier.Result{Service: "JSON", Status: notifier.Delivered})
		time.Sleep(5 * time.Second)
		(&api.Response{Status: http.StatusServiceUnavailable, Error: "the queue is full", Stream: s}).Write(w, r)
		var names []string
		for _, e := range events(t, w.Body.String()) {
			name := e[0]
			if name == "" {
				name = e[1]
			}
			names = append(names, name)
			if e[0] == "error" && e[1] != `{"message":"the queue is full"}` {
				t.Errorf("%q", e)
			}
		}
		if got := strings.Join(names, " "); got != "connected heartbeat heartbeat log error" {
			t.Errorf("events %q: %s", got, w.Body)
		}
	})
}
