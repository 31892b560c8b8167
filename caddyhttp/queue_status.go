package caddyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// The bounds of a check of the queue's store, which is a write.
const (
	checkEvery   = 5 * time.Second // the result of a check is used again until then
	checkTimeout = 3 * time.Second
)

// storeCheck is the last check of a store. The zero value is ready for use.
type storeCheck struct {
	mu      sync.Mutex
	at      time.Time // of the last result
	err     error
	running chan struct{} // closed when the check under way ends; nil if none is
}

var errStoreHangs = errors.New("the store does not answer")

// writable returns an error if messages cannot be stored. The result may be some
// seconds old.
func (q *outbox) writable(ctx context.Context) error {
	c := &q.check
	c.mu.Lock()
	if c.running == nil && time.Since(c.at) < checkEvery {
		defer c.mu.Unlock()
		return c.err
	}
	if c.running == nil {
		c.running = make(chan struct{})
		go c.run(context.WithoutCancel(ctx), q) // its result is for others, too
	}
	running := c.running
	c.mu.Unlock()
	timer := time.NewTimer(checkTimeout)
	defer timer.Stop()
	select {
	case <-running:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errStoreHangs
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// run makes a check. It ends at the latest when the queue is closed.
func (c *storeCheck) run(ctx context.Context, q *outbox) {
	err := q.Check(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		q.log.Error("the queue cannot store messages, and /notify/status answers 503", zap.Error(err))
	}
	c.at, c.err = time.Now(), err
	close(c.running)
	c.running = nil
}

// statusResponse is the JSON of /notify/status.
type statusResponse struct {
	Status string `json:"status"` // OK or unavailable
	Error  string `json:"error,omitempty"`
}

// serveHealth tells load balancers whether this gateway can take messages.
func (h *httpAPI) serveHealth(w http.ResponseWriter, r *http.Request, _ *route) *api.Response {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use GET", r.Method).Response()
	}
	status, out := http.StatusOK, statusResponse{Status: "OK"}
	if reason := h.app.unavailable(r.Context()); reason != "" {
		status, out = http.StatusServiceUnavailable, statusResponse{"unavailable", reason}
		w.Header().Set("Retry-After", strconv.Itoa(int(queueRetryAfter/time.Second)))
	}
	body, contentType := []byte(out.Status+"\n"), "text/plain; charset=utf-8"
	if out.Error != "" {
		body = []byte(out.Error + "\n")
	}
	if api.PrefersJSON(r) {
		body, _ = json.Marshal(out) // it has texts only
		body, contentType = append(body, '\n'), "application/json"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client is gone
	return nil
}

// unavailable returns why the gateway cannot take messages, or "". The text is for
// anybody: it has no addresses and no paths, which are in the log.
func (a *engine) unavailable(ctx context.Context) string {
	if a.queueSettings == nil {
		return ""
	}
	select {
	case <-a.started:
	default:
		return "the gateway is starting"
	}
	if a.outbox == nil {
		return "the queue is not open"
	}
	switch err := a.outbox.writable(ctx); {
	case err == nil:
		return ""
	case errors.Is(err, errStoreHangs):
		return "the queue's store does not answer"
	}
	return "the queue cannot be written; the log of the gateway has the reason"
}
