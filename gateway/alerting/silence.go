package alerting

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Silences are the silences of all keys. Each key has one record with its silences. The zero value is
// not usable; they are part of an [Engine].
type Silences struct {
	outbox  *outbox.Outbox
	records records
	lanes   *lanes
	cache   silenceCache
	usage   *outbox.Usage
}

// Now returns the time by which silences begin and end.
func (s *Silences) Now() time.Time { return s.outbox.Queue.Now() }

// Has reports whether the key with a place has silences, or may have some. It reads no
// record.
func (s *Silences) Has(place string) bool { return s.cache.has(place) }

// silencedKey is a key whose silences change, with the ID of a site that has it.
type silencedKey struct {
	site.Place
	site string
}

// silencedAt returns a key of the site with an ID.
func silencedAt(k *site.Key, siteID string) silencedKey { return silencedKey{k.Place(siteID), siteID} }

// silenceChange is a change of the silences of a key.
type silenceChange struct {
	silences *Silences
	at       silencedKey
	change   func(now time.Time, of *rules.KeySilences) error

	of              *rules.KeySilences // after the change
	before, version []byte             // see KindSilencesVersion
}

// newChange returns a change of the silences of a key. f may be called several times.
func (s *Silences) newChange(at silencedKey, f func(now time.Time, of *rules.KeySilences) error) *silenceChange {
	return &silenceChange{silences: s, at: at, change: f}
}

// ruled returns the change for the queue. adds reports whether it adds a silence, which needs
// room in the queue.
func (c *silenceChange) ruled(adds bool) *queue.Ruled {
	s := c.silences
	name, version := s.records.silencesName(c.at.String()), s.records.silencesVersion()
	return s.usage.Ruled(c.at.String(), adds, &queue.Ruled{Names: []queue.Hash{name, version}, Adds: adds, Decide: func(tx *queue.Tx) error {
		now, id := s.outbox.Queue.Now(), uuid.New()
		c.of = silencesRecords.GetOrNew(tx, name)
		c.of.Home, c.of.Key, c.of.Site = c.at.Home, c.at.Key, c.at.site
		if err := c.change(now, c.of); err != nil {
			return err
		}
		c.before, c.version = slices.Clone(tx.Get(version)), outbox.EncodeRecord(KindSilencesVersion, id[:])
		s.records.putSilences(tx, name, c.of, now)
		tx.Put(version, queue.Record{Data: c.version, Due: now.AddDate(1, 0, 0)})
		return nil
	}})
}

// done takes over the change, which is stored.
func (c *silenceChange) done(ctx context.Context, conf *outbox.Configuration) {
	s := c.silences
	if !s.cache.change(c.at.String(), c.of.All, c.before, c.version) {
		if err := s.read(ctx); err != nil {
			s.cache.places.Store(nil) // they are read when the store answers
		}
	}
	s.storeNear(ctx, conf)
}

// change changes the silences of a key. adds reports whether it adds one, which needs room in
// the queue. f may be called several times.
func (s *Silences) change(ctx context.Context, conf *outbox.Configuration, at silencedKey, adds bool,
	f func(now time.Time, of *rules.KeySilences) error,
) error {
	c := s.newChange(at, f)
	if err := s.outbox.Apply(ctx, c.ruled(adds)); err != nil {
		return err
	}
	c.done(ctx, conf)
	return nil
}

// silenceError returns the error for who asks for a change of silences.
func silenceError(err error) error {
	switch {
	case errors.Is(err, rules.ErrNoSilence):
		return ErrNoSilence
	case errors.Is(err, rules.ErrTooManySilences), errors.Is(err, rules.ErrWindowSilence), errors.Is(err, rules.ErrWindowLonger):
		return &message.Error{Kind: message.Conflict, Err: err}
	case errors.Is(err, rules.ErrNotLonger), errors.Is(err, rules.ErrTooLong):
		return &message.Error{Kind: message.Invalid, Err: err}
	}
	return outbox.QueueError(err)
}

// Check returns an error if a silence concerns no destination of a key.
func (s *Silences) Check(k *site.Key, x *rules.Silence) error {
	if x.Tag == "" || strings.EqualFold(x.Tag, rules.AllTags) {
		return nil
	}
	return k.CheckTag(x.Tag)
}

// Make adds a silence to a key, also if who asks for it goes away. The error is a [*message.Error].
func (s *Silences) Make(ctx context.Context, k *site.Key, siteID string, x rules.Silence) error {
	ctx, conf := context.WithoutCancel(ctx), s.outbox.Current()
	if err := s.Check(k, &x); err != nil {
		return err
	}
	if err := s.change(ctx, conf, silencedAt(k, siteID), true,
		func(now time.Time, of *rules.KeySilences) error { return of.Add(now, x) }); err != nil {
		return silenceError(err)
	}
	s.changed(conf, silenceMade, k.Name, x)
	return nil
}

// End ends a silence of a key early, possibly before it begins, also if who asks for it goes away.
// What it has held and is still open is told. If that takes too long, or the process ends, the rest
// is told later. The error is [ErrNoSilence] or another [*message.Error].
func (s *Silences) End(ctx context.Context, k *site.Key, siteID string, id uuid.UUID, who string) (x rules.Silence, err error) {
	ctx, conf, at := context.WithoutCancel(ctx), s.outbox.Current(), silencedAt(k, siteID)
	planned := false
	err = s.change(ctx, conf, at, false, func(now time.Time, of *rules.KeySilences) (err error) {
		x, err = of.End(now, id, k.SilenceWindows())
		planned = x.Planned(now)
		return err
	})
	if err != nil {
		return x, silenceError(err)
	}
	by := x
	by.Who = who
	switch {
	case planned:
		s.changed(conf, silenceCancelled, k.Name, by)
		return x, nil
	case x.Tell && x.Begun:
		err = s.tell(ctx, conf, at, ended{id, who})
	default:
		s.changed(conf, silenceEnded, k.Name, by)
	}
	if err = errors.Join(err, s.release(ctx, conf, at)); err != nil {
		s.outbox.Log.Warn("what a silence has held cannot be told now; it is tried again", zap.String("key", k.Name), zap.Error(err))
	}
	return x, nil
}

// Extend lets a silence of a key last longer, also if who asks for it goes away. until returns the
// new end for the present one. The error is [ErrNoSilence] or another [*message.Error].
func (s *Silences) Extend(ctx context.Context, k *site.Key, siteID string, id uuid.UUID, who string,
	until func(end time.Time) time.Time,
) (x rules.Silence, err error) {
	ctx, conf, at := context.WithoutCancel(ctx), s.outbox.Current(), silencedAt(k, siteID)
	err = s.change(ctx, conf, at, false, func(now time.Time, of *rules.KeySilences) (err error) {
		end := now
		if found := of.All.ByID(id); found != nil {
			end = found.Until
		}
		x, err = of.Extend(now, id, until(end), k.SilenceWindows())
		return err
	})
	if err != nil {
		return x, silenceError(err)
	}
	by := x
	by.Who = who
	s.changed(conf, silenceExtended, k.Name, by)
	return x, nil
}

// resolved ends the silences that last until an incident is resolved, because a person has resolved
// it, also if who did so goes away.
func (s *Silences) resolved(ctx context.Context, x *rules.Incident) {
	if !s.Has(PlaceOfIncident(x)) {
		return
	}
	at := silencedKey{site.Place{Home: x.Home, Key: x.Key}, x.Site}
	err := s.change(context.WithoutCancel(ctx), s.outbox.Current(), at, false, func(now time.Time, of *rules.KeySilences) error {
		if !of.Resolve(now, notifier.Incident{Name: x.Name, ID: x.Derived}) {
			return errSameSilences
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSameSilences) {
		s.outbox.Log.Warn("silences of an incident that is resolved cannot be ended; end them on the page of silences", zap.String("key", x.Key),
			zap.Error(err))
	}
}

// Silenced is what silences keep back of an incident.
type Silenced struct {
	Until time.Time         // when the first of them ends; zero for none
	Ends  bool              // it ends when the incident is resolved, and at Until at the latest
	Only  []notifier.Target // the destinations that are not told; none if no destination is
	Next  bool              // nobody of the step that begins next is told then
}

// Names returns the names of the destinations that are not told; none if no destination is.
func (s *Silenced) Names() (names []string) {
	for _, t := range s.Only {
		names = append(names, t.Name())
	}
	return names
}

// All reports whether no destination is told.
func (s *Silenced) All() bool { return !s.Until.IsZero() && len(s.Only) == 0 }

// NextStep returns the number of the step of an incident that tells somebody next, and when it
// begins. It returns 0 if none follows, or if silences keep it back.
func (s *Silenced) NextStep(x *rules.Incident) (step int, at time.Time) {
	if step, at = x.Escalation.NextStep(); s.Next || s.All() && !at.After(s.Until) {
		return 0, time.Time{}
	}
	return step, at
}

// Keeps reports whether a destination is not told of a step that begins at a time. url is its URL as
// it is shown.
func (s *Silenced) Keeps(url string, at time.Time) bool {
	return !at.After(s.Until) && (s.All() || slices.ContainsFunc(s.Only, func(t notifier.Target) bool { return t.String() == url }))
}

// Of returns what silences keep back of an open incident.
func (s *Silences) Of(ctx context.Context, x *rules.Incident) (Silenced, error) {
	return s.reader().of(ctx, x)
}

// silenceReader reads the silences of each key once, for a list of incidents.
type silenceReader struct {
	silences *Silences
	dir      *site.Directory
	windows  bool // a key has silences in the configuration
	keys     map[string]keySilences
}

// keySilences are the silences of a key that hold now.
type keySilences struct {
	key     *site.Key
	holding rules.Silences
}

func (s *Silences) reader() *silenceReader {
	dir := &s.outbox.Current().Directory
	return &silenceReader{s, dir, hasSilenceWindows(dir), map[string]keySilences{}}
}

// ofKey returns the silences of the key of an incident; none if it is gone.
func (r *silenceReader) ofKey(ctx context.Context, x *rules.Incident) (k keySilences, err error) {
	place := PlaceOfIncident(x)
	k, ok := r.keys[place]
	if ok {
		return k, nil
	}
	if k.key, _, err = r.dir.KeyOfIncident(ctx, x); err == nil && k.key != nil {
		k.holding, err = r.silences.At(ctx, place, k.key.SilenceWindows())
	}
	if err == nil {
		r.keys[place] = k
	}
	return k, err
}

// of is [Silences.Of].
func (r *silenceReader) of(ctx context.Context, x *rules.Incident) (out Silenced, err error) {
	if !x.IsOpen() || !r.windows && !r.silences.Has(PlaceOfIncident(x)) {
		return out, nil
	}
	k, err := r.ofKey(ctx, x)
	if err != nil || len(k.holding) == 0 {
		return out, err
	}
	now := r.silences.outbox.Queue.Now()
	next, at := x.Escalation.NextStep()
	loud := false
	out.Next = next > 0
	for _, t := range k.key.Targets {
		if !isToldOf(x, t) {
			continue
		}
		m := k.holding.MatchIncident(now, x, t.Tags)
		if m == nil {
			loud = true
		} else if out.Only = append(out.Only, t); out.Until.IsZero() || m.Until.Before(out.Until) {
			out.Until, out.Ends = m.Until, m.UntilResolved
		}
		if rules.StepOf(t.Tags) == next && (m == nil || m.Until.Before(at)) {
			out.Next = false
		}
	}
	if !loud {
		out.Only = nil
	}
	out.Next = out.Next && !out.Until.IsZero()
	return out, nil
}

// isToldOf reports whether a destination of the key of an incident is one of those that are told
// of it.
func isToldOf(x *rules.Incident, t notifier.Target) bool {
	if len(t.Tags) == 0 && len(x.Escalation.Targets) == 0 {
		return true
	}
	hash := t.Hash()
	return slices.ContainsFunc(x.Escalation.Targets, func(s rules.StepTarget) bool { return s.Hash == hash }) ||
		slices.ContainsFunc(t.Tags, func(tag string) bool {
			_, name := notifier.SplitTag(tag)
			return slices.Contains(x.Tags, name)
		})
}

// all returns the silences in the record of the key with a place.
func (s *Silences) all(ctx context.Context, place string) (rules.Silences, error) {
	b, err := s.outbox.Queue.Records.Get(ctx, s.records.silencesName(place))
	if err != nil {
		return nil, err
	}
	return silencesRecords.DecodeOrNew(b).All, nil
}

// At returns the silences of the key with a place that hold now. windows are its windows in the
// configuration.
func (s *Silences) At(ctx context.Context, place string, windows []rules.SilenceWindow) (holding rules.Silences, err error) {
	all, err := s.all(ctx, place)
	if err != nil {
		return nil, err
	}
	now := s.outbox.Queue.Now()
	return all.WithWindows(now, windows).Holding(now), nil
}

// List returns the silences of the key with a place that hold now or are planned. Each window of
// the key has one: the present one, or else the next one.
func (s *Silences) List(ctx context.Context, place string, windows []rules.SilenceWindow) (rules.Silences, error) {
	all, err := s.all(ctx, place)
	return all.Listed(s.outbox.Queue.Now(), windows), err
}

// hasSilenceWindows reports whether a key has silences in the configuration.
func hasSilenceWindows(dir *site.Directory) bool {
	return slices.ContainsFunc(dir.All(), func(s *site.Site) bool {
		for _, k := range s.Keys {
			if len(k.SilenceWindows()) > 0 {
				return true
			}
		}
		return len(s.Saved.Rules.SilenceWindows()) > 0
	})
}

// arm takes over the silences of windows in the configuration, and ends silences whose window is
// gone.
func (s *Silences) arm(ctx context.Context, conf *outbox.Configuration) error {
	if s.cache.places.Load() == nil {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	dir := &conf.Directory
	armed := map[site.Place]bool{}
	for _, x := range dir.All() {
		for _, k := range x.Keys {
			siteID := ""
			if k.OfSite {
				siteID = dir.SiteID(x)
			}
			at := silencedAt(k, siteID)
			if armed[at.Place] || k.Unqueued || len(k.SilenceWindows()) == 0 && !s.cache.hasWindows(at.String()) {
				continue
			}
			armed[at.Place] = true
			if err := s.arrange(ctx, conf, at, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// errSameSilences is returned when the silences of windows are as they were.
var errSameSilences = errors.New("the silences of the configuration have not changed")

// arrange is arm for one key.
func (s *Silences) arrange(ctx context.Context, conf *outbox.Configuration, at silencedKey, k *site.Key) error {
	err := s.change(ctx, conf, at, false, func(now time.Time, of *rules.KeySilences) error {
		if !of.Arrange(now, k.SilenceWindows()) {
			return errSameSilences
		}
		return nil
	})
	if errors.Is(err, errSameSilences) {
		return nil
	}
	return err
}

// in returns the key in a configuration, and a site that has it; nil if it is gone.
func (k silencedKey) in(ctx context.Context, conf *outbox.Configuration) (*site.Key, *site.Site, error) {
	return conf.KeyOfIncident(ctx, &rules.Incident{Site: k.site, Home: k.Home, Key: k.Key})
}

// due notes and tells that silences of a key have begun or ended.
func (s *Silences) due(ctx context.Context, conf *outbox.Configuration, data []byte) error {
	before := silencesRecords.DecodeOrNew(data)
	if before.Key == "" {
		return nil
	}
	at := silencedKey{site.Place{Home: before.Home, Key: before.Key}, before.Site}
	if siteID, ok := strings.CutPrefix(at.Home, "site "); ok {
		at.site = siteID // an earlier version has not stored it
	}
	if before.IsAhead(s.outbox.Queue.Now()) {
		return s.change(ctx, conf, at, false, func(now time.Time, of *rules.KeySilences) error {
			of.MoveBack(now)
			return nil
		})
	}
	k, _, err := at.in(ctx, conf)
	if err == nil {
		err = s.tell(ctx, conf, at, ended{})
	}
	if err != nil {
		return err
	}
	var begun, over rules.Silences
	err = s.change(ctx, conf, at, false, func(now time.Time, of *rules.KeySilences) error {
		if k == nil {
			of.TellNobody()
		}
		begun, over = of.Begin(now), of.Expire(now)
		if k != nil && !k.Saved { // a saved key has a record while something is silent
			of.Renew(now, k.SilenceWindows())
		}
		return nil
	})
	if err != nil {
		return err
	}
	name := conf.NameOf(ctx, at.Place)
	for _, x := range begun {
		s.changed(conf, silenceBegun, name, x)
	}
	for _, x := range over {
		x.Who = ""
		s.changed(conf, silenceEnded, name, x)
	}
	return s.release(ctx, conf, at)
}

// release looks at all that silences of a key have held, if one has ended.
func (s *Silences) release(ctx context.Context, conf *outbox.Configuration, at silencedKey) error {
	b, err := s.outbox.Queue.Records.Get(ctx, s.records.silencesName(at.String()))
	if err != nil {
		return err
	}
	before := silencesRecords.DecodeOrNew(b).Ended
	if before.IsZero() {
		return nil
	}
	if err := s.eachIn(ctx, s.records.silencedLanes(at.String()), func(lane queue.NamedRecord) error {
		return s.lanes.release(ctx, conf, lane.Name)
	}); err != nil {
		return err
	}
	return s.change(ctx, conf, at, false, func(_ time.Time, of *rules.KeySilences) error {
		of.LookedAt(before)
		return nil
	})
}

// apply adds the silences of a destination to its rules, and sets what they match in the items of
// its lane. If the end of a silence has to be told, apply tells it first, with what the silence has
// held.
func (s *Silences) apply(ctx context.Context, conf *outbox.Configuration, r *rules.Rules, lane *rules.Lane, t outbox.QueueTarget,
	siteID string,
) (*rules.Rules, error) {
	at := silencedAt(t.Key, siteID)
	all, err := s.all(ctx, at.String())
	if err != nil {
		return r, err
	}
	now := s.outbox.Queue.Now()
	if _, over := (&rules.KeySilences{All: all}).Untold(now); over {
		if err := s.tell(ctx, conf, at, ended{}); err != nil {
			return r, err
		}
	}
	holding := all.WithWindows(now, t.Key.SilenceWindows()).Holding(now)
	if len(holding) == 0 {
		return r, nil
	}
	lane.Group = s.records.silencedLanes(at.String())
	for i := range lane.Items {
		text, err := s.textOf(ctx, lane.Items[i].Job.Message)
		if err != nil {
			return r, err
		}
		if text != nil {
			lane.Items[i].Incident, lane.Items[i].Title = text.Incident, text.Title
		}
	}
	return r.WithSilences(holding.For(now, t.Target.Tags)), nil
}

// What happens to a silence.
const (
	silenceMade      = "made"
	silenceBegun     = "begun"
	silenceExtended  = "extended"
	silenceEnded     = "ended"
	silenceCancelled = "cancelled" // before it has begun
)

// changed logs a change of a silence and emits an event about it.
func (s *Silences) changed(conf *outbox.Configuration, change, key string, x rules.Silence) {
	conf.Log.Info("silence "+change, zap.String("key", key), zap.String("silence", x.ID.String()), zap.Time("from", x.Begins()),
		zap.Time("until", x.Until),
		zap.Bool("by_incident", x.Incident != ""), zap.String("tag", x.Tag), zap.Bool("by_title", x.Title != ""),
		zap.String("who", x.Who), zap.Int("messages", x.Count))
	conf.Emit(event.Silence, func() map[string]any {
		return map[string]any{
			"key": key, "silence": x.ID.String(), "change": change, "from": x.Begins().UTC().Format(time.RFC3339),
			"until": x.Until.UTC().Format(time.RFC3339), "tag": x.Tag,
			"reason": x.Reason, "who": x.Who, "messages": x.Count,
		}
	})
}

// Concerning returns the silences of the key that may keep the message of a delivery from one of
// its destinations. For a message about an incident it returns all, because the silence of an
// incident also holds for its later messages. Some may only hold in a minute: until then, what
// destinations know of the incident is stored.
func (s *Silences) Concerning(d *dispatch.Delivery) rules.Silences {
	all, windows := s.cache.of(d), d.Rules.SilenceWindows()
	if len(all)+len(windows) == 0 || d.Key == "" || d.Source == site.SourceTest || d.Source == site.SourceFallback {
		return nil
	}
	now, m := s.outbox.Queue.Now(), d.Message
	near := all.Near(now, windows)
	if m.Incident.ID != "" {
		return near
	}
	for _, t := range d.To.Targets {
		if near.Match(now, m.Incident, m.Title, t.Tags) != nil {
			return near
		}
	}
	return nil
}

// matching reports for each target of a message whether a silence keeps the message from it now.
func (s *Silences) matching(d *dispatch.Delivery, silences rules.Silences) []bool {
	silent := make([]bool, len(d.To.Targets))
	for i, t := range d.To.Targets {
		silent[i] = silences.Match(s.outbox.Queue.Now(), d.Message.Incident, d.Message.Title, t.Tags) != nil
	}
	return silent
}

// Keeps reports whether a silence keeps the message of a delivery from one of its targets.
func (s *Silences) Keeps(d *dispatch.Delivery, t notifier.Target) bool {
	m := d.Message
	return s.Concerning(d).Match(s.outbox.Queue.Now(), m.Incident, m.Title, t.Tags) != nil
}

// silenceCache has the silences of all keys, so that a message to a key without one costs
// no more than a look at it. Where the store is shared, it is read anew each second.
type silenceCache struct {
	places atomic.Pointer[map[string]rules.Silences] // nil before it was read

	mu      sync.Mutex      // held while it is read
	version []byte          // of what was read; see KindSilencesVersion
	near    map[string]bool // the places of keys with a silence that holds, or will in a minute

	isNear atomic.Bool  // there are some
	look   atomic.Int64 // nanoseconds of the time at which there may be others; 0 for never
}

// change takes over a change that this gateway has made of the silences of the key with a place.
// The change has replaced a version of all silences by another. ok is false if a change of another
// gateway came between; then all silences have to be read.
func (c *silenceCache) change(place string, silences rules.Silences, before, version []byte) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.places.Load()
	if known == nil || !slices.Equal(c.version, before) {
		return false
	}
	all := maps.Clone(*known)
	if all[place] = silences; len(silences) == 0 {
		delete(all, place)
	}
	c.version = version
	c.store(all)
	return true
}

// store stores the silences of all keys.
func (c *silenceCache) store(all map[string]rules.Silences) {
	c.places.Store(&all)
	c.look.Store(1)
}

// newlyNear returns the places of keys that since the last call have got a silence which holds or
// will in a minute.
func (c *silenceCache) newlyNear(now time.Time) (places []string) {
	if look := c.look.Load(); look == 0 || now.UnixNano() < look {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all, near, next := c.places.Load(), map[string]bool{}, time.Time{}
	if all == nil {
		return nil
	}
	for place, silences := range *all {
		isNear, at := silences.NextNear(now)
		if isNear {
			near[place] = true
			if !c.near[place] {
				places = append(places, place)
			}
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	c.near = near
	c.isNear.Store(len(near) > 0)
	if c.look.Store(0); !next.IsZero() {
		c.look.Store(next.UnixNano())
	}
	return places
}

// of returns the silences of the key of a delivery.
func (c *silenceCache) of(d *dispatch.Delivery) rules.Silences {
	all := c.places.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	return (*all)[d.Place()]
}

// has reports whether the key with a place has silences, or may have some.
func (c *silenceCache) has(place string) bool {
	all := c.places.Load()
	return all == nil || len((*all)[place]) > 0
}

// hasWindows reports whether the key with a place has a silence of a window.
func (c *silenceCache) hasWindows(place string) bool {
	all := c.places.Load()
	return all != nil && slices.ContainsFunc((*all)[place], func(x rules.Silence) bool { return x.Window != uuid.UUID{} })
}

// Refresh reads the silences that other gateways may have changed.
func (s *Silences) Refresh(ctx context.Context, conf *outbox.Configuration) {
	if s.outbox.Shared || s.cache.places.Load() == nil {
		if err := s.read(ctx); err != nil && s.cache.places.Load() == nil && ctx.Err() == nil {
			s.outbox.Log.Debug("silences cannot be read yet", zap.Error(err))
		}
	}
	s.storeNear(ctx, conf)
}

// storeNear stores what the destinations of a key know if a silence of the key holds now or will in
// a minute.
func (s *Silences) storeNear(ctx context.Context, conf *outbox.Configuration) {
	for _, place := range s.cache.newlyNear(s.outbox.Queue.Now()) {
		s.storeKnown(ctx, conf, place)
	}
}

// read reads the silences if they have changed.
func (s *Silences) read(ctx context.Context) error {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	version, err := s.outbox.Queue.Records.Get(ctx, s.records.silencesVersion())
	if err != nil || s.cache.places.Load() != nil && slices.Equal(version, s.cache.version) {
		return err
	}
	all := map[string]rules.Silences{}
	if err := s.eachIn(ctx, s.records.silencesGroup(), func(r queue.NamedRecord) error {
		if x := silencesRecords.DecodeOrNew(r.Data); len(x.All) > 0 {
			all[x.Home+"\x00"+x.Key] = x.All
		}
		return nil
	}); err != nil {
		return err
	}
	s.cache.version = version
	s.cache.store(all)
	return nil
}
