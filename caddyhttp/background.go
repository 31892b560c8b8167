package caddyhttp

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// errQueueFull is returned when the background queue is full.
var errQueueFull = errors.New("too many messages wait to be sent")

// errNoTarget is returned when no destination of a key has the tag, which a device may
// have had.
var errNoTarget = errors.New("no destination of the key has the tag now")

// post sends a message to targets of a key of the app in the background. If log is false,
// the deliveries leave no log entries. done, if it is not nil, is called with
// the report, unless the queue takes the message.
func (a *engine) post(k *site.Key, targets []notifier.Target, m *notifier.Message, source string, log bool, done func(*notifier.Report)) error {
	if len(targets) == 0 && k.Inbox == 0 {
		_, err := k.Choose(notifier.TagExpr{})
		return cmp.Or(err, errNoTarget)
	}
	d := newDelivery(a.Resolved, source, "", m, &api.Selection{Targets: targets}).toKey(k)
	if !log {
		d.logger = nil
	}
	ok := a.shared.background.add(func() {
		if a.enqueue(k, d) {
			return
		}
		report := a.shared.send(context.Background(), d)
		if done != nil {
			done(report)
		}
	})
	if !ok {
		return errQueueFull
	}
	return nil
}

// Limits of the background queue.
const (
	maxBackground = 32  // messages being sent
	maxQueued     = 256 // messages waiting
)

// background sends the messages of events and logs, so that the code that emits
// or logs them does not wait for a destination. The zero value is ready for use.
type background struct {
	dropped site.LogLimiter // messages for which the queue had no room

	mu      sync.Mutex
	queue   []func()
	workers int           // goroutines; each ends when the queue is empty
	idle    chan struct{} // closed when all is sent; nil if no caller waits
}

// add calls send in the background and reports true, unless the queue is full.
func (b *background) add(send func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers < maxBackground {
		b.workers++
		go b.work(send)
		return true
	}
	if len(b.queue) == maxQueued {
		return false
	}
	b.queue = append(b.queue, send)
	return true
}

func (b *background) work(send func()) {
	for send != nil {
		send()
		send = b.next()
	}
}

// next returns the next function in the queue, or nil if there is none; then
// the worker ends.
func (b *background) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		send := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		return send
	}
	b.workers--
	if b.workers == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	return nil
}

// wait returns when all messages are sent or the timeout is over, and returns
// how many are not sent.
func (b *background) wait(timeout time.Duration) int {
	b.mu.Lock()
	if b.workers > 0 && b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	if idle != nil {
		t := time.NewTimer(timeout)
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.workers + len(b.queue)
}

// stopTimeout bounds how long Caddy waits for messages in the background when
// it stops.
const stopTimeout = 5 * time.Second

// finish sends what the log writers have collected and waits for all messages
// in the background, unless another configuration replaces this app.
func (a *App) finish() {
	if a.shared.process.apps.newest() != a {
		return
	}
	a.shared.process.logs.flush()
	if left := a.shared.background.wait(stopTimeout); left > 0 {
		a.log.Error("messages not sent before Caddy stopped", zap.Int("messages", left))
	}
}

// reportDropped logs that the background queue had no room for a message.
func (a *engine) reportDropped() {
	a.shared.background.dropped.Add(1, func(n int) {
		a.log.Error("messages not sent because too many wait", zap.Int("messages", n))
	})
}
