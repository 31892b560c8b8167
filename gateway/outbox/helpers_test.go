package outbox_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// newGateway starts a gateway with keys and a queue in a folder, which is a temporary one for "".
func newGateway(t *testing.T, dir string, keys ...site.KeyOptions) *gatewaytest.Gateway {
	t.Helper()
	return gatewaytest.New(t, gatewaytest.Queued(dir, keys...))
}

// parseTags parses a tag expression.
func parseTags(t *testing.T, text string) notifier.TagExpr {
	t.Helper()
	e, err := notifier.ParseTags(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// queueID parses the ID of a message.
func queueID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
