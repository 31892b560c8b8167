package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestClockWasAhead checks what was to take 20 s when the clock was 25 hours ahead: after the
// gateway starts with the right clock it takes 20 s, too, and not 25 hours. What was planned for
// a time of day is due at that time.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	p, dir := gatewaytest.NewPager(t, http.StatusOK), t.TempDir()
	start := func(t *testing.T) *gatewaytest.Gateway {
		return gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", p.NotifyURL()+"?tz=UTC")}},
			Site:   site.Options{Managers: gatewaytest.Everybody(), PublicURL: "https://notify.example.org"},
			Queue:  &outbox.Settings{Path: dir, Secret: "a secret of the tests"},
		})
	}
	var question string
	gatewaytest.InBubble(t, func(t *testing.T) {
		time.Sleep(25 * time.Hour)
		g := start(t)
		for _, form := range []string{"body=planned&send_at=20s", "body=at+a+time&send_at=2000-01-02T01:00:30Z"} {
			if got := g.PostForm("/notify/k", form); got.Status != http.StatusOK {
				t.Fatalf("%s: status %d: %s", form, got.Status, got.Body)
			}
		}
		got := g.Post("/notify/k", gatewaytest.TypeJSON, `{"body": "deploy?", "ask": {"options": ["yes", "no"], "timeout": "20s"}}`)
		if question = got.JSON(t).ID; question == "" {
			t.Fatalf("status %d: %s", got.Status, got.Body)
		}
		g.AddSilence("k", "for=20s&title=silent")
		g.AddSilence("k", "until=2000-01-02T01:00:30Z&title=until")
		synctest.Wait()
		g.Stop()
	})
	asked := p.Count()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := start(t)
		rule := func(title string) string {
			a := g.PostForm("/notify/k", "body=x&title="+title).JSON(t)
			return string(a.Results[0].Status)
		}
		if s := rule("silent"); s != "skipped" {
			t.Errorf("during a silence: %s", s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := p.Count(); n != asked {
			t.Errorf("told %q", p.Told())
		}
		if got := g.Message(http.MethodGet, question, gatewaytest.TypeJSON); !strings.Contains(got.Body, `"state":"open"`) {
			t.Errorf("the question is not open: %s", got.Body)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if told := p.Told()[asked:]; len(told) != 1 || told[0] != "info: planned" {
			t.Errorf("told %q", told)
		}
		if got := g.Message(http.MethodGet, question, gatewaytest.TypeJSON); !strings.Contains(got.Body, `"state":"expired"`) {
			t.Errorf("the question is not expired: %s", got.Body)
		}
		if a, b := rule("silent"), rule("until"); a != "delivered" || b != "skipped" {
			t.Errorf("after a silence: %s, during another: %s", a, b)
		}
		g.Stop()
		time.Sleep(25*time.Hour - 10*time.Second)
		g = start(t)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if told := p.Told()[asked+2:]; len(told) != 1 || told[0] != "info: at a time" {
			t.Errorf("told %q", told)
		}
	})
}
