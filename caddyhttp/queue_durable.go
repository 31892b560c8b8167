package caddyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// durable returns the queue for messages of a key, or nil if there is none. It
// waits until the app has started, because other apps may start earlier and
// send messages.
func (a *engine) durable(k *site.Key) (*outbox, error) {
	if a.queueSettings == nil || k != nil && k.Unqueued {
		return nil, nil
	}
	<-a.started
	if a.outbox == nil {
		return nil, errQueueUnavailable(errors.New("the queue is not open"))
	}
	return a.outbox, nil
}

// queueRetryAfter is the time that a client should wait after a 503 of the
// queue.
const queueRetryAfter = 10 * time.Second

// errQueueUnavailable returns the error for a client whose message or silence cannot be
// stored because of err.
func errQueueUnavailable(err error) *api.Error {
	e := api.Errorf(http.StatusServiceUnavailable, "the gateway cannot store messages at the moment; try again in %s", queueRetryAfter)
	e.RetryAfter = queueRetryAfter
	if errors.Is(err, queue.ErrFull) {
		e.Err = fmt.Errorf("the queue is full: the messages that wait to be delivered, and the alerts and silences that it knows, take as much as max_size allows; try again in %s", queueRetryAfter)
		return e
	}
	if errors.Is(err, queue.ErrDiskFull) {
		e.Err = fmt.Errorf("the gateway cannot store anything new, because its disk is full; try again in %s", queueRetryAfter)
	}
	e.Fault = err
	return e
}
