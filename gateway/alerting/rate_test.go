package alerting_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestRateAlerts checks that noise under a rate delays neither failures nor new incidents, and that
// those beyond the rate become one message.
func TestRateAlerts(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		key := ruledKey(p, rules.Rules{Rate: []rules.Rate{{Count: 2, Per: 24 * time.Hour}}})
		g := newGateway(t, dir, key)
		for _, form := range []string{"body=1", "body=2"} {
			wantResult(t, g, form, notifier.Delivered, "")
		}
		wantResult(t, g, "body=3", "queued", notifier.RuleHeld)
		time.Sleep(time.Minute)
		wantResult(t, g, "body=db1 is down&type=failure", notifier.Delivered, "")
		wantResult(t, g, "body=disk&type=warning&incident=disk", notifier.Delivered, "")
		p.WantTold(t, "info: 1", "info: 2", "failure: db1 is down", "warning: disk")
		wantResult(t, g, "body=disk again&type=warning&incident=disk", "queued", notifier.RuleHeld) // it opens nothing
		wantResult(t, g, "body=db2 is down&type=failure", "queued", notifier.RuleHeld)
		wantResult(t, g, "body=db3 is down&type=failure&incident=db3", "queued", notifier.RuleHeld)
		wantResult(t, g, "body=db3 restarts&incident=db3", "queued", notifier.RuleHeld) // it does not overtake its failure
		g.Stop()
		time.Sleep(23 * time.Hour)
		newGateway(t, dir, key)
		time.Sleep(time.Hour + time.Minute)
		p.WantTold(t, "info: 1", "info: 2", "failure: db1 is down", "warning: disk",
			"warning: k: 1 warning, 1 message | Sat 1 Jan 00:01 warning: disk again\nSat 1 Jan 00:00 3",
			"failure: k: 2 failures | Sat 1 Jan 00:01 failure: db2 is down\nSat 1 Jan 00:01 failure: db3 is down",
			"info: db3 restarts")
	})
}

// TestDigestRanks checks that a digest with more lines than fit leaves out the least important
// ones.
func TestDigestRanks(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		g := newGateway(t, dir, ruledKey(p, rules.Rules{Digest: &rules.Digest{Every: time.Minute}}))
		for i := range 60 { // in the digest of failures, because they have failed in this time
			for _, typ := range []string{"failure", "success"} {
				g.PostForm("/notify/k", fmt.Sprintf("body=up %d&type=%s&incident=up%[1]d", i, typ))
			}
		}
		g.PostForm("/notify/k", "body=odd&type=warning")
		g.PostForm("/notify/k", "body=still down&type=failure&incident=down")
		time.Sleep(2 * time.Minute)
		told := p.Told()
		slices.Sort(told) // the two are sent at the same time
		if len(told) != 2 || !strings.HasPrefix(told[0],
			"failure: k: 1 failure, 60 successes | 00:00 failure: still down\n00:00 success: up 0 (open since 00:00)\n") ||
			!strings.HasSuffix(told[0], "\nand 11 more") {
			t.Errorf("told %q", told)
		}
	})
}
