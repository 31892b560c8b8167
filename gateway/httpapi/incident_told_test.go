package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestIncidentPageTold checks that the page of an incident shows, for managers alone, who was told
// of it and when, its text, and how far the list reaches.
func TestIncidentPageTold(t *testing.T) {
	t.Parallel()
	well, ill, dir := gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusNotFound), t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		k := gatewaytest.Key("k", well.NotifyURL(), ill.NotifyURL())
		k.Rules, k.Inbox = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, 24*time.Hour
		other := gatewaytest.Key("other", well.NotifyURL())
		other.Rules = k.Rules
		o := gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{k, other}, PublicURL: gatewaytest.PublicURL},
			Site:   site.Options{Managers: &site.Managers{Named: []string{"ann"}}, Page: new(true)}, Queue: &outbox.Settings{Path: dir},
		}
		g := gatewaytest.New(t, o)
		g.PostForm("/notify/other", "title=Elsewhere&body=x&type=failure&incident=db1")
		g.PostForm("/notify/k", "title=Disk&body=The+disk+is+full&type=failure&incident=db1")
		time.Sleep(10 * time.Minute)
		g.PostForm("/notify/k", "body=It+was+cleaned&incident=db1")
		g.PostForm("/notify/k", "title=Disk&body=All+is+well&type=success&incident=db1")
		time.Sleep(time.Second)
		list := g.Do(gatewaytest.As(gatewaytest.NewRequest(http.MethodGet, "/notify/incidents?key=k", ""), "ann")).Body
		_, rest, _ := strings.Cut(list, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		page := func(path, user string) gatewaytest.Reply {
			r := gatewaytest.NewRequest(http.MethodGet, path+id, "", "Accept", "text/html")
			if user != "" {
				r = gatewaytest.As(r, user)
			}
			return g.Do(r)
		}
		const console, link = "/notify/console/incidents/", "/notify/incidents/"
		private := []string{
			"JSON 127.0.0.1:", "got the failure.", "got that it is over.", "got what was added.", "could not be told.",
			"All is well", `href="../../../notify/console/messages"`,
		}
		mine := page(console, "ann").Body
		for _, want := range private {
			if !strings.Contains(mine, want) {
				t.Errorf("who may manage misses %q: %s", want, mine)
			}
		}
		if strings.Contains(mine, "Elsewhere") || strings.Count(mine, "got the failure.") != 1 {
			t.Errorf("the page has more than its own: %s", mine)
		}
		foreign := page(link, "").Body
		for _, secret := range private {
			if strings.Contains(foreign, secret) {
				t.Errorf("who has the link sees %q: %s", secret, foreign)
			}
		}
		if got := page(console, ""); got.Status != http.StatusForbidden {
			t.Errorf("a stranger at the console: status %d", got.Status)
		}
	})
}
