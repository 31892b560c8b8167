package ask_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestGuests checks what somebody sees of a question with nothing but its link: the names of the
// destinations, but not their URLs or the one through which it was answered. Managers and clients
// with a token of the key see that, too.
func TestGuests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		const token = "token-token-token-token"
		k := gatewaytest.Key("k", strings.Replace(s.NotifyURL(), "json://", "json://login:password@", 1)+"/path",
			"json://127.0.0.1:1/other")
		k.Tokens = []string{token}
		o := gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{k}, PublicURL: gatewaytest.PublicURL, Egress: gatewaytest.Loopback()},
			Site:   site.Options{Managers: &site.Managers{Named: []string{"root"}}, Page: new(true)},
			Queue:  &outbox.Settings{Path: dir},
		}
		g := gatewaytest.New(t, o)
		auth := []string{"Authorization", "Bearer " + token}
		if got := post(g, deploy, auth...); got.Status != http.StatusAccepted {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		settle(time.Second)
		link := linkOf(t, s, 0)
		shown := page(g, link)
		if !strings.Contains(shown, "JSON 127.0.0.1:1<") && !strings.Contains(shown, "JSON 127.0.0.1:1,") {
			t.Errorf("the page does not name a destination: %s", shown)
		}
		texts := []string{
			shown, answer(g, link, "answer=deploy&by=Ann").Body, page(g, link),
			g.Do(gatewaytest.NewRequest(http.MethodGet, link, "")).Body,
		}
		texts = append(texts, answer(g, link, "answer=wait").Body)
		for _, text := range texts {
			for _, secret := range []string{"json://", "login", "/path", `"through"`} {
				if strings.Contains(text, secret) {
					t.Errorf("a guest sees %s: %s", secret, text)
				}
			}
		}
		managed := gatewaytest.As(gatewaytest.NewRequest(http.MethodGet, link, ""), "root")
		for who, got := range map[string]gatewaytest.Reply{
			"the token": g.Do(gatewaytest.NewRequest(http.MethodGet, link, "", auth...)), "a manager": g.Do(managed),
		} {
			if !strings.Contains(got.Body, `"through":"json://`) {
				t.Errorf("%s: %s", who, got.Body)
			}
		}
	})
}
