package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// alertStore is a store that two gateways share. It may be away.
type alertStore struct {
	away    bool
	records map[dispatch.AlertID][]byte
}

// gateway returns what a gateway that uses the store knows of alerts.
func (s *alertStore) gateway() *dispatch.OpenAlerts {
	return dispatch.NewStoredAlerts(dispatch.AlertStore{
		At: func(t time.Time) time.Time { return t },
		Change: func(_ context.Context, id dispatch.AlertID, change func([]byte) ([]byte, time.Time)) error {
			if s.away {
				return errors.New("the store is away")
			}
			change(s.records[id]) // as after a conflict of two transactions
			s.records[id], _ = change(s.records[id])
			return nil
		},
	})
}

// TestStoredAlerts checks what two gateways that share a store tell of an alert that is opened
// again: what either of them knows counts, and without the store it is told.
func TestStoredAlerts(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}}})
	at := time.Now()
	delivery := func(m notifier.Message) *dispatch.Delivery {
		k := g.Resolved.Keys["ops"]
		m.Incident, m.Time = m.Incident.For("ops", "opsgenie"), at
		d := dispatch.NewDelivery(g.Resolved, site.SourceHTTP, gatewaytest.SiteID, &m, &message.Selection{Targets: k.DefaultTargets}).ToKey(k)
		return &d
	}
	actions := map[string]func(x *dispatch.OpenAlerts) string{
		"open": func(x *dispatch.OpenAlerts) string {
			d := delivery(notifier.Message{Title: "Disk full", Body: "db1", Type: notifier.Failure, Incident: notifier.Incident{Name: "disk"}})
			n, repeats, err := x.Opens(t.Context(), d, false, func(notifier.Target) bool { return false })
			if repeats {
				return fmt.Sprint("repetition ", n)
			}
			g.Process.Send(t.Context(), *d)
			if got := s.One(t); err == nil {
				return "told: " + strings.ReplaceAll(got.Message, "\n", " ")[:min(len(got.Message), len("db1 2 repetitions"))]
			}
			return "told: " + err.Error()
		},
		"close": func(x *dispatch.OpenAlerts) string {
			return fmt.Sprint(x.Note(t.Context(),
				delivery(notifier.Message{Body: "x", Type: notifier.Success, Incident: notifier.Incident{Name: "disk"}}), false))
		},
		"acknowledge": func(x *dispatch.OpenAlerts) string {
			return fmt.Sprint(x.Note(t.Context(),
				delivery(notifier.Message{Body: "x", Type: notifier.Info, Incident: notifier.Incident{Name: "disk", State: notifier.Acknowledged}}),
				false))
		},
		"unacknowledge": func(x *dispatch.OpenAlerts) string {
			return fmt.Sprint(x.Note(t.Context(),
				delivery(notifier.Message{Body: "x", Type: notifier.Info, Incident: notifier.Incident{Name: "disk"}}), true))
		},
		"refresh": func(x *dispatch.OpenAlerts) string { x.Refresh(t.Context()); return "" },
	}
	const away = "the store is away"
	type step struct {
		after   time.Duration
		gateway int // 0: the store is away from now on, or back
		action  string
		want    string
	}
	toggle := step{}
	for name, steps := range map[string][]step{
		"either": {
			{0, 1, "open", "told: db1"},
			{0, 2, "open", "repetition 1"},
			{time.Hour, 1, "open", "repetition 2"},
			{5 * time.Hour, 2, "open", "told: db1 2 repetitions"},
			{0, 1, "open", "repetition 1"},
		},
		"closed": {
			{0, 1, "open", "told: db1"},
			{0, 2, "close", "<nil>"},
			{0, 1, "open", "told: db1"},
			{0, 2, "open", "repetition 1"},
		},
		"acknowledged": {
			{0, 1, "open", "told: db1"},
			{0, 2, "acknowledge", "<nil>"},
			{99 * time.Hour, 1, "open", "repetition 1"},
			{0, 1, "unacknowledge", "<nil>"},
			{99 * time.Hour, 2, "open", "told: db1"},
		},
		"away": {
			{0, 1, "open", "told: db1"},
			toggle,
			{0, 1, "open", "told: " + away},
			{0, 2, "open", "told: " + away},
			toggle,
			{0, 2, "open", "repetition 1"},
		},
		"closed, away": {
			{0, 1, "open", "told: db1"},
			toggle,
			{0, 2, "close", away},
			toggle,
			{0, 2, "open", "told: db1"},
			{0, 1, "open", "repetition 1"},
		},
		"closed, then known": {
			{0, 1, "open", "told: db1"},
			toggle,
			{0, 2, "close", away},
			{0, 2, "refresh", ""},
			toggle,
			{0, 2, "refresh", ""},
			{0, 1, "open", "told: db1"},
			{0, 2, "open", "repetition 1"},
		},
		"not acknowledged, away": {
			{0, 1, "open", "told: db1"},
			{0, 1, "acknowledge", "<nil>"},
			toggle,
			{0, 2, "unacknowledge", away},
			toggle,
			{0, 2, "refresh", ""},
			{99 * time.Hour, 1, "open", "told: db1"},
		},
		"the clock was ahead": {{0, 1, "open", "told: db1"}, {-25 * time.Hour, 2, "open", "told: db1"}, {0, 1, "open", "repetition 1"}},
	} {
		store := &alertStore{records: map[dispatch.AlertID][]byte{}}
		gateways := []*dispatch.OpenAlerts{store.gateway(), store.gateway()}
		for i, x := range steps {
			if at = at.Add(x.after); x.gateway == 0 {
				store.away = !store.away
				continue
			}
			if got := actions[x.action](gateways[x.gateway-1]); got != x.want {
				t.Errorf("%s, step %d: %s: got %q, want %q", name, i, x.action, got, x.want)
			}
		}
	}
}
