package planned_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// published is what ntfy's API answers.
type published struct {
	ID       string `json:"id"`
	Event    string `json:"event"`
	Time     int64  `json:"time"`
	Expires  int64  `json:"expires"`
	Code     int    `json:"code"`
	Error    string `json:"error"`
	Sequence string `json:"sequence_id"`
}

// ntfy sends a request to ntfy's API at the key k, with headers given as names and values.
func ntfy(t *testing.T, g *gatewaytest.Gateway, method, path, body string, header ...string) (out published) {
	t.Helper()
	got := g.Do(gatewaytest.NewRequest(method, "/notify/k/ntfy"+path, body, header...))
	if err := json.Unmarshal([]byte(got.Body), &out); err != nil {
		t.Errorf("%s %s: status %d: %s", method, path, got.Status, got.Body)
	}
	return out
}

// TestNtfyDelay checks that each form of ntfy's delays is honoured, and that an impossible delay
// has ntfy's error.
func TestNtfyDelay(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL())))
		now := time.Now()
		for _, tt := range []struct {
			path, body string
			header     []string
			after      time.Duration // 0 for none
			code       int
		}{
			{"/t", "one", []string{"Delay", "30m"}, 30 * time.Minute, 0},
			{"/t", "two", []string{"X-At", "946688400"}, time.Hour, 0}, // 2000-01-01 01:00
			{"/t?in=2+hours", "three", nil, 2 * time.Hour, 0},
			{"/t", "four", []string{"In", "1 day"}, 24 * time.Hour, 0},
			{"", `{"topic": "t", "message": "five", "delay": "90s"}`, []string{"Content-Type", gatewaytest.TypeJSON}, 90 * time.Second, 0},
			{"/t", "x", []string{"At", "tomorrow, 10am"}, 0, 40004},
			{"/t", "x", []string{"Delay", "5s"}, 0, 40005},
			{"/t", "x", []string{"At", "946684000"}, 0, 40005},
			{"/t", "x", []string{"Delay", "31d"}, 0, 40006},
			{"/t", "x", []string{"Delay", "999999999d"}, 0, 40006},
		} {
			got := ntfy(t, g, http.MethodPost, tt.path, tt.body, tt.header...)
			if got.Code != tt.code || tt.code == 0 && (got.Event != "message" || got.Time != now.Add(tt.after).Unix() || got.Expires <= got.Time) {
				t.Errorf("%s %q %q: %+v", tt.path, tt.body, tt.header, got)
			}
		}
		wait(2 * time.Minute)
		p.WantTold(t, "info: five")
		wait(30 * time.Minute)
		p.WantTold(t, "info: five", "info: one")
		wait(24 * time.Hour)
		p.WantTold(t, "info: five", "info: one", "info: two", "info: three", "info: four")
	})
}

// TestNtfyDelayWithoutQueue checks that a delay is refused that nobody could keep.
func TestNtfyDelayWithoutQueue(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	o := options("", gatewaytest.Key("k", p.NotifyURL()))
	o.Queue = nil
	g := gatewaytest.New(t, o)
	if got := ntfy(t, g, http.MethodPost, "/t", "x", "Delay", "30m"); got.Code != 40000 || !strings.Contains(got.Error, "needs a queue") {
		t.Errorf("%+v", got)
	}
}

// TestNtfySequence checks that a message replaces the planned one with its sequence ID, and that a
// planned one is not sent after it is deleted or marked as read.
func TestNtfySequence(t *testing.T) {
	inBubble(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		const token = "0123456789abcdef"
		closed := gatewaytest.Key("closed", p.NotifyURL())
		closed.Tokens = []string{token}
		g := gatewaytest.New(t, options(dir, gatewaytest.Key("k", p.NotifyURL()), closed))
		ntfy(t, g, http.MethodPost, "/t/deleted", "x", "Delay", "1h")
		ntfy(t, g, http.MethodPost, "/t/read", "x", "Delay", "1h")
		ntfy(t, g, http.MethodPost, "/t", "before", "Delay", "1h", "X-Sequence-ID", "moved")
		ntfy(t, g, http.MethodPost, "/t/moved", "after", "Delay", "2h")
		ntfy(t, g, http.MethodPost, "/other/deleted", "kept", "Delay", "1h")
		unnamed := ntfy(t, g, http.MethodPost, "/t", "x", "Delay", "1h").ID
		ntfy(t, g, http.MethodDelete, "/t/"+unnamed[:1], "")
		ntfy(t, g, http.MethodDelete, "/t/"+unnamed, "")
		unnamed = ntfy(t, g, http.MethodPost, "/t", "x", "Delay", "1h").ID
		ntfy(t, g, http.MethodPost, "/t/"+unnamed, "replaced", "Delay", "30m")
		ntfy(t, g, http.MethodPost, "/t/now", "x", "Delay", "1h")
		ntfy(t, g, http.MethodPost, "/t/now", "now")
		if got := ntfy(t, g, http.MethodDelete, "/t/deleted", ""); got.Event != "message_delete" || got.Sequence != "deleted" {
			t.Errorf("%+v", got)
		}
		if got := ntfy(t, g, http.MethodPut, "/t/read/clear", ""); got.Event != "message_clear" {
			t.Errorf("%+v", got)
		}
		own := g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/closed/ntfy/t/mine", "closed", "Delay", "90m", "Authorization",
			"Bearer "+token))
		if own.Status != http.StatusOK {
			t.Errorf("status %d: %s", own.Status, own.Body)
		}
		if got := g.Do(gatewaytest.NewRequest(http.MethodDelete, "/notify/closed/ntfy/t/mine", "")); got.Status != http.StatusUnauthorized &&
			got.Status != http.StatusForbidden {
			t.Errorf("a stranger: status %d: %s", got.Status, got.Body)
		}
		wait(3 * time.Hour)
		p.WantTold(t, "info: now", "info: replaced", "info: kept", "info: closed", "info: after")
	})
}
