package outbox

import (
	"errors"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

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
