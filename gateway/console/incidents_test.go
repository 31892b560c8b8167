package console_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestManyIncidents checks that the pages of a key's incidents have each once.
func TestManyIncidents(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	dir := t.TempDir()
	key := gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")
	key.Rules = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{key}},
			Site:   site.Options{Managers: gatewaytest.Everybody()},
			Queue:  &outbox.Settings{Path: dir},
		})
		for i := range 120 {
			g.PostForm("/notify/k", fmt.Sprintf("title=No+%d.&body=x&type=failure&incident=%d", i, i))
		}
		synctest.Wait()
		seen := map[string]int{}
		pages := 0
		for address := "/notify/console/incidents?key=k"; address != ""; pages++ {
			body := g.Get(address).Body
			for _, part := range strings.Split(body, `">No `)[1:] {
				seen[part[:strings.IndexByte(part, '.')]]++
			}
			_, after, _ := strings.Cut(body, `rel="next" class="button" href="../..`)
			address, _, _ = strings.Cut(html.UnescapeString(after), `"`)
		}
		if pages != 3 || len(seen) != 120 {
			t.Errorf("%d pages have %d incidents", pages, len(seen))
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s is listed %d times", name, n)
			}
		}
	})
}
