package gatewaytest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// RuledKey is [Key] with rules, which must be right.
func RuledKey(name string, r rules.Rules, urls ...string) site.KeyOptions {
	k := Key(name, urls...)
	if r.Empty() {
		return k
	}
	if err := r.Check(); err != nil {
		panic(err) // r is a constant
	}
	k.Rules = &r
	return k
}

// PublicURL is the beginning of the links of a [Team].
const PublicURL = "https://alerts.example.com/x"

// Team has the destinations of a key that escalates: a chat without a number, and phones that are
// steps.
type Team struct {
	Chat   *Pager
	Phones []*Pager
}

// NewTeam starts the destinations of a team. They end with the test.
func NewTeam(t testing.TB, phones int) *Team {
	x := &Team{Chat: NewPager(t, http.StatusOK)}
	for range phones {
		x.Phones = append(x.Phones, NewPager(t, http.StatusOK))
	}
	return x
}

// Key returns the key k of the team with rules. The phones have the tag oncall.
func (x *Team) Key(r rules.Rules) site.KeyOptions {
	urls := []string{x.Chat.NotifyURL() + " chat"}
	for i, p := range x.Phones {
		urls = append(urls, fmt.Sprintf("%s %d:oncall", p.NotifyURL(), i+1))
	}
	return RuledKey("k", r, urls...)
}

// WantCounts checks, in a bubble, how many messages the chat and the phones got.
func (x *Team) WantCounts(t testing.TB, want ...int) {
	t.Helper()
	synctest.Wait()
	got := []int{x.Chat.Count()}
	for _, p := range x.Phones {
		got = append(got, p.Count())
	}
	if !slices.Equal(got, want) {
		t.Errorf("at %s the chat and the phones got %v messages, want %v", time.Now().UTC().Format(time.TimeOnly), got, want)
	}
}

// Links returns the links for acknowledging in the messages that have arrived.
func (p *Pager) Links() (out []string) {
	for _, m := range p.Got() {
		out = append(out, m.AcknowledgeURL)
	}
	return out
}
