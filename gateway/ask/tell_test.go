package ask_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
)

// called is a client that is called back.
type called struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []callback
}

type callback struct {
	header http.Header
	body   string
}

func newCalled(t *testing.T) *called {
	c := &called{status: http.StatusNoContent}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got = append(c.got, callback{r.Header, string(body)})
		w.WriteHeader(c.status)
	}))
	c.Config.SetKeepAlivesEnabled(false)
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func (c *called) take() []callback {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

func (c *called) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// secret signs the callbacks of tests.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// TestAskCallback checks that a client is called back with the answer, signed, again if it
// was away, and once.
func TestAskCallback(t *testing.T) {
	t.Parallel()
	dir, p, c := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), newCalled(t)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := ask(t, g, `{"options":["a","b"],"timeout":"1h","callback":"`+c.URL+`/hook?x=1","secret":"`+secret+`"}`)
		settle(time.Minute)
		if got := c.take(); len(got) != 0 {
			t.Errorf("called before the answer: %v", got)
		}
		c.answer(http.StatusServiceUnavailable)
		wantAnswered(t, g, linkOf(t, p, 0), "answer=b&by=Ann", http.StatusOK, "answered b by Ann (typed)")
		settle(time.Second)
		first := c.take()
		c.answer(http.StatusNoContent)
		settle(time.Hour)
		again := c.take()
		if len(first) == 0 || len(again) != 1 {
			t.Fatalf("%d calls while it was away, %d after", len(first), len(again))
		}
		key, err := standardwebhook.ParseKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		got := again[0]
		if !key.Verify(got.header.Get("Webhook-Id"), got.header.Get("Webhook-Timestamp"), got.header.Get("Webhook-Signature"),
			strings.NewReader(got.body)) || got.header.Get("Webhook-Id") != first[0].header.Get("Webhook-Id") {
			t.Errorf("the signature does not match: %v", got.header)
		}
		var v struct {
			ID  string
			Ask map[string]any
		}
		if err := json.Unmarshal([]byte(got.body), &v); err != nil || v.ID != id || v.Ask["state"] != "answered" || v.Ask["answer"] != "b" ||
			v.Ask["by"] != "Ann (typed)" || v.Ask["through"] == nil || v.Ask["at"] == nil {
			t.Errorf("the callback is %s", got.body)
		}
		if got.header.Get("Content-Type") != gatewaytest.TypeJSON {
			t.Errorf("header %v", got.header)
		}
	})
}

// TestAskCallbackExpires checks that a client is told the default when the time is over, and
// nothing when it has withdrawn the question.
func TestAskCallbackExpires(t *testing.T) {
	t.Parallel()
	dir, p, c := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), newCalled(t)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		question := `{"options":["a","b"],"timeout":"1m","default":"b","callback":"` + c.URL + `"}`
		ask(t, g, question)
		settle(2 * time.Minute)
		if got := c.take(); len(got) != 1 || !strings.Contains(got[0].body, `"state":"expired"`) ||
			!strings.Contains(got[0].body, `"answer":"b"`) || got[0].header.Get("Webhook-Id") != "" {
			t.Errorf("called %v", got)
		}
		g.Message(http.MethodDelete, ask(t, g, question), gatewaytest.TypeJSON)
		settle(time.Hour)
		if got := c.take(); len(got) != 0 {
			t.Errorf("called %v", got)
		}
	})
}

// TestAskCallbackRules checks that a callback goes only where egress and ask_callback allow it,
// both when it is asked for and when it is made. The default of ask_callback is the value of
// stateless.
func TestAskCallbackRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set    func(*gatewaytest.Options)
		host   string // in place of 127.0.0.1
		asked  int
		called int
	}{
		"allowed":            {func(*gatewaytest.Options) {}, "127.0.0.1", http.StatusAccepted, 1},
		"egress, an address": {func(o *gatewaytest.Options) { o.Global.Egress = nil }, "127.0.0.1", http.StatusBadRequest, 0},
		"egress, a name":     {func(o *gatewaytest.Options) { o.Global.Egress = nil }, "localhost", http.StatusBadRequest, 0},
		"stateless off":      {func(o *gatewaytest.Options) { o.Site.Stateless = new(false) }, "127.0.0.1", http.StatusForbidden, 0},
		"stateless off for all": {
			func(o *gatewaytest.Options) { o.Site.Stateless, o.Global.Stateless = nil, new(false) }, "127.0.0.1",
			http.StatusForbidden, 0,
		},
		"stateless off, callbacks on": {
			func(o *gatewaytest.Options) { o.Site.Stateless, o.Site.Callbacks = new(false), new(true) }, "127.0.0.1",
			http.StatusAccepted, 1,
		},
		"callbacks on for all": {
			func(o *gatewaytest.Options) { o.Site.Stateless, o.Global.Callbacks = new(false), new(true) },
			"127.0.0.1", http.StatusAccepted, 1,
		},
		"callbacks off": {func(o *gatewaytest.Options) { o.Site.Callbacks = new(false) }, "127.0.0.1", http.StatusForbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, p, c := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), newCalled(t)
			gatewaytest.InBubble(t, func(t *testing.T) {
				o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
				tt.set(&o)
				g := gatewaytest.New(t, o)
				got := post(g, `{"options":["a","b"],"callback":"`+strings.Replace(c.URL, "127.0.0.1", tt.host, 1)+`"}`)
				if got.Status != tt.asked {
					t.Errorf("%d %s, want %d", got.Status, got.Body, tt.asked)
				}
				if got.Status != http.StatusAccepted {
					return
				}
				settle(time.Second)
				wantAnswered(t, g, linkOf(t, p, 0), "answer=a", http.StatusOK, "answered a")
				settle(time.Hour)
				if got := c.take(); len(got) != tt.called {
					t.Errorf("called %v, want %d calls", got, tt.called)
				}
			})
		})
	}
}

// TestAskCallbackRulesLater checks that a callback is not made any more once the operator has
// forbidden it.
func TestAskCallbackRulesLater(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*gatewaytest.Options){
		"stateless off": func(o *gatewaytest.Options) { o.Site.Stateless = new(false) },
		"callbacks off": func(o *gatewaytest.Options) { o.Site.Callbacks = new(false) },
		"egress":        func(o *gatewaytest.Options) { o.Global.Egress = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, p, c := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), newCalled(t)
			gatewaytest.InBubble(t, func(t *testing.T) {
				o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
				g := gatewaytest.New(t, o)
				ask(t, g, `{"options":["a","b"],"callback":"`+c.URL+`"}`)
				settle(time.Second)
				g.Stop()
				o = options(dir, gatewaytest.Key("k", p.NotifyURL()))
				set(&o)
				g = gatewaytest.New(t, o)
				wantAnswered(t, g, linkOf(t, p, 0), "answer=a", http.StatusOK, "answered a")
				settle(time.Hour)
				if got := c.take(); len(got) != 0 {
					t.Errorf("called %v", got)
				}
			})
		})
	}
}

// TestAskTell checks that those who were asked hear of the outcome if the client wants it.
func TestAskTell(t *testing.T) {
	t.Parallel()
	dir, a, b := t.TempDir(), gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", a.NotifyURL()+" a", b.NotifyURL()+" b")))
		form := "title=Deploy%3F&body=b&tag=a&ask=deploy&ask=wait&ask_timeout=10m"
		g.PostForm("/notify/k", form)
		settle(2 * time.Minute)
		wantAnswered(t, g, linkOf(t, a, 0), "answer=deploy&by=Ann", http.StatusOK, "answered deploy by Ann (typed)")
		settle(time.Minute)
		a.WantTold(t, "info: Deploy? | b")
		g.PostForm("/notify/k", form+"&ask_tell=true")
		settle(2 * time.Minute)
		wantAnswered(t, g, linkOf(t, a, 1), "answer=deploy&by=Ann", http.StatusOK, "answered deploy by Ann (typed)")
		settle(time.Minute)
		g.PostForm("/notify/k", form+"&ask_tell=true&ask_default=wait")
		settle(11 * time.Minute)
		a.WantTold(t, "info: Deploy? | b", "info: Deploy? | b", "info: Deploy? | deploy, by Ann (typed), after 2 min.", "info: Deploy? | b",
			"info: Deploy? | Nobody has answered in time, so “wait” is taken.")
		b.WantTold(t)
	})
}

// TestAskStream checks that a stream has the state as it is, and ends with the answer.
func TestAskStream(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		id := ask(t, g, deploy)
		settle(time.Second)
		go func() {
			time.Sleep(2 * time.Minute)
			answer(g, linkOf(t, p, 0), "answer=deploy")
		}()
		got := g.Message(http.MethodGet, id, "text/event-stream")
		events := strings.Split(strings.TrimSpace(strings.ReplaceAll(got.Body, ": keepalive\n\n", "")), "\n\n")
		if len(events) != 2 || !strings.Contains(events[0], `"state":"open"`) || !strings.Contains(events[1], `"answer":"deploy"`) ||
			!strings.Contains(got.Body, ": keepalive") || got.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%v %q", got.Header, got.Body)
		}
		other := g.PostForm("/notify/k", "body=b").JSON(t).ID
		if got := g.Message(http.MethodGet, other, "text/event-stream"); got.Status != http.StatusOK || strings.Contains(got.Body, "data:") {
			t.Errorf("a message that asks nothing: status %d: %s", got.Status, got.Body)
		}
	})
}

// TestAskEvent checks that the event has neither the question nor the answer.
func TestAskEvent(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		var mu sync.Mutex
		var got []map[string]any
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Emit = func(name string, data map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			if name == "notify_answered" {
				got = append(got, data)
			}
		}
		g := gatewaytest.New(t, o)
		id := ask(t, g, deploy)
		settle(time.Second)
		wantAnswered(t, g, linkOf(t, p, 0), "answer=deploy&by=Ann", http.StatusOK, "answered deploy by Ann (typed)")
		settle(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 1 || got[0]["id"] != id || got[0]["key"] != "k" || got[0]["state"] != "answered" || got[0]["by"] != "Ann (typed)" ||
			len(got[0]) != 5 {
			t.Errorf("events %v", got)
		}
	})
}
