package heartbeat_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestRunsAreRemembered checks that runs are remembered over a restart and shown without what the jobs
// posted, which is kept only for keys with an inbox, and as long as the inbox keeps a text.
func TestRunsAreRemembered(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		kept, other := runKey(t, p), runKey(t, p)
		kept.Inbox, other.Name = 24*time.Hour, "l"
		outputs := func(g *gatewaytest.Gateway) (out []string) {
			t.Helper()
			all, err := g.Rooms().Beats.AllBeats(t.Context())
			if err != nil || len(all) != 2 {
				t.Fatalf("%d beats, %v", len(all), err)
			}
			for i := range all {
				for _, r := range all[i].Runs {
					out = append(out, r.Output)
				}
			}
			return out
		}
		g := newGateway(t, dir, kept, other)
		gatewaytest.Until(t, "2000-01-01 03:15:00")
		for _, key := range []string{"k", "l"} {
			at := "/notify/" + key + "?beat=nightly"
			gatewaytest.Until(t, "2000-01-01 03:15:00")
			beat(t, g, http.MethodGet, at+"&state=start", "", http.StatusOK)
			beat(t, g, http.MethodPost, at, "12 files", http.StatusOK)
		}
		gatewaytest.Until(t, "2000-01-02 03:15:00")
		for _, key := range []string{"k", "l"} {
			beat(t, g, http.MethodPost, "/notify/"+key+"?beat=nightly&exit=3", "s3cret: the disk is full", http.StatusOK)
		}
		g.Stop()
		g = newGateway(t, dir, kept, other)
		gatewaytest.Until(t, "2000-01-02 03:16:00")
		if got := strings.Join(outputs(g), "|"); got != "|s3cret: the disk is full||" {
			t.Errorf("the outputs are %q", got)
		}
		all, err := g.Rooms().Beats.AllBeats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			text, err := json.Marshal(all[i].Admin(time.Now()).Runs)
			const want = `[{"at":"2000-01-01T03:15:00Z","outcome":"on_time"},{"at":"2000-01-02T03:15:00Z","outcome":"failed","exit":3}]`
			if err != nil || string(text) != want {
				t.Errorf("the runs are %s, want %s; %v", text, want, err)
			}
		}
		g.Stop()
		kept.Inbox = 0
		g = newGateway(t, dir, kept, other)
		time.Sleep(time.Second)
		g.Stop()
		kept.Inbox = 24 * time.Hour
		g = newGateway(t, dir, kept, other)
		if got := strings.Join(outputs(g), "|"); got != "|||" {
			t.Errorf("after the key had no inbox: %q", got)
		}
	})
}
