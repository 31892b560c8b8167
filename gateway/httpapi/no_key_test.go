package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestNoKey checks that the answer about a key that does not exist says what to do, and names other keys only
// for those who may manage.
func TestNoKey(t *testing.T) {
	t.Parallel()
	key := gatewaytest.Key("backups", "json://example.com")
	manage := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{key}, Managers: gatewaytest.Everybody()}})
	send := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{key}}})
	const check = "there is no such key; check its name, also upper and lower case"
	for _, tt := range []struct {
		g          *gatewaytest.Gateway
		name, want string
	}{
		{send, "backup", check},
		{send, "nothing", check},
		{manage, "backup", "there is no such key; you may mean backups"},
		{manage, "Backups", "there is no such key; you may mean backups"},
		{manage, "backup/gotify/message", `"there is no such key; you may mean backups"`},
		{manage, "no.thing", check},
		{manage, "nothing", "there is no such key; write key nothing with its destinations into the block notify of the Caddyfile"},
	} {
		got := tt.g.Do(httptest.NewRequest(http.MethodPost, "/notify/"+tt.name, strings.NewReader("body=x")))
		if got.Status != http.StatusNotFound || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s: %d %s, want %s", tt.name, got.Status, got.Body, tt.want)
		}
	}
}
