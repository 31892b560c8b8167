package caddyhttp

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
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
