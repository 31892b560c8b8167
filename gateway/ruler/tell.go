package ruler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// errChanged is returned when a group is no longer in the state that was to be told.
var errChanged = fmt.Errorf("the group of alerts: %w", queue.ErrChanged)

// goneTime is how long a group is kept without its key in the configuration. Another gateway may
// have a newer configuration with the key.
const goneTime = 10 * time.Minute

// tries is how often telling a group is tried if others change it at the same time.
const tries = 10

// Due does the work that is due in the record of a group. Pieces have no work of their own.
func (r *Rulers) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte, crowded bool) (err error) {
	if crowded || outbox.KindOf(data) == KindPiece {
		return nil
	}
	r.groups.Note()
	for range tries {
		err = r.due(ctx, conf, name)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return err
}

// due tells the changes of a group, or begins to wait because an alert is no longer reported.
func (r *Rulers) due(ctx context.Context, conf *outbox.Configuration, name queue.Hash) error {
	record, err := r.outbox.Queue.Records.Get(ctx, name)
	if err != nil {
		return err
	}
	before, err := r.load(ctx, name, record)
	if err != nil {
		return err
	}
	g := before.AlertGroup
	if g == nil {
		return r.outbox.RemoveRecord(ctx, name)
	}
	k, s, err := conf.KeyOfIncident(ctx, &rules.Incident{Site: g.Site, Home: g.Home, Key: g.Key})
	if err != nil {
		return err
	}
	if k == nil || k.Unqueued {
		return r.dueGone(ctx, name, placeOf(g))
	}
	u, err := r.beats.Uptime(ctx)
	if err != nil {
		return err
	}
	now, posts := r.outbox.Queue.Now(), r.kept(name)
	g.Gone = time.Time{}
	g.Post(now, u, posts, s.Ruler.Times)
	forgotten := g.Forget(now, u)
	state, tells := g.Tell(now, u)
	c := &change{rulers: r, name: name, before: before, group: g, uptime: u}
	if tells {
		err = r.tell(ctx, c, state, k, s)
	} else {
		err = r.outbox.Apply(ctx, c.ruled())
	}
	if c.refused {
		return errChanged
	}
	if err == nil {
		r.beats.Saw()
		r.forget(name, posts)
		if forgotten > 0 {
			r.outbox.Log.Info("alerts that end later are forgotten, because their ruler has not posted them for a day; nobody is told",
				zap.String("key", g.Key), zap.String("incident", g.Name), zap.Int("alerts", forgotten))
		}
	}
	return err
}

// change replaces the record of a group, unless it has changed meanwhile.
type change struct {
	rulers  *Rulers
	name    queue.Hash
	before  *stored
	group   *rules.AlertGroup // after the change
	uptime  *rules.Uptime     // with which it was decided
	refused bool              // nothing has changed
}

// ruled returns the change for the queue.
func (c *change) ruled() *queue.Ruled {
	r := c.rulers
	_, after := c.group.Cut()
	n := max(len(c.before.pieces), len(after))
	pieces := r.pieceNames(c.name, n)
	return r.usage.Ruled(placeOf(c.group), false, &queue.Ruled{Names: r.names(c.name, pieces), Decide: func(tx *queue.Tx) error {
		now := r.outbox.Queue.Now()
		u := r.beats.SeeUptime(tx, now)
		if c.refused = !c.before.is(tx, c.name, pieces) || !u.Same(c.uptime); c.refused {
			return errChanged
		}
		return r.put(tx, c.name, pieces, c.group, u, now)
	}})
}

// tell stores a message about a state of a group, with the change of its record. The queue
// sends it.
func (r *Rulers) tell(ctx context.Context, c *change, state rules.GroupState, k *site.Key, s *site.Site) error {
	m, tags, err := r.message(ctx, c.group, state)
	if err != nil {
		return err
	}
	m.Incident = m.Incident.For(k.FirstName(), site.SourceRuler)
	if len(state.Firing) == 0 { // also if the message is a warning, because nobody has said that all is well
		m.Incident.State, m.Incident.OpenFor = notifier.Resolved, state.OpenFor
	}
	k = s.Devices.With(k)
	targets := message.PreferredTargets(tags, k.Choose)
	if targets == nil {
		targets = k.DefaultTargets
	}
	d := dispatch.NewDelivery(s, site.SourceHTTP, c.group.Site, m, &message.Selection{Targets: targets}).ToKey(k)
	d.Format, d.With = site.SourceRuler, c.ruled()
	r.outbox.Dispatcher.Incidents.Note(&d)
	_, _, err = r.outbox.Submit(ctx, d, outbox.Options{})
	return err
}

// dueGone removes a group whose key is gone.
func (r *Rulers) dueGone(ctx context.Context, name queue.Hash, place string) error {
	var gone *rules.AlertGroup
	err := r.change(ctx, name, place, false, func(g *rules.AlertGroup, u *rules.Uptime, now time.Time) *rules.AlertGroup {
		gone = nil
		if g == nil {
			return nil
		}
		if g.Begin(now, u); g.Gone.IsZero() {
			g.Gone = now
		}
		if now.Sub(g.Gone) < goneTime {
			return g
		}
		gone = g
		return nil
	})
	if err == nil && gone != nil {
		r.outbox.Log.Warn("alerts of a ruler are forgotten, and nobody is told, because their key is gone or does not use the queue any more",
			zap.String("key", gone.Key), zap.String("incident", gone.Name))
	}
	return err
}
