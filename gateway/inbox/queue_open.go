package inbox

import (
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Box are the inboxes.
type Box struct {
	*Store
	outbox *outbox.Outbox
	full   site.LogLimiter // messages that were removed because the inboxes had no room
	Slow   site.LogLimiter // readers
}
