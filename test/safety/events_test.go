package safety

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// watcher is a destination that receives the gateway's events, each twice: with
// the event's standard text, and with all its data.
type watcher struct {
	server *httptest.Server
	mu     sync.Mutex
	words  []string
	full   map[event]int
	data   []string
}

// event identifies an event.
type event struct {
	title        string
	destinations string
}

func newWatcher(t *testing.T) *watcher {
	w := &watcher{full: map[event]int{}}
	w.server = serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Title, Message string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Errorf("an event is not JSON: %v", err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if strings.HasPrefix(m.Title, "Message ") {
			w.words = append(w.words, m.Title+"\n"+m.Message)
			return
		}
		destinations, data, _ := strings.Cut(m.Message, "\n")
		w.full[event{m.Title, destinations}]++
		w.data = append(w.data, data)
	})
	return w
}

// options returns the global options that send the events to the watcher.
func (w *watcher) options() string {
	var b strings.Builder
	fmt.Fprintf(&b, "notify {\nkey watcher {\nurl json://%s/\n}\n}\nevents {\n", authority(w.server))
	for _, name := range []string{"notify_failed", "notify_delivered"} {
		fmt.Fprintf(&b, "on %s notify watcher\n", name)
		fmt.Fprintf(&b,
			"on %s notify watcher {\ntitle \"{event.name} of {event.data.key} by {event.data.source}: "+
				"{event.data.delivered} delivered, {event.data.failed} failed\"\n",
			name)
		fmt.Fprintf(&b, "body \"{event.data.destinations}\n{event.module} {event.data}\"\n}\n")
	}
	return b.String() + "}\n"
}

// eventOf returns the event that belongs to a response.
func eventOf(r reply, key, source string) event {
	var has, lacks []string
	for _, x := range r.Results {
		switch x.Status {
		case "delivered":
			has = append(has, x.Destination)
		case "failed":
			lacks = append(lacks, x.Destination)
		}
	}
	name, told := "notify_failed", lacks
	if r.Status == http.StatusOK {
		name, told = "notify_delivered", has
	}
	return event{fmt.Sprintf("%s of %s by %s: %d delivered, %d failed", name, key, source, len(has), len(lacks)), strings.Join(told, ", ")}
}

// checkEvents waits until the watcher has received exactly these events, and
// returns everything that it has received.
func (w *watcher) checkEvents(t *testing.T, all []event) string {
	t.Helper()
	eventually(t, "all events arrive", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.words) >= len(all) && len(w.data) >= len(all)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.words) != len(all) || len(w.data) != len(all) {
		t.Errorf("%d texts and %d data messages, want %d of each", len(w.words), len(w.data), len(all))
	}
	for _, n := range all {
		w.full[n]--
	}
	for n, times := range w.full {
		if times < 0 {
			t.Errorf("missing event: %.500v", n)
		}
		if times > 0 {
			t.Errorf("unexpected event: %.500v", n)
		}
	}
	for _, data := range w.data {
		if !strings.HasPrefix(data, "notify map[") || !strings.HasSuffix(data, "]") {
			t.Errorf("the data of an event is incomplete: %.100s…%s", data, data[max(0, len(data)-100):])
		}
	}
	return strings.Join(slices.Concat(w.words, w.data), "\n")
}

// TestMisspelledEvents checks that a misspelled event is a warning with a
// suggestion, because a plugin may emit it, and that misspelled data of Caddy's
// events is an error.
func TestMisspelledEvents(t *testing.T) {
	t.Parallel()
	const notify = "notify {\nkey phone {\nurl json://127.0.0.1:9/\n}\n}\n"
	g := start(t, notify+"events {\non cert_faild notify phone\non cert_failed notify phone\n}", "key k {\nurl json://127.0.0.1:9/\n}")
	warnings := 0
	for line := range strings.Lines(g.log()) {
		var e struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &e) == nil && strings.Contains(e.Msg, "Caddy has no event") {
			if warnings++; e.Level != "warn" ||
				!strings.Contains(e.Msg, "on cert_faild notify: Caddy has no event cert_faild; did you mean cert_failed?") {
				t.Errorf("a line of level %s: %s", e.Level, e.Msg)
			}
		}
	}
	if warnings != 1 {
		t.Errorf("%d warnings, want 1:\n%s", warnings, g.log())
	}

	wrong := g.caddyfile(notify+"events {\non cert_failed notify phone {\ntitle {event.data.identifer}\n}\n}",
		"key k {\nurl json://127.0.0.1:9/\n}")
	resp, err := g.client.Post(g.adminURL+"/load", "text/caddyfile", strings.NewReader(wrong))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "did you mean {event.data.identifier}?") {
		t.Errorf("misspelled data: %s %v: %s", resp.Status, err, text)
	}
}
