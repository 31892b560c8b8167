package outbox_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// A message to a fast destination is not stored before the answer, but its
// results can be read.
func TestQueueFastDestination(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, dir, gatewaytest.Key("k", p.NotifyURL()))
	got := g.PostForm("/notify/k", "body=hello")
	a := got.JSON(t)
	if got.Status != 200 || got.Header.Get("Location") != "/notify/messages/"+a.ID || got.Header.Get("X-Message-Id") != a.ID || a.ID == "" ||
		a.Results[0].Status != "delivered" {
		t.Errorf("status %d, header %v, %s", got.Status, got.Header, got.Body)
	}
	if s, err := g.Rooms().Outbox.Queue.Stats(t.Context()); err != nil || s.Queued+s.Sending+s.Dead > 0 {
		t.Errorf("the store has %+v, %v", s, err)
	}
	if s, r := g.State(a.ID); s != "delivered" || r.Attempts != 1 {
		t.Errorf("state %s, %+v", s, r)
	}
	if recent := g.Process.History.List(); len(recent) != 1 || recent[0].ID != a.ID {
		t.Errorf("recent messages: %+v, want one with the ID %s", recent, a.ID)
	}
}

// The next number of a tag is tried at once. After its success, no delivery of
// the chain waits in the queue.
func TestQueueChain(t *testing.T) {
	t.Parallel()
	bad, good, last := gatewaytest.NewPager(t, http.StatusServiceUnavailable), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, "", gatewaytest.Key("k", bad.NotifyURL()+" 1:ops", good.NotifyURL()+" 2:ops", last.NotifyURL()+" 3:ops"))
	for _, prefer := range []string{"wait=60", "respond-async"} {
		got := g.PostForm("/notify/k", "body=hello&tag=ops", "Prefer", prefer)
		a := got.JSON(t)
		if want := map[string]int{"wait=60": 200, "respond-async": 202}[prefer]; got.Status != want {
			t.Errorf("%s: status %d: %s", prefer, got.Status, got.Body)
		}
		for s := "queued"; s == "queued"; {
			s, _ = g.State(a.ID)
		}
		final := g.Message(http.MethodGet, a.ID, gatewaytest.TypeJSON).JSON(t)
		var status []string
		for _, r := range final.Results {
			status = append(status, string(r.Status))
		}
		if s := strings.Join(status, " "); final.State != "delivered" || s != "failed delivered skipped" {
			t.Errorf("%s: state %s with %s", prefer, final.State, s)
		}
	}
	for { // until the last outcome is stored
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		if err != nil || s.Queued+s.Dead > 0 {
			t.Fatalf("the store has %+v, %v", s, err)
		}
		if s.Sending == 0 {
			break
		}
	}
	if bad.Count() != 2 || good.Count() != 2 || last.Count() != 0 {
		t.Errorf("sent %d, %d and %d messages", bad.Count(), good.Count(), last.Count())
	}
}

// The numbers of tags keep their order when the queue makes the deliveries, as
// after a crash: all jobs of the message wait, and none has been tried.
func TestQueueChainStored(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first int // the status of the destination with the lowest number
		other int // the status of the others
		got   [3]int
		state string
		want  string // the results
		dead  int
	}{
		{"the first number has it", 200, 200, [3]int{1, 0, 0}, "delivered", "delivered skipped skipped", 0},
		{"the first number fails for good", 400, 200, [3]int{1, 1, 0}, "delivered", "failed delivered skipped", 0},
		{"the first number fails for now", 503, 200, [3]int{1, 1, 0}, "delivered", "failed delivered skipped", 0},
		{"all fail for good", 400, 400, [3]int{1, 1, 1}, "failed", "failed failed failed", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			first, second, third := gatewaytest.NewPager(t, tt.first), gatewaytest.NewPager(t, tt.other), gatewaytest.NewPager(t, tt.other)
			gatewaytest.InBubble(t, func(t *testing.T) {
				g := newGateway(t, "", gatewaytest.Key("k", first.NotifyURL()+" 1:ops", second.NotifyURL()+" 2:ops", third.NotifyURL()+" 3:ops"))
				k, tag := g.Gateway.Conf.Global.Configured("k"), parseTags(t, "ops")
				d := dispatch.Delivery{
					Message: &notifier.Message{Body: "x"}, To: &message.Selection{Targets: k.Select(tag)}, Settings: g.Gateway.Conf.Global,
					Handling: dispatch.Handling{Logger: k.Log},
					Origin:   dispatch.Origin{Source: site.SourceEvent, Key: "k", Site: g.Site()},
				}
				e, _ := g.Rooms().Outbox.Entry(&d)
				if err := g.Rooms().Outbox.Queue.Accept(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				gatewaytest.Eventually(t, func() bool { state, _ := g.State(d.ID.String()); return state != "queued" })
				final := g.Message(http.MethodGet, d.ID.String(), gatewaytest.TypeJSON).JSON(t)
				var status []string
				for _, r := range final.Results {
					status = append(status, string(r.Status))
				}
				if got := strings.Join(status, " "); final.State != tt.state || got != tt.want {
					t.Errorf("state %s with %s, want %s with %s", final.State, got, tt.state, tt.want)
				}
				if got := [3]int{first.Count(), second.Count(), third.Count()}; got != tt.got {
					t.Errorf("sent %v messages, want %v", got, tt.got)
				}
				if s, err := g.Rooms().Outbox.Queue.Stats(t.Context()); err != nil || s.Dead != tt.dead {
					t.Errorf("%d deliveries are dead, want %d: %v", s.Dead, tt.dead, err)
				}
			})
		})
	}
}

// A destination without a number beside those with one is tried again. Each attempt of the
// queue once ended in a panic.
func TestQueueBesideChain(t *testing.T) {
	t.Parallel()
	good, unused, p := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK),
		gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("k", good.NotifyURL()+" 1:ops", unused.NotifyURL()+" 2:ops", p.NotifyURL()+" dev"))
		id := g.PostForm("/notify/k", "body=hello&tag=ops,dev").JSON(t).ID
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
		if p.Count() != 2 || unused.Count() != 0 {
			t.Errorf("the destination has %d requests, and the number that is not needed %d", p.Count(), unused.Count())
		}
	})
}

// A delivery that fails temporarily is queued and tried again, also after a
// restart of the gateway. The folder does not contain the text in the clear.
func TestQueueTriesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		key := gatewaytest.Key("k", p.NotifyURL())
		g := newGateway(t, dir, key)
		got := g.PostForm("/notify/k", "body=confidential&title=secretly")
		a := got.JSON(t)
		if got.Status != 200 || got.Header.Get("Location") != "/notify/messages/"+a.ID || a.Results[0].Status != "queued" || a.Error != nil {
			t.Fatalf("status %d, header %v, %s", got.Status, got.Header, got.Body)
		}
		if s, r := g.State(a.ID); s != "queued" || r.NextAttempt == nil || r.Error == nil || !strings.Contains(*r.Error, "502") {
			t.Errorf("state %s, %+v", s, r)
		}
		g.Stop()
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil || info.Mode().Perm()&0o077 != 0 && path != dir {
				t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
			}
			if d.IsDir() {
				return nil
			}
			b, err := os.ReadFile(path)
			for _, text := range []string{"confidential", "secretly", strings.TrimPrefix(p.URL, "http://")} {
				if strings.Contains(string(b), text) {
					t.Errorf("%s contains %q", path, text)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		p.Answer(http.StatusOK)
		g = newGateway(t, dir, key)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(a.ID); return s == "delivered" })
		if _, r := g.State(a.ID); r.Attempts != 2 || r.NextAttempt != nil {
			t.Errorf("%+v", r)
		}
		if p.Count() != 2 || p.Got()[1].Message != "confidential" || p.Got()[1].Title != "secretly" {
			t.Errorf("arrived: %+v", p.Got())
		}
	})
}

// A delivery that is in progress when the request is answered is reported as
// queued, and made once.
func TestQueueSlowDestination(t *testing.T) {
	t.Parallel()
	fast, slow := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	release := slow.Hold()
	g := newGateway(t, "", gatewaytest.Key("k", fast.NotifyURL(), slow.NotifyURL()))
	got := g.PostForm("/notify/k", "body=hello", "Prefer", "wait=1")
	a := got.JSON(t)
	if got.Status != 202 || got.Header.Get("Preference-Applied") != "respond-async, wait=1" || a.Results[0].Status != "delivered" ||
		a.Results[1].Status != "queued" {
		t.Errorf("status %d, header %v, %s", got.Status, got.Header, got.Body)
	}
	release()
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(a.ID); return s == "delivered" })
	if fast.Count() != 1 || slow.Count() != 1 {
		t.Errorf("delivered %d and %d times", fast.Count(), slow.Count())
	}
}

// A destination with several late deliveries gets further messages through the queue. The queue
// makes four deliveries at once.
func TestQueueHoldsBackFromSlowDestination(t *testing.T) {
	t.Parallel()
	slow := gatewaytest.NewPager(t, http.StatusOK)
	release := slow.Hold()
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", slow.NotifyURL())}},
		Queue:  &outbox.Settings{Wait: 10 * time.Millisecond},
	})
	var ids []string
	for range 4 {
		ids = append(ids, g.PostForm("/notify/k", "body=late").JSON(t).ID)
	}
	gatewaytest.Eventually(t, func() bool { return slow.Count() == 4 })
	got := g.PostForm("/notify/k", "body=queued", "Prefer", "wait=60") // does not wait
	ids = append(ids, got.JSON(t).ID)
	if got.Status != 202 || slow.Count() != 4 {
		t.Errorf("status %d, and the destination has %d messages", got.Status, slow.Count())
	}
	release()
	for _, id := range ids {
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
	}
	if slow.Count() != 5 {
		t.Errorf("delivered %d times", slow.Count())
	}
}

// With respond-async the message is stored with its files and sent afterwards.
func TestQueueRespondAsync(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	r := httptest.NewRequest(http.MethodPost, "/notify/k",
		strings.NewReader(`{"body": "hello", "attach": {"base64": "aGVsbG8=", "filename": "a.bin"}}`))
	r.Header = http.Header{"Content-Type": {gatewaytest.TypeJSON}, "Accept": {gatewaytest.TypeJSON}, "Prefer": {"respond-async"}}
	got := g.Do(r)
	a := got.JSON(t)
	if got.Status != 202 || got.Header.Get("Preference-Applied") != "respond-async" || got.Header.Get("Location") != "/notify/messages/"+a.ID {
		t.Errorf("status %d, header %v, %s", got.Status, got.Header, got.Body)
	}
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(a.ID); return s == "delivered" })
	if p.Count() != 1 || len(p.Got()[0].Attachments) != 1 || string(p.Got()[0].Attachments[0].Base64) != "hello" ||
		p.Got()[0].Attachments[0].Filename != "a.bin" {
		t.Errorf("arrived: %+v", p.Got())
	}
}

// A permanent failure is answered as without a queue, and not tried again.
func TestQueueFailureForGood(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusNotFound)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	got := g.PostForm("/notify/k", "body=hello")
	if id := got.JSON(t).ID; got.Status != 424 || id == "" || got.Header.Get("Location") != "/notify/messages/"+id ||
		got.Header.Get("X-Message-Id") != id {
		t.Errorf("status %d, header %v, %s", got.Status, got.Header, got.Body)
	}
	if s, r := g.State(got.JSON(t).ID); s != "failed" || r.Status != "failed" {
		t.Errorf("state %s, %+v", s, r)
	}
	// No client waits for the result of this message, so it can be retried.
	got = g.PostForm("/notify/k", "body=hello", "Prefer", "respond-async")
	id := got.JSON(t).ID
	gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "failed" })
	gatewaytest.Eventually(t, func() bool {
		s, err := g.Rooms().Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead == 1
	})
}

// The same request with the same idempotency key is one message; a different
// request is refused.
func TestQueueIdempotencyKey(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("other", p.NotifyURL()))
	first := g.PostForm("/notify/k", "body=hello", "Idempotency-Key", "1").JSON(t)
	second := g.PostForm("/notify/k", "body=hello", "Idempotency-Key", "1")
	if second.Status != 200 || second.JSON(t).ID != first.ID || second.JSON(t).Results[0].Status != "delivered" {
		t.Errorf("status %d, %s, want the message %s", second.Status, second.Body, first.ID)
	}
	if got := g.PostForm("/notify/k", "body=other", "Idempotency-Key", "1"); got.Status != 422 {
		t.Errorf("a different request: status %d, %s", got.Status, got.Body)
	}
	if p.Count() != 1 {
		t.Errorf("delivered %d times", p.Count())
	}
	// Keys of the gateway have separate idempotency keys.
	if got := g.PostForm("/notify/other", "body=other", "Idempotency-Key", "1"); got.Status != 200 || p.Count() != 2 {
		t.Errorf("another key: status %d, %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/k", "body=hello", "Idempotency-Key", strings.Repeat("x", 256)); got.Status != 400 {
		t.Errorf("a long key: status %d, %s", got.Status, got.Body)
	}
	// The request is repeated while the first one is in progress.
	release := p.Hold()
	done := make(chan string)
	go func() { done <- g.PostForm("/notify/k", "body=twice", "Idempotency-Key", "2").JSON(t).ID }()
	gatewaytest.Eventually(t, func() bool { return p.Count() == 3 })
	again := g.PostForm("/notify/k", "body=twice", "Idempotency-Key", "2")
	release()
	if id := <-done; again.JSON(t).ID != id || again.JSON(t).Results[0].Status != "queued" || p.Count() != 3 {
		t.Errorf("%s, want the message %s; delivered %d times", again.Body, id, p.Count()-2)
	}
}

func TestQueueCancel(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
	id := g.PostForm("/notify/k", "body=hello").JSON(t).ID
	if got := g.Message(http.MethodDelete, id, gatewaytest.TypeJSON); got.Status != 200 || got.JSON(t).State != "cancelled" {
		t.Errorf("status %d, %s", got.Status, got.Body)
	}
	for _, tt := range []struct {
		method, id string
		want       int
	}{
		{"GET", "none", 404},
		{"DELETE", "none", 404},
		{"GET", "0190163d-8694-739b-aea5-966c26f8ad91", 404},
		{"GET", strings.ToUpper(id), 404},
		{"POST", id, 405},
		{"HEAD", id, 200},
		{"GET", id + "/", 200},
	} {
		if got := g.Message(tt.method, tt.id, gatewaytest.TypeJSON); got.Status != tt.want || tt.method == "HEAD" && got.Body != "" {
			t.Errorf("%s %s: status %d, want %d: %s", tt.method, tt.id, got.Status, tt.want, got.Body)
		}
	}
	for accept, want := range map[string]string{"text/html": "<title>Message cancelled</title>", "text/plain": "[INFO] JSON 127.0.0.1:"} {
		if got := g.Message("GET", id, accept); !strings.Contains(got.Body, want) || strings.Contains(got.Body, "hello") {
			t.Errorf("%s: %s", accept, got.Body)
		}
	}
}

// A message that is sent at once and arrives brings those that wait for the same
// destination. Five messages once waited for half an hour after a server was
// back.
func TestQueueWakes(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := newGateway(t, "", gatewaytest.Key("k", p.NotifyURL()))
		var ids []string
		for range 5 {
			ids = append(ids, g.PostForm("/notify/k", "body=waits").JSON(t).ID)
		}
		time.Sleep(20 * time.Minute)
		health, err := g.Rooms().Outbox.Queue.Destinations.All(t.Context())
		if err != nil || len(health) != 1 || !health[0].Down() || health[0].Waiting != 5 || health[0].Host == "" || health[0].LastError == "" {
			t.Errorf("%+v, %v", health, err)
		}
		p.Answer(http.StatusOK)
		begin := time.Now()
		if got := g.PostForm("/notify/k", "body=new"); got.Status != http.StatusOK {
			t.Errorf("status %d %s", got.Status, got.Body)
		}
		for _, id := range ids {
			gatewaytest.Eventually(t, func() bool { s, _ := g.State(id); return s == "delivered" })
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("the messages waited for %s", d)
		}
	})
}

// A key without the queue answers as a gateway without one.
func TestQueueOffForKey(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	g := newGateway(t, "", site.KeyOptions{Name: "k", URLs: gatewaytest.URLs(p.NotifyURL()), KeySettings: site.KeySettings{Unqueued: true}})
	if got := g.PostForm("/notify/k", "body=hello"); got.Status != 424 || strings.Contains(got.Body, `"id"`) {
		t.Errorf("status %d, %s", got.Status, got.Body)
	}
}

// A queue that is full refuses messages, first the ones of clients.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL())}},
		Site:   site.Options{Egress: gatewaytest.Loopback()},
		Queue:  &outbox.Settings{MaxSize: 6000},
	})
	text := strings.Repeat("x", 1500)
	if got := g.PostForm("/notify", "body="+text+text+"&urls="+p.NotifyURL()); got.Status != 503 || got.Header.Get("Retry-After") == "" ||
		!strings.Contains(got.Body, "max_size") {
		t.Errorf("status %d, %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/k", "body="+text+text); got.Status != 200 {
		t.Errorf("status %d, %s", got.Status, got.Body)
	}
	if got := g.PostForm("/notify/k", "body="+text+text, "Prefer", "respond-async"); got.Status != 503 {
		t.Errorf("status %d, %s", got.Status, got.Body)
	}
}

// A stream ends when the request is answered, with the queued deliveries.
func TestQueueStream(t *testing.T) {
	t.Parallel()
	slow := gatewaytest.NewPager(t, http.StatusOK)
	release := slow.Hold()
	g := newGateway(t, "", gatewaytest.Key("k", slow.NotifyURL()))
	got := g.PostForm("/notify/k", "body=hello", "Prefer", "wait=1", "Accept", gatewaytest.TypeStream)
	lines := strings.Split(strings.TrimSpace(got.Body), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], `"status":"queued"`) || !strings.Contains(lines[2], `"status":202`) ||
		!strings.Contains(lines[2], `"id":`) {
		t.Errorf("%s", got.Body)
	}
	release()
}

// Messages for saved keys are delivered later as well, to the URLs of the key
// at the time of the delivery.
func TestQueueSavedKey(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusBadGateway)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Site:  site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
			Queue: &outbox.Settings{},
			Saved: &saved.Options{Manage: true, Refresh: time.Nanosecond},
		})
		save := func(urls string) {
			t.Helper()
			if got := g.PostForm("/add/ops", "urls="+urls); got.Status != 200 {
				t.Fatalf("status %d, %s", got.Status, got.Body)
			}
		}
		save(p.NotifyURL())
		kept := g.PostForm("/notify/ops", "body=hello").JSON(t)
		if kept.Results[0].Status != "queued" {
			t.Fatalf("%+v", kept)
		}
		p.Answer(http.StatusOK)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(kept.ID); return s == "delivered" })
		p.Answer(http.StatusBadGateway)
		lost := g.PostForm("/notify/ops", "body=hello").JSON(t)
		n := p.Count()
		save("json://127.0.0.1:1/")
		time.Sleep(11 * time.Minute)
		gatewaytest.Eventually(t, func() bool { s, _ := g.State(lost.ID); return s == "failed" })
		if p.Count() != n {
			t.Errorf("the URL that was removed got %d more messages", p.Count()-n)
		}
	})
}
