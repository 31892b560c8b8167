package alerting

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Silences are the silences of all keys. Those of a key are one record. The zero value is
// not usable; they are part of an [Engine].
type Silences struct {
	outbox  *outbox.Outbox
	records records
	lanes   *lanes
	cache   silenceCache
}

// Has reports whether the key with a place has silences, or may have some. It reads no
// record.
func (q *Silences) Has(place string) bool { return q.cache.has(place) }

// Any reports whether a key has a silence. It reads no record.
func (q *Silences) Any() bool { return q.cache.any() }

// changeSilences changes the silences of the key with a place. adds reports whether it
// adds one, which needs room in the queue. f may be called several times.
func (q *Silences) change(ctx context.Context, home, key string, adds bool, f func(now time.Time, s *rules.KeySilences) error) error {
	place := home + "\x00" + key
	var s *rules.KeySilences
	var before, version []byte
	names := []queue.Hash{q.records.silencesName(place), q.records.silencesVersion()}
	err := q.outbox.Queue.Apply(ctx, &queue.Ruled{Names: names, Adds: adds, Decide: func(old [][]byte, _ statusFunc) (*queue.RuledChange, error) {
		now, id := q.outbox.Queue.Now(), uuid.New()
		s = decodeSilences(old[0])
		s.Home, s.Key = home, key
		if err := f(now, s); err != nil {
			return nil, err
		}
		before, version = slices.Clone(old[1]), outbox.EncodeRecord(outbox.KindSilencesVersion, id[:])
		return &queue.RuledChange{Records: []queue.Record{q.records.silences(s, now), {Data: version, Due: now.AddDate(1, 0, 0)}}}, nil
	}})
	if err != nil {
		return err
	}
	begun, ok := q.cache.change(place, s.All, before, version)
	if begun {
		q.storeKnown(ctx, place)
	}
	if ok {
		return nil
	}
	if err := q.read(ctx); err != nil {
		q.cache.places.Store(nil) // they are read when the store answers
	}
	return nil
}

// MakeSilence adds a silence to those of a key.
func (q *Silences) Make(ctx context.Context, k *site.Key, siteID string, x rules.Silence) error {
	err := q.change(ctx, k.Home(siteID), k.Name, true, func(now time.Time, s *rules.KeySilences) error { return s.Add(now, x) })
	if err == nil {
		q.changed(silenceMade, k.Name, x)
	}
	return err
}

// EndSilence ends a silence of a key before its time. What it has held and is still open
// is told. If that takes too long, or the process ends, the rest is told later.
func (q *Silences) End(ctx context.Context, home, key string, id uuid.UUID, who string) (ended rules.Silence, err error) {
	err = q.change(ctx, home, key, false, func(now time.Time, s *rules.KeySilences) (err error) {
		ended, err = s.End(now, id)
		return err
	})
	if err != nil {
		return ended, err
	}
	by := ended
	by.Who = who
	q.changed(silenceEnded, key, by)
	if err := q.release(ctx, home, key); err != nil {
		q.outbox.Log.Warn("what a silence has held cannot be told now; it is tried again", zap.String("key", key), zap.Error(err))
	}
	return ended, nil
}

// SilencesAt returns the silences of a key that hold now.
func (q *Silences) At(ctx context.Context, place string) (rules.Silences, error) {
	b, err := q.outbox.Queue.CallersRecord(ctx, q.records.silencesName(place))
	if err != nil {
		return nil, err
	}
	active, _ := decodeSilences(b).All.Active(q.outbox.Queue.Now())
	return active, nil
}

// dueSilences removes the silences of a key that have ended.
func (q *Silences) due(ctx context.Context, data []byte) error {
	before := decodeSilences(data)
	if before.Key == "" {
		return nil
	}
	var ended rules.Silences
	err := q.change(ctx, before.Home, before.Key, false, func(now time.Time, s *rules.KeySilences) error {
		ended = s.Expire(now)
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range ended {
		x.Who = ""
		q.changed(silenceEnded, before.Key, x)
	}
	return q.release(ctx, before.Home, before.Key)
}

// releaseSilenced looks at all that silences of a key have held.
func (q *Silences) release(ctx context.Context, home, key string) error {
	place := home + "\x00" + key
	b, err := q.outbox.Queue.CallersRecord(ctx, q.records.silencesName(place))
	if err != nil {
		return err
	}
	before := decodeSilences(b).Ended
	group := q.records.silencedLanes(place)
	for after, more := (queue.Hash{}), true; more; {
		lanes, err := q.outbox.Queue.CallersGroup(ctx, group, after, outbox.SilencePage)
		if err != nil {
			return err
		}
		for _, lane := range lanes {
			after = lane.Name
			if err := q.lanes.release(ctx, lane.Name); err != nil {
				return err
			}
		}
		more = len(lanes) == outbox.SilencePage
	}
	return q.change(ctx, home, key, false, func(_ time.Time, s *rules.KeySilences) error {
		s.LookedAt(before)
		return nil
	})
}

// setSilences returns the rules of a destination with its silences, and sets what they
// match in the items of its lane.
func (q *Silences) apply(ctx context.Context, r *rules.Rules, lane *rules.Lane, t outbox.QueueTarget, siteID string) (*rules.Rules, error) {
	place := t.Key.Home(siteID) + "\x00" + t.Key.Name
	all, err := q.At(ctx, place)
	if err != nil || len(all) == 0 {
		return r, err
	}
	lane.Group = q.records.silencedLanes(place)
	for i := range lane.Items {
		m, release, err := q.outbox.Queue.Load(ctx, lane.Items[i].Job.Message)
		if _, damaged := errors.AsType[*queue.DamagedError](err); damaged || errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return r, err
		}
		var text queued.Text
		if text.Decode(m.Body) == nil {
			lane.Items[i].Incident, lane.Items[i].Title = text.Incident, text.Title
		}
		release()
	}
	return r.WithSilences(all.For(q.outbox.Queue.Now(), t.Target.Tags)), nil
}

// What happens to a silence.
const (
	silenceMade  = "made"
	silenceEnded = "ended"
)

// silenceChanged writes a line and emits an event about a silence.
func (q *Silences) changed(change, key string, s rules.Silence) {
	app := q.outbox.App.Load()
	app.Log.Info("silence "+change, zap.String("key", key), zap.String("silence", s.ID.String()), zap.Time("until", s.Until),
		zap.Bool("by_incident", s.Incident != ""), zap.String("tag", s.Tag), zap.Bool("by_title", s.Title != ""),
		zap.String("who", s.Who), zap.Int("messages", s.Count))
	app.Emit(event.Silence, func() map[string]any {
		return map[string]any{
			"key": key, "silence": s.ID.String(), "change": change, "until": s.Until.UTC().Format(time.RFC3339), "tag": s.Tag,
			"reason": s.Reason, "who": s.Who, "messages": s.Count,
		}
	})
}

// silencesOf returns the silences of the key that may keep the message of a delivery from
// one of its destinations. Those of a message about an incident are all of them, because
// the silence of an incident also holds for its later messages.
func (q *Silences) of(d *dispatch.Delivery) rules.Silences {
	all := q.cache.of(d)
	if len(all) == 0 || d.Key == "" || d.Source == site.SourceTest || d.Source == site.SourceFallback {
		return nil
	}
	now, m := q.outbox.Queue.Now(), d.Message
	active, _ := all.Active(now)
	if m.Incident.ID != "" {
		return active
	}
	for _, t := range d.To.Targets {
		if active.Match(now, m.Incident, m.Title, t.Tags) != nil {
			return active
		}
	}
	return nil
}
