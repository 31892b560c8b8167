package outbox

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The number of deliveries on a page.
const MaxQueuePage = 1000

// AdminTimeout bounds how long the admin API waits for the store.
const AdminTimeout = 10 * time.Second

// RetryMessage returns how many deliveries of a message are due now.
func RetryMessage(ctx context.Context, q *queue.Queue, id uuid.UUID) (int, error) {
	n, err := q.Retry(ctx, id)
	return n.Dead + n.Queued, err
}

// DropMessage returns how many deliveries of a message are cancelled.
func DropMessage(ctx context.Context, q *queue.Queue, id uuid.UUID) (int, error) {
	return q.Drop(ctx, id)
}

var ErrNoMessage = api.Errorf(http.StatusNotFound, "there is no such message; results are kept for the time of queue keep")

// MessageError returns the error for a client that asks for a message.
func MessageError(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return ErrNoMessage
	}
	e := api.Errorf(http.StatusServiceUnavailable, "the gateway cannot read the queue at the moment; try again in %s", QueueRetryAfter)
	e.Fault, e.RetryAfter = err, QueueRetryAfter
	return e
}

// IgnoreNotFound returns err, or nil if it is about a message that is not there any more.
func IgnoreNotFound(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}
