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
func (s *Silences) Has(place string) bool { return s.cache.has(place) }

// Any reports whether a key has a silence. It reads no record.
func (s *Silences) Any() bool { return s.cache.any() }

// change changes the silences of the key with a place. adds reports whether it
// adds one, which needs room in the queue. f may be called several times.
func (s *Silences) change(ctx context.Context, home, key string, adds bool, f func(now time.Time, of *rules.KeySilences) error) error {
	place := home + "\x00" + key
	var of *rules.KeySilences
	var before, version []byte
	names := []queue.Hash{s.records.silencesName(place), s.records.silencesVersion()}
	err := s.outbox.Queue.Apply(ctx, &queue.Ruled{Names: names, Adds: adds, Decide: func(old [][]byte, _ statusFunc) (*queue.RuledChange, error) {
		now, id := s.outbox.Queue.Now(), uuid.New()
		of = decodeSilences(old[0])
		of.Home, of.Key = home, key
		if err := f(now, of); err != nil {
			return nil, err
		}
		before, version = slices.Clone(old[1]), outbox.EncodeRecord(outbox.KindSilencesVersion, id[:])
		return &queue.RuledChange{Records: []queue.Record{s.records.silences(of, now), {Data: version, Due: now.AddDate(1, 0, 0)}}}, nil
	}})
	if err != nil {
		return err
	}
	begun, ok := s.cache.change(place, of.All, before, version)
	if begun {
		s.storeKnown(ctx, place)
	}
	if ok {
		return nil
	}
	if err := s.read(ctx); err != nil {
		s.cache.places.Store(nil) // they are read when the store answers
	}
	return nil
}

// Make adds a silence to those of a key.
func (s *Silences) Make(ctx context.Context, k *site.Key, siteID string, x rules.Silence) error {
	err := s.change(ctx, k.Home(siteID), k.FirstName(), true, func(now time.Time, of *rules.KeySilences) error { return of.Add(now, x) })
	if err == nil {
		s.changed(silenceMade, k.Name, x)
	}
	return err
}

// End ends a silence of a key before its time. What it has held and is still open
// is told. If that takes too long, or the process ends, the rest is told later.
func (s *Silences) End(ctx context.Context, k *site.Key, siteID string, id uuid.UUID, who string) (ended rules.Silence, err error) {
	home, key := k.Home(siteID), k.FirstName()
	err = s.change(ctx, home, key, false, func(now time.Time, of *rules.KeySilences) (err error) {
		ended, err = of.End(now, id)
		return err
	})
	if err != nil {
		return ended, err
	}
	by := ended
	by.Who = who
	s.changed(silenceEnded, k.Name, by)
	if err := s.release(ctx, home, key); err != nil {
		s.outbox.Log.Warn("what a silence has held cannot be told now; it is tried again", zap.String("key", k.Name), zap.Error(err))
	}
	return ended, nil
}

// Until returns until when a silence matches an open incident; the zero time for none.
func (s *Silences) Until(ctx context.Context, x *rules.Incident) (until time.Time) {
	place := PlaceOfIncident(x)
	if !x.IsOpen() || !s.Has(place) {
		return until
	}
	all, err := s.At(ctx, place)
	if err != nil {
		return until
	}
	if m := all.MatchIncident(s.outbox.Queue.Now(), x, x.Tags); m != nil {
		until = m.Until
	}
	return until
}

// At returns the silences of a key that hold now.
func (s *Silences) At(ctx context.Context, place string) (rules.Silences, error) {
	b, err := s.outbox.Queue.CallersRecord(ctx, s.records.silencesName(place))
	if err != nil {
		return nil, err
	}
	active, _ := decodeSilences(b).All.Active(s.outbox.Queue.Now())
	return active, nil
}

// due removes the silences of a key that have ended.
func (s *Silences) due(ctx context.Context, data []byte) error {
	before := decodeSilences(data)
	if before.Key == "" {
		return nil
	}
	var ended rules.Silences
	err := s.change(ctx, before.Home, before.Key, false, func(now time.Time, of *rules.KeySilences) error {
		ended = of.Expire(now)
		return nil
	})
	if err != nil {
		return err
	}
	for _, x := range ended {
		x.Who = ""
		s.changed(silenceEnded, s.outbox.Engine.Load().NameOf(ctx, site.Place{Home: before.Home, Key: before.Key}), x)
	}
	return s.release(ctx, before.Home, before.Key)
}

// release looks at all that silences of a key have held.
func (s *Silences) release(ctx context.Context, home, key string) error {
	place := home + "\x00" + key
	b, err := s.outbox.Queue.CallersRecord(ctx, s.records.silencesName(place))
	if err != nil {
		return err
	}
	before := decodeSilences(b).Ended
	group := s.records.silencedLanes(place)
	for after, more := (queue.Hash{}), true; more; {
		lanes, err := s.outbox.Queue.CallersGroup(ctx, group, after, outbox.PageSize)
		if err != nil {
			return err
		}
		for _, lane := range lanes {
			after = lane.Name
			if err := s.lanes.release(ctx, lane.Name); err != nil {
				return err
			}
		}
		more = len(lanes) == outbox.PageSize
	}
	return s.change(ctx, home, key, false, func(_ time.Time, of *rules.KeySilences) error {
		of.LookedAt(before)
		return nil
	})
}

// apply returns the rules of a destination with its silences, and sets what they
// match in the items of its lane.
func (s *Silences) apply(ctx context.Context, r *rules.Rules, lane *rules.Lane, t outbox.QueueTarget, siteID string) (*rules.Rules, error) {
	place := t.Key.Place(siteID).String()
	all, err := s.At(ctx, place)
	if err != nil || len(all) == 0 {
		return r, err
	}
	lane.Group = s.records.silencedLanes(place)
	for i := range lane.Items {
		m, release, err := s.outbox.Queue.Load(ctx, lane.Items[i].Job.Message)
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
	return r.WithSilences(all.For(s.outbox.Queue.Now(), t.Target.Tags)), nil
}

// What happens to a silence.
const (
	silenceMade  = "made"
	silenceEnded = "ended"
)

// changed writes a line and emits an event about a silence.
func (s *Silences) changed(change, key string, x rules.Silence) {
	app := s.outbox.Engine.Load()
	app.Log.Info("silence "+change, zap.String("key", key), zap.String("silence", x.ID.String()), zap.Time("until", x.Until),
		zap.Bool("by_incident", x.Incident != ""), zap.String("tag", x.Tag), zap.Bool("by_title", x.Title != ""),
		zap.String("who", x.Who), zap.Int("messages", x.Count))
	app.Emit(event.Silence, func() map[string]any {
		return map[string]any{
			"key": key, "silence": x.ID.String(), "change": change, "until": x.Until.UTC().Format(time.RFC3339), "tag": x.Tag,
			"reason": x.Reason, "who": x.Who, "messages": x.Count,
		}
	})
}

// Of returns the silences of the key that may keep the message of a delivery from
// one of its destinations. Those of a message about an incident are all of them, because
// the silence of an incident also holds for its later messages.
func (s *Silences) Of(d *dispatch.Delivery) rules.Silences {
	all := s.cache.of(d)
	if len(all) == 0 || d.Key == "" || d.Source == site.SourceTest || d.Source == site.SourceFallback {
		return nil
	}
	now, m := s.outbox.Queue.Now(), d.Message
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
