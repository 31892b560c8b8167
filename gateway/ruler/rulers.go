package ruler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Rulers stores groups of alerts. Its records and messages are in an outbox.
type Rulers struct {
	outbox.NoEnded
	outbox.NoRecheck
	outbox.NoForget
	outbox *outbox.Outbox
	beats  *heartbeat.Monitor // knows when no gateway ran
	groups outbox.Presence    // of groups, so that records are looked at each second
	usage  *outbox.Usage      // of what a key can have

	message Message

	mu      sync.Mutex
	repeats map[queue.Hash]*repeated // what is not stored yet, by the names of groups
}

// Message returns the message about a state of a group, and its preferred tags.
type Message func(context.Context, *rules.AlertGroup, rules.GroupState) (*notifier.Message, []string, error)

// repeated are posts about a group that say nothing new.
type repeated struct {
	place string                      // of their key
	posts map[string]rules.RulerAlert // the latest, by fingerprints
	times rules.GroupTimes
	last  time.Time // when the latest of them came
	until time.Time // when they are stored
}

// New returns the rulers of an outbox. The queue of the outbox may be set later.
func New(o *outbox.Outbox, beats *heartbeat.Monitor, message Message) *Rulers {
	r := &Rulers{outbox: o, beats: beats, message: message, repeats: map[queue.Hash]*repeated{}}
	r.usage = o.NewUsage(KindGroup, weigh, func(ctx context.Context, place string, f func([]byte)) error {
		return outbox.EachOfGroup(ctx, o.Queue, r.groupsName(), func(x queue.NamedRecord) bool {
			if g := groups.Decode(x.Data); g != nil && placeOf(g) == place {
				f(x.Data)
			}
			return true
		})
	})
	return r
}

// placeOf returns the place of a group's key, which is unique among all sites and spaces.
func placeOf(g *rules.AlertGroup) string { return site.Place{Home: g.Home, Key: g.Key}.String() }

// Ahead reports whether a record is a group that was stored when the clock was ahead.
func (r *Rulers) Ahead(record []byte, now time.Time) bool {
	g := groups.Decode(record)
	return g != nil && g.IsAhead(now)
}

// Kinds returns the kinds of groups and of their pieces.
func (r *Rulers) Kinds() []*outbox.Kind { return []*outbox.Kind{KindGroup, KindPiece} }

// Turn returns the turn of a group: one of its key.
func (r *Rulers) Turn(name queue.Hash, record []byte) string {
	if g := groups.Decode(record); g != nil {
		return outbox.Spread(name, placeOf(g))
	}
	return outbox.Spread(name, "")
}

// Origin is where alerts are posted to.
type Origin struct {
	Site  string // its ID
	Key   *site.Key
	Ruler *site.Ruler // of the site
}

// maxParallel is how many groups wait for the store at once, so that they share commits.
const maxParallel = 64

// Post stores alerts that a ruler has posted. If it returns nil, all alerts are stored, or kept in
// memory because they say nothing new.
func (r *Rulers) Post(ctx context.Context, at Origin, alerts []rules.RulerAlert) error {
	type posted struct {
		rules.AlertGroup
		posts []rules.RulerAlert
	}
	groups := map[string]*posted{}
	place := at.Key.Place(at.Site)
	for i := range alerts {
		name, labels := groupOf(&alerts[i], at.Ruler.GroupBy)
		p := groups[name]
		if p == nil {
			p = &posted{AlertGroup: rules.AlertGroup{Site: at.Site, Home: place.Home, Key: place.Key, Name: name, Labels: labels}}
			groups[name] = p
		}
		p.posts = append(p.posts, alerts[i])
	}
	u, err := r.beats.Uptime(ctx)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(maxParallel)
	for _, p := range groups {
		name := groupName(r.outbox, place.String(), p.Name)
		b, err := r.outbox.Queue.Records.Get(ctx, name)
		if err != nil {
			return errors.Join(err, all.Wait())
		}
		s, err := r.load(ctx, name, b)
		if err != nil {
			return errors.Join(err, all.Wait())
		}
		known := cmp.Or(s.AlertGroup, new(rules.AlertGroup))
		if r.keep(name, place.String(), known, u, p.posts, at.Ruler.Times) {
			continue
		}
		all.Go(func() error {
			r.forget(name, p.posts)
			defer r.groups.Note()
			left := 0
			err := r.change(ctx, name, place.String(), known.Grows(p.posts),
				func(g *rules.AlertGroup, u *rules.Uptime, now time.Time) *rules.AlertGroup {
					if g == nil {
						g = new(p.AlertGroup)
					}
					g.Site, g.Gone = at.Site, time.Time{}
					left = g.Post(now, u, p.posts, at.Ruler.Times)
					if len(g.Alerts) == 0 {
						return nil
					}
					return g
				})
			if err == nil && left > 0 {
				return message.Errorf(message.TooLarge,
					"the incident %s has so many alerts that %d of the request do not fit, and people are told without them; write group_by with a "+
						"label that tells them apart in from prometheus", markup.Printable(p.Name), left)
			}
			return err
		})
	}
	return all.Wait()
}

// groupOf returns the name of the incident of an alert, and the labels that the alerts of
// the incident share: alertname, and those that groupBy names.
func groupOf(a *rules.RulerAlert, groupBy []string) (name string, labels []string) {
	var by []string
	for pair := range slices.Chunk(a.Labels, 2) {
		if pair[0] == "alertname" {
			name = pair[1]
		} else if !slices.Contains(groupBy, pair[0]) {
			continue
		} else {
			by = append(by, fmt.Sprintf("%s=%q", pair[0], pair[1]))
		}
		labels = append(labels, pair...)
	}
	name = cmp.Or(name, "An alert without a name")
	if len(by) > 0 {
		name += "{" + strings.Join(by, ",") + "}"
	}
	return incidentName(name), labels
}

// incidentName returns text as the name of an incident.
func incidentName(text string) string {
	name, _, err := notifier.IncidentName(text)
	if err != nil {
		return notifier.HashIncidentName(text)
	}
	return name
}

// keep keeps posts in memory if they say nothing new about a group, and reports whether that is so.
func (r *Rulers) keep(name queue.Hash, place string, g *rules.AlertGroup, u *rules.Uptime, posts []rules.RulerAlert,
	times rules.GroupTimes,
) bool {
	until, ok := g.Repeats(r.outbox.Queue.Now(), u, posts)
	if !ok || until.IsZero() || !g.Gone.IsZero() {
		return ok && until.IsZero() && g.Gone.IsZero()
	}
	r.groups.Note()
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.repeats[name]
	if x == nil {
		x = &repeated{place: place, posts: map[string]rules.RulerAlert{}, until: until}
		r.repeats[name] = x
	}
	if until.Before(x.until) {
		x.until = until
	}
	x.times = times
	x.last = posts[0].At
	for _, p := range posts {
		x.posts[p.Fingerprint] = p
	}
	return true
}

// kept returns the posts about a group that are kept in memory.
func (r *Rulers) kept(name queue.Hash) (posts []rules.RulerAlert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.repeats[name]; x != nil {
		for _, p := range x.posts {
			posts = append(posts, p)
		}
	}
	return posts
}

// forget removes kept posts about a group after posts, which are the same or later, were stored. A
// kept post with a much later time came when the clock was ahead, and is removed, too.
func (r *Rulers) forget(name queue.Hash, posts []rules.RulerAlert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.repeats[name]
	if x == nil {
		return
	}
	for i := range posts {
		if p, ok := x.posts[posts[i].Fingerprint]; ok && (!p.At.After(posts[i].At) || queue.WrittenAhead(p.At, posts[i].At)) {
			delete(x.posts, posts[i].Fingerprint)
		}
	}
	if len(x.posts) == 0 {
		delete(r.repeats, name)
	}
}

// Refresh stores the kept posts of a group when half of the stored time has passed.
func (r *Rulers) Refresh(ctx context.Context, _ *outbox.Configuration) {
	r.groups.Look(ctx, r.outbox, r.groupsName)
	late := r.late(r.outbox.Queue.Now())
	if len(late) == 0 {
		return
	}
	var all errgroup.Group
	all.SetLimit(maxParallel)
	for name, x := range late {
		all.Go(func() error { return r.flush(ctx, name, x.place, x.times) })
	}
	if err := all.Wait(); err != nil {
		r.outbox.Log.Debug("repeated alerts cannot be stored now, and are stored later") // the queue has logged why
	}
}

// late returns the kept posts that have to be stored now.
func (r *Rulers) late(now time.Time) map[queue.Hash]repeated {
	r.mu.Lock()
	defer r.mu.Unlock()
	var late map[queue.Hash]repeated
	for name, x := range r.repeats {
		if x.until.After(now) && !queue.WrittenAhead(x.last, now) {
			continue
		}
		if late == nil {
			late = map[queue.Hash]repeated{}
		}
		late[name] = repeated{place: x.place, times: x.times}
	}
	return late
}

// flush stores the kept posts about a group. They are lost if the group is over; the ruler posts
// them again.
func (r *Rulers) flush(ctx context.Context, name queue.Hash, place string, times rules.GroupTimes) error {
	posts := r.kept(name)
	err := r.change(ctx, name, place, false, func(g *rules.AlertGroup, u *rules.Uptime, now time.Time) *rules.AlertGroup {
		if g != nil {
			g.Post(now, u, posts, times)
		}
		return g
	})
	if err == nil {
		r.forget(name, posts)
	}
	return err
}

// Any reports whether there is a group.
func (r *Rulers) Any(ctx context.Context) (bool, error) {
	return outbox.HasGroup(ctx, r.outbox.Queue, r.groupsName())
}

// Arm looks for groups when the queue is opened.
func (r *Rulers) Arm(ctx context.Context, _ *outbox.Configuration) error {
	return r.groups.Begin(ctx, r.outbox.Queue, r.groupsName())
}

// Punctual returns a function that reports whether there may be a group.
func (r *Rulers) Punctual(*outbox.Configuration) func() bool { return r.groups.May }

// Open returns the alerts of the key with a place that fire.
func (r *Rulers) Open(ctx context.Context, place site.Place) (open []rules.RulerAlert, err error) {
	u, _, err := r.beats.UptimeNow(ctx)
	if err != nil {
		return nil, err
	}
	now := r.outbox.Queue.Now()
	var failed error
	err = outbox.EachOfGroup(ctx, r.outbox.Queue, r.groupsName(), func(x queue.NamedRecord) bool {
		head := groups.Decode(x.Data)
		if head == nil || head.Home != place.Home || head.Key != place.Key {
			return true
		}
		var g *stored
		if g, failed = r.load(ctx, x.Name, x.Data); failed != nil {
			return false
		}
		if g.AlertGroup != nil {
			g.Post(now, u, r.kept(x.Name), rules.GroupTimes{})
			open = append(open, g.Open(now, u)...)
		}
		return true
	})
	return open, cmp.Or(err, failed)
}

// IsOpen reports whether a group has a record, so that its incident must not be forgotten. place is
// the place of its key.
func IsOpen(ctx context.Context, o *outbox.Outbox, place, name string) (bool, error) {
	b, err := o.Queue.Records.Get(ctx, groupName(o, place, name))
	return groups.Decode(b) != nil, err
}
