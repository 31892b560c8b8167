package caddyhttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
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

// wantResult posts a message, and checks the status and the rule of its result.
func wantResult(t *testing.T, h *Handler, form string, status notifier.Status, rule notifier.Rule) queuedAnswer {
	t.Helper()
	resp := postWith(t, h, "/notify/k", form)
	a := resp.queued(t)
	if r := a.Results[0]; resp.status != http.StatusOK || r.Status != status || r.Rule != rule {
		t.Errorf("%s: status %d, %s %q; want %s %q", form, resp.status, r.Status, r.Rule, status, rule)
	}
	return a
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

// block returns the key k with the rules, and the setting that they need.
func (x *team) block(lines ...string) string {
	b := "public_url " + publicURL + "\nkey k {\nurl " + x.chat.NotifyURL() + " chat\n"
	for i, p := range x.phones {
		b += "url " + p.NotifyURL() + " " + string(rune('1'+i)) + ":oncall\n"
	}
	return b + strings.Join(lines, "\n") + "\n}"
}

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

// incidentsOf returns the incidents of the key k of a gateway.
func incidentsOf(t *testing.T, h *Handler) (out []*rules.Incident) {
	t.Helper()
	for _, stage := range rules.Stages {
		by := alerting.IncidentQuery{Stage: stage, Limit: 2}
		for more := true; more; more = by.After != (alerting.IncidentCursor{}) {
			var list []alerting.StoredIncident
			var err error
			if list, by.After, err = h.app.gateway.Rooms.Alerts.Incidents.List(t.Context(), []string{"\x00k"}, &by); err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				if x.Incident.Stage() != stage {
					t.Errorf("%s is among those that are %s", x.Incident.Name, stage)
				}
				out = append(out, x.Incident)
			}
		}
	}
	return out
}
