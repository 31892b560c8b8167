package caddyhttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// ruledKey returns a key k with one URL and rules.
func ruledKey(p *gatewaytest.Pager, rules ...string) string {
	return "key k {\nurl " + p.NotifyURL() + "?tz=UTC\n" + strings.Join(rules, "\n") + "\n}"
}

// team is a chat without a number, and phones that are steps.
type team struct {
	chat   *gatewaytest.Pager
	phones []*gatewaytest.Pager
}

func newTeam(t *testing.T, phones int) *team {
	x := &team{chat: gatewaytest.NewPager(t, http.StatusOK)}
	for range phones {
		x.phones = append(x.phones, gatewaytest.NewPager(t, http.StatusOK))
	}
	return x
}

// publicURL is what the links of tests begin with.
const publicURL = "https://alerts.example.com/x"

// wantCounts checks how many messages the chat and the phones got.
func (x *team) wantCounts(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	got := []int{x.chat.Count()}
	for _, p := range x.phones {
		got = append(got, p.Count())
	}
	if !slices.Equal(got, want) {
		t.Errorf("at %s the chat and the phones got %v messages, want %v", time.Now().UTC().Format(time.TimeOnly), got, want)
	}
}

// links returns the links with which to acknowledge of the messages that a pager has taken.
func links(p *gatewaytest.Pager) (out []string) {
	for _, m := range p.Got() {
		out = append(out, m.AcknowledgeURL)
	}
	return out
}
