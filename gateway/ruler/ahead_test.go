package ruler_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// aheadTest is a gateway whose clock is 25 hours ahead until it is stopped.
type aheadTest struct {
	*testing.T
	p     *gatewaytest.Pager
	g     *gatewaytest.Gateway
	start func(t *testing.T) *gatewaytest.Gateway
	lasts time.Duration // until an alert ends that is not posted again; 0 for alerts without an end
	many  bool          // so many alerts that they are in pieces
}

// post posts alerts that fire or are resolved, by the clock of now.
func (x *aheadTest) post(t *testing.T, resolved bool) {
	t.Helper()
	n, cause := 1, ""
	if x.many {
		n, cause = 20, strings.Repeat("x", 20_000)
	}
	var alerts []string
	for i := range n {
		text := alertOf(map[string]string{"alertname": "Disk", "instance": fmt.Sprint(i), "cause": cause}, x.lasts)
		switch {
		case resolved:
			text = alertOf(map[string]string{"alertname": "Disk", "instance": fmt.Sprint(i), "cause": cause}, 0)
		case x.lasts == 0:
			text = strings.Replace(text, "endsAt", "unknown", 1)
		}
		alerts = append(alerts, text)
	}
	post(t, x.g, alerts...)
}

// told waits for a time and returns the types of the messages so far.
func (x *aheadTest) told(d time.Duration) string {
	wait(d)
	var types []string
	for _, text := range x.p.Told() {
		kind, _, _ := strings.Cut(text, ":")
		types = append(types, kind)
	}
	return strings.Join(types, " ")
}

// TestRulerClockWasAhead checks what becomes of alerts that were posted when the clock was 25 hours
// ahead: after the gateway starts with the right clock, what is told next takes as long as
// otherwise, and nothing is told to be over at once.
func TestRulerClockWasAhead(t *testing.T) {
	t.Parallel()
	const minutes = time.Minute
	for name, tt := range map[string]struct {
		ahead func(t *testing.T, x *aheadTest) // while the clock is ahead
		then  func(t *testing.T, x *aheadTest) // with the right clock
		want  []string                         // what is told after 1, 4, 12 and 20 minutes
	}{
		"a new group": {func(*testing.T, *aheadTest) {}, nil, []string{"failure", "failure", "failure warning", "failure warning"}},
		"told": {
			func(*testing.T, *aheadTest) { wait(minutes) }, nil,
			[]string{"failure", "failure", "failure warning", "failure warning"},
		},
		"posted again": {
			func(t *testing.T, x *aheadTest) { wait(minutes); x.post(t, false) }, nil,
			[]string{"failure", "failure", "failure warning", "failure warning"},
		},
		"resolved": {
			func(t *testing.T, x *aheadTest) { wait(minutes); x.post(t, true) }, nil,
			[]string{"failure", "failure", "failure success", "failure success"},
		},
		"fires": {
			func(*testing.T, *aheadTest) { wait(minutes) }, func(t *testing.T, x *aheadTest) { x.post(t, false) },
			[]string{"failure", "failure", "failure", "failure"},
		},
		"resolved then": {
			func(*testing.T, *aheadTest) { wait(minutes) }, func(t *testing.T, x *aheadTest) { x.post(t, true) },
			[]string{"failure", "failure", "failure success", "failure success"},
		},
		"new, resolved then": {func(*testing.T, *aheadTest) {}, func(t *testing.T, x *aheadTest) { x.post(t, true) }, []string{"", "", "", ""}},
		"posted, and put ahead": {
			func(t *testing.T, x *aheadTest) {
				wait(minutes)
				x.g.Stop()
				time.Sleep(25 * time.Hour)
				x.g = x.start(t)
				wait(30 * time.Second)
			}, nil, []string{"failure", "failure", "failure warning", "failure warning"},
		},
	} {
		for _, lasts := range []time.Duration{4 * minutes, 0, 70 * 365 * 24 * time.Hour} {
			for _, many := range []bool{false, true} {
				if lasts > 24*time.Hour && (many || name != "told") { // days of the clock cost much
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %v", name, lasts, many), func(t *testing.T) {
					t.Parallel()
					x := &aheadTest{p: gatewaytest.NewPager(t, http.StatusOK), lasts: lasts, many: many}
					dir := t.TempDir()
					x.start = func(t *testing.T) *gatewaytest.Gateway { return newGateway(t, dir, key(x.p)) }
					gatewaytest.InBubble(t, func(t *testing.T) {
						if name != "posted, and put ahead" {
							time.Sleep(25 * time.Hour)
						}
						x.g = x.start(t)
						x.post(t, false)
						tt.ahead(t, x)
						x.g.Stop()
					})
					gatewaytest.InBubble(t, func(t *testing.T) {
						x.g = x.start(t)
						want := tt.want
						if lasts > 24*time.Hour && strings.HasSuffix(want[3], "warning") {
							want = []string{"failure", "failure", "failure", "failure"}
						}
						for i, d := range []time.Duration{minutes, 3 * minutes, 8 * minutes, 8 * minutes} {
							if tt.then != nil && (i == 0 || want[3] == "failure") {
								tt.then(t, x)
							}
							if got := x.told(d); got != want[i] {
								t.Errorf("look %d: told %q, want %q", i, got, want[i])
							}
						}
					})
				})
			}
		}
	}
}
