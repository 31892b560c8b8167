package outbox

import (
	"errors"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// IgnoreNotFound returns err, or nil if it is about a message that is not there any more.
func IgnoreNotFound(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}
