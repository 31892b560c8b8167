package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

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
