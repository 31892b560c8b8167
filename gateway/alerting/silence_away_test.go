package alerting_test

import (
	"net/http"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestSilenceWhileStoreIsAway checks that the silences that the gateway knows hold while nothing
// can be stored: only destinations that no silence matches are told. If silences match all, the
// client has to send again, because the message could not be held.
func TestSilenceWhileStoreIsAway(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	key := func(name string, r rules.Rules) site.KeyOptions {
		k := ruledKey(p, r)
		k.Name, k.URLs = name, gatewaytest.URLs(p.NotifyURL()+"?tz=UTC day", p.NotifyURL()+"?tz=UTC night")
		return k
	}
	dir := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := withManagers(gatewaytest.Queued(dir, key("k", rules.Rules{}), key("ruled", dedupeMinute())))
		u := o.MakeUnwritable()
		g := gatewaytest.New(t, o)
		g.AddSilence("k", "for=2h&title=all&tag=all")
		g.AddSilence("k", "for=2h&title=some&tag=night")
		g.AddSilence("ruled", "for=2h&title=all&tag=all")
		u.Down.Store(true)
		for _, tt := range []struct {
			key, form string
			status    int
			told      int
		}{
			{"k", gatewaytest.AlertForm("failure", "a", "a") + "&title=all", http.StatusServiceUnavailable, 0},
			{"k", "body=b&title=all+the+same", http.StatusServiceUnavailable, 0},
			{"ruled", gatewaytest.AlertForm("failure", "c", "c") + "&title=all", http.StatusServiceUnavailable, 0},
			{"k", gatewaytest.AlertForm("failure", "d", "d") + "&title=some", http.StatusOK, 1},
			{"k", "body=e&title=some", http.StatusOK, 1},
			{"k", "body=f&title=loud", http.StatusOK, 2},
			{"ruled", gatewaytest.AlertForm("failure", "g", "g") + "&title=loud", http.StatusOK, 2},
		} {
			before := len(p.Told())
			got := g.PostForm("/notify/"+tt.key, tt.form)
			if told := len(p.Told()) - before; got.Status != tt.status || told != tt.told {
				t.Errorf("%s %s: status %d, told %d, want %d, %d: %s", tt.key, tt.form, got.Status, told, tt.status, tt.told, got.Body)
			}
		}
	})
}
