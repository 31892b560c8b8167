package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Durable returns the outbox for messages of a key, or nil if they are not stored: there is
// no queue, or the key does not use it. k is nil for a message without a key. Durable waits
// until the gateway has started, because messages may come in earlier. The error is an
// [*message.Error] of the kind Unavailable.
func (a *Configuration) Durable(k *site.Key) (*Outbox, error) {
	if a.QueueSettings == nil || k != nil && k.Unqueued {
		return nil, nil
	}
	<-a.Started
	if a.Outbox == nil {
		return nil, ErrQueueUnavailable(errors.New("the queue is not open"))
	}
	return a.Outbox, nil
}

// QueueRetryAfter is how long a client should wait when the queue cannot take its message.
const QueueRetryAfter = 10 * time.Second

// ErrQueueUnavailable returns the error for a client whose message or silence cannot be
// stored because of err.
func ErrQueueUnavailable(err error) *message.Error {
	e := message.Errorf(message.Unavailable, "the gateway cannot store messages at the moment; try again in %s", QueueRetryAfter)
	e.RetryAfter = QueueRetryAfter
	if share, ok := errors.AsType[*ShareError](err); ok {
		return tooMuch(message.Full, "%s", share.Reason)
	}
	if errors.Is(err, queue.ErrFull) {
		e.Err = fmt.Errorf("the queue is full: the messages that wait to be delivered, and the alerts and silences that it knows, take as much as max_size allows; try again in %s", QueueRetryAfter)
		return e
	}
	if errors.Is(err, queue.ErrDiskFull) {
		e.Err = fmt.Errorf("the gateway cannot store anything new, because its disk is full; try again in %s", QueueRetryAfter)
	}
	e.Fault = err
	return e
}
