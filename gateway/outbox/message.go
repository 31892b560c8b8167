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

// MaxQueuePage is the maximum number of deliveries that one request lists.
const MaxQueuePage = 1000

// AdminTimeout bounds how long a request about the queue waits for its store.
const AdminTimeout = 10 * time.Second

// RetryMessage makes the deliveries of a message due that wait or were given up, and returns
// how many there are.
func RetryMessage(ctx context.Context, q *queue.Queue, id uuid.UUID) (int, error) {
	n, err := q.Retry(ctx, id)
	return n.Dead + n.Queued, err
}

// DropMessage cancels the deliveries of a message that wait or were given up, and returns how
// many there are.
func DropMessage(ctx context.Context, q *queue.Queue, id uuid.UUID) (int, error) {
	return q.Drop(ctx, id)
}

// ErrNoMessage is the answer to a request about a message that does not exist or is forgotten.
var ErrNoMessage = api.Errorf(http.StatusNotFound, "there is no such message; results are kept for the time of queue keep")

// MessageError returns the error for a client whose request about a message ended with err:
// [ErrNoMessage], or one with the status 503.
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
