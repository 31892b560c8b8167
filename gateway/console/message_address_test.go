package console_test

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// The page of a gateway with a queue has the address of messages.
func TestQueuePage(t *testing.T) {
	t.Parallel()
	o := gatewaytest.Options{Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", "json://127.0.0.1")}}}
	without := gatewaytest.New(t, o)
	o.Queue = &outbox.Settings{}
	with := gatewaytest.New(t, o)
	for path, want := range map[string]string{
		"/notify": "./notify/messages/", "/notify/": "./messages/", "/notify/k": "./messages/", "/notify/k/": "../messages/",
	} {
		if page := with.Get(path).Body; !strings.Contains(page, `data-messages="`+want+`"`) {
			t.Errorf("%s: the page lacks %s", path, want)
		}
		if page := without.Get(path).Body; strings.Contains(page, "data-messages=") {
			t.Errorf("%s: the page of a gateway without a queue has an address for messages", path)
		}
	}
}
