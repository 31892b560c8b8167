package caddyhttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// toldTitles returns type, title and text of the messages that the pager has taken.
func (p *pager) toldTitles() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		text := m.Message
		if m.Title != "" {
			text = m.Title + " | " + text
		}
		out = append(out, m.Type+": "+text)
	}
	return out
}

// wantTold checks what the pager was told, in order.
func (p *pager) wantTold(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := p.toldTitles(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ruledKey returns a key k with one URL and rules.
func ruledKey(p *pager, rules ...string) string {
	return "key k {\nurl " + p.NotifyURL() + "?tz=UTC\n" + strings.Join(rules, "\n") + "\n}"
}

// until waits until a time of the bubble's clock, which begins on Saturday, 2000-01-01.
func until(t *testing.T, at string) {
	t.Helper()
	end, err := time.Parse(time.DateTime, at)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(end))
	synctest.Wait()
}

// team is a chat without a number, and phones that are steps.
type team struct {
	chat   *pager
	phones []*pager
}

func newTeam(t *testing.T, phones int) *team {
	x := &team{chat: newPager(t, http.StatusOK)}
	for range phones {
		x.phones = append(x.phones, newPager(t, http.StatusOK))
	}
	return x
}

// publicURL is what the links of tests begin with.
const publicURL = "https://alerts.example.com/x"

// wantCounts checks how many messages the chat and the phones got.
func (x *team) wantCounts(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	got := []int{x.chat.count()}
	for _, p := range x.phones {
		got = append(got, p.count())
	}
	if !slices.Equal(got, want) {
		t.Errorf("at %s the chat and the phones got %v messages, want %v", time.Now().UTC().Format(time.TimeOnly), got, want)
	}
}

// links returns the links with which to acknowledge of the messages that the pager has
// taken.
func (p *pager) links() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		out = append(out, m.AcknowledgeURL)
	}
	return out
}
