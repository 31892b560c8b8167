package caddyhttp

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/recipient"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// newQueueGateway is newGateway with a queue in a folder, and with the app
// started.
func newQueueGateway(t *testing.T, dir, block, global string) *Handler {
	t.Helper()
	h := newGateway(t, block, "queue {\npath "+dir+"\nwait 5s\n}\n"+global)
	startApp(t, h)
	return h
}

func startApp(t *testing.T, h *Handler) {
	t.Helper()
	if err := h.app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopApp(t, h) })
}

// stopApp stops the app as Caddy does. It can be called again.
func stopApp(t *testing.T, h *Handler) {
	t.Helper()
	if h.app.gateway.Rooms == nil {
		return
	}
	if err := h.app.Stop(); err != nil {
		t.Error(err)
	}
	if err := h.app.Cleanup(); err != nil {
		t.Error(err)
	}
	h.app.gateway.Rooms, h.app.gateway.Engine.Outbox = nil, nil
}

// away stops the gateway of a bubble until a time, and returns what start starts then. Days
// in which no gateway runs take no time; one that runs looks each second at what is due.
func away(t *testing.T, h *Handler, at string, start func() *Handler) *Handler {
	t.Helper()
	stopApp(t, h)
	until(t, at)
	return start()
}

// pager is a destination whose answers a test sets.
type pager struct {
	*httptest.Server
	mu     sync.Mutex
	status int           // of the answers
	header http.Header   // of the answers
	hold   chan struct{} // if not nil, answers wait until it is closed
	got    []gatewaytest.Arrived
}

// inBubble runs f in a synctest bubble, in which waiting takes no time. The
// gateways in it share nothing with those of other tests, because the bubble
// cannot use channels from outside.
//
// Time stands still while a goroutine of the bubble reads from a connection. So
// the servers of a test start outside, and close connections after each answer.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	ownShared(t)
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // so that idle goroutines of the sender end
		f(t)
	})
}

// newPager starts a pager that closes each connection after an answer.
func newPager(t *testing.T, status int) *pager {
	p := &pager{status: status}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := gatewaytest.Arrived{Path: r.URL.Path}
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Errorf("the destination got no message: %v", err)
		}
		p.mu.Lock()
		p.got = append(p.got, a)
		status, hold := p.status, p.hold
		maps.Copy(w.Header(), p.header)
		p.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.WriteHeader(status)
	}))
	p.Config.SetKeepAlivesEnabled(false)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *pager) NotifyURL() string { return "json://" + strings.TrimPrefix(p.URL, "http://") + "/" }

func (p *pager) answer(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

func (p *pager) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// queuedAnswer is the JSON of a response with a queue.
type queuedAnswer struct {
	ID         string             `json:"id"`
	IncidentID string             `json:"incident_id"`
	State      string             `json:"state"`
	Error      *string            `json:"error"`
	Results    []api.QueuedResult `json:"results"`
}

func (r reply) queued(t *testing.T) (a queuedAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &a); err != nil {
		t.Fatalf("the response is not JSON: %v\n%s", err, r.body)
	}
	return a
}

// postWith posts a form with headers.
func postWith(t *testing.T, h *Handler, target, form string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", typeJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(t, h, r)
}

func getMessage(t *testing.T, h *Handler, method, id, accept string) reply {
	t.Helper()
	r := httptest.NewRequest(method, "/notify/messages/"+id, nil)
	r.Header.Set("Accept", accept)
	return do(t, h, r)
}

// state returns the state of a message and its first result.
func state(t *testing.T, h *Handler, id string) (string, api.QueuedResult) {
	t.Helper()
	got := getMessage(t, h, http.MethodGet, id, typeJSON)
	if got.status != http.StatusOK {
		t.Fatalf("the message %s: status %d %s", id, got.status, got.body)
	}
	a := got.queued(t)
	return a.State, a.Results[0]
}

// A message to a fast destination is not stored before the answer, but its
// results can be read.
func TestQueueFastDestination(t *testing.T) {
	dir := t.TempDir()
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, dir, "", "key k {\nurl "+p.NotifyURL()+"\n}")
	got := postWith(t, h, "/notify/k", "body=hello")
	a := got.queued(t)
	if got.status != 200 || got.header.Get("Location") != "" || a.ID == "" || a.Results[0].Status != "delivered" {
		t.Errorf("status %d, header %v, %s", got.status, got.header, got.body)
	}
	if s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context()); err != nil || s.Queued+s.Sending+s.Dead > 0 {
		t.Errorf("the store has %+v, %v", s, err)
	}
	if s, r := state(t, h, a.ID); s != "delivered" || r.Attempts != 1 {
		t.Errorf("state %s, %+v", s, r)
	}
}

// The next number of a tag is tried at once. After its success, no delivery of
// the chain waits in the queue.
func TestQueueChain(t *testing.T) {
	bad, good, last := newPager(t, http.StatusServiceUnavailable), newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+bad.NotifyURL()+" 1:ops\nurl "+good.NotifyURL()+" 2:ops\nurl "+last.NotifyURL()+" 3:ops\n}")
	for _, prefer := range []string{"wait=60", "respond-async"} {
		got := postWith(t, h, "/notify/k", "body=hello&tag=ops", "Prefer", prefer)
		a := got.queued(t)
		if want := map[string]int{"wait=60": 200, "respond-async": 202}[prefer]; got.status != want {
			t.Errorf("%s: status %d: %s", prefer, got.status, got.body)
		}
		for s := "queued"; s == "queued"; {
			s, _ = state(t, h, a.ID)
		}
		final := getMessage(t, h, http.MethodGet, a.ID, typeJSON).queued(t)
		var status []string
		for _, r := range final.Results {
			status = append(status, string(r.Status))
		}
		if s := strings.Join(status, " "); final.State != "delivered" || s != "failed delivered skipped" {
			t.Errorf("%s: state %s with %s", prefer, final.State, s)
		}
	}
	for { // until the last outcome is stored
		s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
		if err != nil || s.Queued+s.Dead > 0 {
			t.Fatalf("the store has %+v, %v", s, err)
		}
		if s.Sending == 0 {
			break
		}
	}
	if bad.count() != 2 || good.count() != 2 || last.count() != 0 {
		t.Errorf("sent %d, %d and %d messages", bad.count(), good.count(), last.count())
	}
}

// The numbers of tags keep their order when the queue makes the deliveries, as
// after a crash: all jobs of the message wait, and none has been tried.
func TestQueueChainStored(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first int // the status of the destination with the lowest number
		other int // that of the others
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
			first, second, third := newPager(t, tt.first), newPager(t, tt.other), newPager(t, tt.other)
			inBubble(t, func(t *testing.T) {
				h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+first.NotifyURL()+" 1:ops\nurl "+second.NotifyURL()+" 2:ops\nurl "+third.NotifyURL()+" 3:ops\n}")
				k, targets, err := (&recipient.Recipient{Key: "k", Tag: "ops"}).Find(h.app.gateway.Engine.Global)
				if err != nil {
					t.Fatal(err)
				}
				d := dispatch.Delivery{
					Message: &notifier.Message{Body: "x"}, To: &api.Selection{Targets: targets}, Settings: h.app.gateway.Engine.Global, Logger: k.Log,
					Origin: dispatch.Origin{Source: site.SourceEvent, Key: "k", Site: h.api.Site()},
				}
				e, _ := h.app.gateway.Rooms.Outbox.Entry(&d)
				if err := h.app.gateway.Rooms.Outbox.Queue.Accept(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				caddyhttptest.Eventually(t, func() bool { state, _ := state(t, h, d.ID.String()); return state != "queued" })
				final := getMessage(t, h, http.MethodGet, d.ID.String(), typeJSON).queued(t)
				var status []string
				for _, r := range final.Results {
					status = append(status, string(r.Status))
				}
				if got := strings.Join(status, " "); final.State != tt.state || got != tt.want {
					t.Errorf("state %s with %s, want %s with %s", final.State, got, tt.state, tt.want)
				}
				if got := [3]int{first.count(), second.count(), third.count()}; got != tt.got {
					t.Errorf("sent %v messages, want %v", got, tt.got)
				}
				if s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context()); err != nil || s.Dead != tt.dead {
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
	good, unused, p := newPager(t, http.StatusOK), newPager(t, http.StatusOK), newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+good.NotifyURL()+" 1:ops\nurl "+unused.NotifyURL()+" 2:ops\nurl "+p.NotifyURL()+" dev\n}")
		id := postWith(t, h, "/notify/k", "body=hello&tag=ops,dev").queued(t).ID
		p.answer(http.StatusOK)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
		if p.count() != 2 || unused.count() != 0 {
			t.Errorf("the destination has %d requests, and the number that is not needed %d", p.count(), unused.count())
		}
	})
}

// A delivery that fails temporarily is queued and tried again, also after a
// restart of the gateway. The folder does not contain the text in the clear.
func TestQueueTriesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		key := "key k {\nurl " + p.NotifyURL() + "\n}"
		h := newQueueGateway(t, dir, "", key)
		got := postWith(t, h, "/notify/k", "body=confidential&title=secretly")
		a := got.queued(t)
		if got.status != 200 || got.header.Get("Location") != "/notify/messages/"+a.ID || a.Results[0].Status != "queued" || a.Error != nil {
			t.Fatalf("status %d, header %v, %s", got.status, got.header, got.body)
		}
		if s, r := state(t, h, a.ID); s != "queued" || r.NextAttempt == nil || r.Error == nil || !strings.Contains(*r.Error, "502") {
			t.Errorf("state %s, %+v", s, r)
		}
		stopApp(t, h)
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
		p.answer(http.StatusOK)
		h = newQueueGateway(t, dir, "", key)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, a.ID); return s == "delivered" })
		if _, r := state(t, h, a.ID); r.Attempts != 2 || r.NextAttempt != nil {
			t.Errorf("%+v", r)
		}
		if p.count() != 2 || p.got[1].Message != "confidential" || p.got[1].Title != "secretly" {
			t.Errorf("arrived: %+v", p.got)
		}
	})
}

// A delivery that is in progress when the request is answered is reported as
// queued, and made once.
func TestQueueSlowDestination(t *testing.T) {
	t.Parallel()
	fast, slow := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	slow.hold = make(chan struct{})
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+fast.NotifyURL()+"\nurl "+slow.NotifyURL()+"\n}")
	got := postWith(t, h, "/notify/k", "body=hello", "Prefer", "wait=1")
	a := got.queued(t)
	if got.status != 202 || got.header.Get("Preference-Applied") != "respond-async, wait=1" || a.Results[0].Status != "delivered" || a.Results[1].Status != "queued" {
		t.Errorf("status %d, header %v, %s", got.status, got.header, got.body)
	}
	close(slow.hold)
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, a.ID); return s == "delivered" })
	if fast.count() != 1 || slow.count() != 1 {
		t.Errorf("delivered %d and %d times", fast.count(), slow.count())
	}
}

// A destination with several late deliveries gets further messages through the
// queue, which makes four deliveries at once.
func TestQueueHoldsBackFromSlowDestination(t *testing.T) {
	slow := newPager(t, http.StatusOK)
	slow.hold = make(chan struct{})
	h := newGateway(t, "", "queue {\npath "+t.TempDir()+"\nwait 10ms\n}\nkey k {\nurl "+slow.NotifyURL()+"\n}")
	startApp(t, h)
	var ids []string
	for range 4 {
		ids = append(ids, postWith(t, h, "/notify/k", "body=late").queued(t).ID)
	}
	caddyhttptest.Eventually(t, func() bool { return slow.count() == 4 })
	got := postWith(t, h, "/notify/k", "body=queued", "Prefer", "wait=60") // does not wait
	ids = append(ids, got.queued(t).ID)
	if got.status != 202 || slow.count() != 4 {
		t.Errorf("status %d, and the destination has %d messages", got.status, slow.count())
	}
	close(slow.hold)
	for _, id := range ids {
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
	}
	if slow.count() != 5 {
		t.Errorf("delivered %d times", slow.count())
	}
}

// With respond-async the message is stored with its files and sent afterwards.
func TestQueueRespondAsync(t *testing.T) {
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader(`{"body": "hello", "attach": {"base64": "aGVsbG8=", "filename": "a.bin"}}`))
	r.Header = http.Header{"Content-Type": {typeJSON}, "Accept": {typeJSON}, "Prefer": {"respond-async"}}
	got := do(t, h, r)
	a := got.queued(t)
	if got.status != 202 || got.header.Get("Preference-Applied") != "respond-async" || got.header.Get("Location") != "/notify/messages/"+a.ID {
		t.Errorf("status %d, header %v, %s", got.status, got.header, got.body)
	}
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, a.ID); return s == "delivered" })
	if p.count() != 1 || len(p.got[0].Attachments) != 1 || string(p.got[0].Attachments[0].Base64) != "hello" || p.got[0].Attachments[0].Filename != "a.bin" {
		t.Errorf("arrived: %+v", p.got)
	}
}

// A permanent failure is answered as without a queue, and not tried again.
func TestQueueFailureForGood(t *testing.T) {
	p := newPager(t, http.StatusNotFound)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	got := postWith(t, h, "/notify/k", "body=hello")
	if got.status != 424 || got.header.Get("Location") != "" {
		t.Errorf("status %d, header %v, %s", got.status, got.header, got.body)
	}
	if s, r := state(t, h, got.queued(t).ID); s != "failed" || r.Status != "failed" {
		t.Errorf("state %s, %+v", s, r)
	}
	// No client waits for the result of this message, so it can be retried.
	got = postWith(t, h, "/notify/k", "body=hello", "Prefer", "respond-async")
	id := got.queued(t).ID
	caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "failed" })
	caddyhttptest.Eventually(t, func() bool {
		s, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context())
		return err == nil && s.Dead == 1
	})
}

// The same request with the same idempotency key is one message; a different
// request is refused.
func TestQueueIdempotencyKey(t *testing.T) {
	p := newPager(t, http.StatusOK)
	h := newQueueGateway(t, t.TempDir(), open, "key k {\nurl "+p.NotifyURL()+"\n}\nkey other {\nurl "+p.NotifyURL()+"\n}")
	first := postWith(t, h, "/notify/k", "body=hello", "Idempotency-Key", "1").queued(t)
	second := postWith(t, h, "/notify/k", "body=hello", "Idempotency-Key", "1")
	if second.status != 200 || second.queued(t).ID != first.ID || second.queued(t).Results[0].Status != "delivered" {
		t.Errorf("status %d, %s, want the message %s", second.status, second.body, first.ID)
	}
	if got := postWith(t, h, "/notify/k", "body=other", "Idempotency-Key", "1"); got.status != 422 {
		t.Errorf("a different request: status %d, %s", got.status, got.body)
	}
	if p.count() != 1 {
		t.Errorf("delivered %d times", p.count())
	}
	// Keys of the gateway have separate idempotency keys.
	if got := postWith(t, h, "/notify/other", "body=other", "Idempotency-Key", "1"); got.status != 200 || p.count() != 2 {
		t.Errorf("another key: status %d, %s", got.status, got.body)
	}
	if got := postWith(t, h, "/notify/k", "body=hello", "Idempotency-Key", strings.Repeat("x", 256)); got.status != 400 {
		t.Errorf("a long key: status %d, %s", got.status, got.body)
	}
	// The request is repeated while the first one is in progress.
	p.hold = make(chan struct{})
	done := make(chan string)
	go func() { done <- postWith(t, h, "/notify/k", "body=twice", "Idempotency-Key", "2").queued(t).ID }()
	caddyhttptest.Eventually(t, func() bool { return p.count() == 3 })
	again := postWith(t, h, "/notify/k", "body=twice", "Idempotency-Key", "2")
	close(p.hold)
	if id := <-done; again.queued(t).ID != id || again.queued(t).Results[0].Status != "queued" || p.count() != 3 {
		t.Errorf("%s, want the message %s; delivered %d times", again.body, id, p.count()-2)
	}
}

func TestQueueCancel(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
	id := postWith(t, h, "/notify/k", "body=hello").queued(t).ID
	if got := getMessage(t, h, http.MethodDelete, id, typeJSON); got.status != 200 || got.queued(t).State != "cancelled" {
		t.Errorf("status %d, %s", got.status, got.body)
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
		if got := getMessage(t, h, tt.method, tt.id, typeJSON); got.status != tt.want || tt.method == "HEAD" && got.body != "" {
			t.Errorf("%s %s: status %d, want %d: %s", tt.method, tt.id, got.status, tt.want, got.body)
		}
	}
	for accept, want := range map[string]string{"text/html": "<title>Message cancelled</title>", "text/plain": "[INFO] JSON json://"} {
		if got := getMessage(t, h, "GET", id, accept); !strings.Contains(got.body, want) || strings.Contains(got.body, "hello") {
			t.Errorf("%s: %s", accept, got.body)
		}
	}
}

// A message that is sent at once and arrives brings those that wait for the same
// destination. Five messages once waited for half an hour after a server was
// back.
func TestQueueWakes(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\n}")
		var ids []string
		for range 5 {
			ids = append(ids, postWith(t, h, "/notify/k", "body=waits").queued(t).ID)
		}
		time.Sleep(20 * time.Minute)
		health, err := h.app.gateway.Rooms.Outbox.Queue.Destinations(t.Context())
		if err != nil || len(health) != 1 || !health[0].Down() || health[0].Waiting != 5 || health[0].Host == "" || health[0].LastError == "" {
			t.Errorf("%+v, %v", health, err)
		}
		p.answer(http.StatusOK)
		begin := time.Now()
		if got := postWith(t, h, "/notify/k", "body=new"); got.status != http.StatusOK {
			t.Errorf("status %d %s", got.status, got.body)
		}
		for _, id := range ids {
			caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, id); return s == "delivered" })
		}
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("the messages waited for %s", d)
		}
	})
}

// A delivery whose destination is no longer in the configuration is given up
// after ten minutes, with that reason.
func TestQueueDestinationRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, other := newPager(t, http.StatusBadGateway), newPager(t, http.StatusOK)
	p.header = http.Header{"Retry-After": {"1"}}
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", "timeout 1s\nkey k {\nurl "+p.NotifyURL()+"\n}")
		got := postWith(t, h, "/notify/k", "body=hello", "Prefer", "respond-async")
		id := got.queued(t).ID
		caddyhttptest.Eventually(t, func() bool { _, r := state(t, h, id); return r.Attempts > 0 })
		next := newQueueGateway(t, dir, "", "key k {\nurl "+other.NotifyURL()+"\n}")
		stopApp(t, h)
		time.Sleep(9 * time.Minute) // a gateway that is reloaded next may know it
		if s, _ := state(t, next, id); s != "queued" {
			t.Errorf("the message is %s at once", s)
		}
		time.Sleep(2 * time.Minute)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, next, id); return s == "failed" })
		if _, r := state(t, next, id); other.count() != 0 || r.Error == nil {
			t.Errorf("%+v; another destination got %d", r, other.count())
		}
		caddyhttptest.Eventually(t, func() bool {
			jobs, err := next.app.gateway.Rooms.Outbox.Queue.List(t.Context(), queue.JobID{}, 10, queue.Dead)
			return err == nil && len(jobs) == 1 && strings.Contains(jobs[0].Reason, "the key k of the configuration no longer has this destination")
		})
	})
}

// Messages to URLs of clients are delivered under the egress rules at the time
// of the delivery.
func TestQueueEgressRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, open, "")
		got := postWith(t, h, "/notify", "body=hello&urls="+p.NotifyURL())
		a := got.queued(t)
		if got.status != 200 || a.Results[0].Status != "queued" {
			t.Fatalf("status %d, %s", got.status, got.body)
		}
		n := p.count()
		next := newQueueGateway(t, dir, "", "") // egress does not allow loopback
		stopApp(t, h)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, next, a.ID); return s == "failed" })
		if _, r := state(t, next, a.ID); p.count() != n || r.Error == nil || !strings.Contains(*r.Error, "loopback") {
			t.Errorf("%+v; the destination got %d more", r, p.count()-n)
		}
	})
}

// A key without the queue answers as a gateway without one.
func TestQueueOffForKey(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\nqueue off\n}")
	if got := postWith(t, h, "/notify/k", "body=hello"); got.status != 424 || strings.Contains(got.body, `"id"`) {
		t.Errorf("status %d, %s", got.status, got.body)
	}
}

// Only one process can use a folder at a time. The error names the folder.
func TestQueueFolderInUse(t *testing.T) {
	dir := t.TempDir()
	newQueueGateway(t, dir, "", "")
	same := filepath.Join(t.TempDir(), "other name")
	if err := os.Symlink(dir, same); err != nil {
		t.Skip(err)
	}
	h := newGateway(t, "", "queue {\npath \""+same+"\"\n}")
	if err := h.app.Start(); err == nil || !strings.Contains(err.Error(), same) {
		t.Errorf("error %v", err)
	}
	// Messages are refused meanwhile.
	if got := postWith(t, h, "/notify", "body=x&urls=json://127.0.0.1"); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("status %d, %s", got.status, got.body)
	}
}

// A queue that is full refuses messages, those of clients first.
func TestQueueFull(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	h := newGateway(t, open, "queue {\npath "+t.TempDir()+"\nmax_size 6KB\n}\nkey k {\nurl "+p.NotifyURL()+"\n}")
	startApp(t, h)
	text := strings.Repeat("x", 1500)
	if got := postWith(t, h, "/notify", "body="+text+text+"&urls="+p.NotifyURL()); got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "max_size") {
		t.Errorf("status %d, %s", got.status, got.body)
	}
	if got := postWith(t, h, "/notify/k", "body="+text+text); got.status != 200 {
		t.Errorf("status %d, %s", got.status, got.body)
	}
	if got := postWith(t, h, "/notify/k", "body="+text+text, "Prefer", "respond-async"); got.status != 503 {
		t.Errorf("status %d, %s", got.status, got.body)
	}
}

// A stream ends when the request is answered, with the queued deliveries.
func TestQueueStream(t *testing.T) {
	t.Parallel()
	slow := newPager(t, http.StatusOK)
	slow.hold = make(chan struct{})
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+slow.NotifyURL()+"\n}")
	got := postWith(t, h, "/notify/k", "body=hello", "Prefer", "wait=1", "Accept", typeStream)
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], `"status":"queued"`) || !strings.Contains(lines[2], `"status":202`) || !strings.Contains(lines[2], `"id":`) {
		t.Errorf("%s", got.body)
	}
	close(slow.hold)
}

func TestQueueMistakes(t *testing.T) {
	for config, want := range map[string]string{
		"queue {\nsecret short\n}":                                "16 or more characters",
		"queue postgres postgres://localhost/x":                   "needs a secret",
		"queue postgres":                                          "expected queue [postgres <dsn>]",
		"queue mysql x":                                           "expected queue [postgres <dsn>]",
		"queue {\nwait 0s\n}":                                     "wait: it must be a duration above 0",
		"queue {\npath {http.request.host}\n}":                    "has no value when the configuration loads",
		"queue postgres x {\npath /x\nsecret " + t.Name() + "\n}": "path has no effect with postgres",
		"queue postgres postgres://u:hunter2@[/x {\nsecret " + t.Name() + "\n}": "connection string",
		"key messages {\nurl json://localhost\n}":                               "choose another name",
	} {
		_, err := provision(t, "", config)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\nerror %v\nwant %s", config, err, want)
		}
	}
	if _, err := provision(t, "queue", ""); err == nil || !strings.Contains(err.Error(), "global option") {
		t.Errorf("in a site: %v", err)
	}
}

// The page of a gateway with a queue has the address of messages.
func TestQueuePage(t *testing.T) {
	key := "key k {\nurl json://127.0.0.1\n}"
	with, without := newQueueGateway(t, t.TempDir(), "", key), newGateway(t, "", key)
	for path, want := range map[string]string{
		"/notify": "./notify/messages/", "/notify/": "./messages/", "/notify/k": "./messages/", "/notify/k/": "../messages/",
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		if page := do(t, with, r).body; !strings.Contains(page, `data-messages="`+want+`"`) {
			t.Errorf("%s: the page lacks %s", path, want)
		}
		if page := do(t, without, r).body; strings.Contains(page, "data-messages=") {
			t.Errorf("%s: the page of a gateway without a queue has an address for messages", path)
		}
	}
}

// Messages for saved keys are delivered later as well, to the URLs of the key
// at the time of the delivery.
func TestQueueSavedKey(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusBadGateway)
	inBubble(t, func(t *testing.T) {
		h, _ := newConfigGateway(t, t.TempDir(), "manage open\nrefresh 1ns", "queue {\npath "+t.TempDir()+"\n}")
		startApp(t, h)
		save := func(urls string) {
			t.Helper()
			if got := postWith(t, h, "/add/ops", "urls="+urls); got.status != 200 {
				t.Fatalf("status %d, %s", got.status, got.body)
			}
		}
		save(p.NotifyURL())
		kept := postWith(t, h, "/notify/ops", "body=hello").queued(t)
		if kept.Results[0].Status != "queued" {
			t.Fatalf("%+v", kept)
		}
		p.answer(http.StatusOK)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, kept.ID); return s == "delivered" })
		p.answer(http.StatusBadGateway)
		lost := postWith(t, h, "/notify/ops", "body=hello").queued(t)
		n := p.count()
		save("json://127.0.0.1:1/")
		time.Sleep(11 * time.Minute)
		caddyhttptest.Eventually(t, func() bool { s, _ := state(t, h, lost.ID); return s == "failed" })
		if p.count() != n {
			t.Errorf("the URL that was removed got %d more messages", p.count()-n)
		}
	})
}
