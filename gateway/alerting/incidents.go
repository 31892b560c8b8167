package alerting

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Incidents are the incidents of all keys with rules, as they are stored. They are part of
// an [Engine].
type Incidents struct {
	outbox   *outbox.Outbox
	records  records
	memory   *memory
	silences *Silences
	sizes    groupSizes
	counts   incidentCounts
	weeks    weeks
}

// groupSizes remembers the sizes of the groups of records for a while, because each
// scrape of the metrics and each page of the console asks for them.
type groupSizes struct {
	mu    sync.Mutex
	sizes map[queue.Hash]int
	read  time.Time
}

// How long the sizes of groups are remembered, and how long reading them may take.
const (
	sizesFor     = 5 * time.Second
	sizesTimeout = 2 * time.Second
)

// get returns the sizes. If they cannot be read, it returns the last ones that were.
func (g *groupSizes) get(ctx context.Context, q *queue.Queue) map[queue.Hash]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.read.IsZero() || now.Sub(g.read) >= sizesFor || now.Before(g.read) {
		ctx, cancel := context.WithTimeout(ctx, sizesTimeout)
		defer cancel()
		if sizes, err := q.Records.GroupSizes(ctx); err == nil {
			g.sizes = sizes
		}
		g.read = now
	}
	return g.sizes
}

// incidentCounts are how many incidents are in each stage.
type incidentCounts struct {
	mu      sync.Mutex
	counts  map[notifier.IncidentState]int
	counted time.Time
}

// CountAll returns how many incidents are in each stage, of keys of the configuration and of saved
// keys with rules. It counts at most every few seconds, and reads no record.
func (i *Incidents) CountAll(ctx context.Context) map[notifier.IncidentState]int {
	c := &i.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !c.counted.IsZero() && now.Sub(c.counted) < sizesFor && !now.Before(c.counted) {
		return c.counts
	}
	c.counts, c.counted = map[notifier.IncidentState]int{}, time.Now()
	sizes := i.sizes.get(ctx, i.outbox.Queue)
	if len(sizes) == 0 {
		return c.counts
	}
	places, _ := Places(ctx, &i.outbox.Current().Directory, "") // without saved keys if they cannot be listed now
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		for _, stage := range rules.Stages {
			c.counts[stage] += sizes[i.records.incidentGroup(place, stage)]
		}
	}
	return c.counts
}

// Count returns how many incidents of the keys with these places are in a stage, as it was
// some seconds ago.
func (i *Incidents) Count(ctx context.Context, places []string, stage notifier.IncidentState) (n int, err error) {
	sizes, err := i.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return 0, err
	}
	for _, place := range places {
		n += sizes[i.records.incidentGroup(place, stage)]
	}
	return n, nil
}

// CountSilent returns how many open incidents of the keys with these places silences keep from every
// destination. It reads only incidents of keys with silences.
func (i *Incidents) CountSilent(ctx context.Context, places []string) (n int, err error) {
	silences := i.silences.reader()
	for _, place := range places {
		var last queue.Hash
		for more := silences.windows || i.silences.Has(place); more; {
			var page []StoredIncident
			if page, last, more, err = i.page(ctx, place, notifier.Open, last, listPage); err != nil {
				return n, err
			}
			for _, x := range page {
				silenced, err := silences.of(ctx, x.Incident)
				if err != nil {
					return n, err
				}
				if silenced.All() {
					n++
				}
			}
		}
	}
	return n, nil
}

// CountUnresolved returns how many incidents of the key with a place are not resolved now,
// at most most.
func (i *Incidents) CountUnresolved(ctx context.Context, place string, most int) (n int, err error) {
	for _, stage := range []notifier.IncidentState{notifier.Open, notifier.Acknowledged} {
		records, err := i.outbox.Queue.Records.Group(ctx, i.records.incidentGroup(place, stage), queue.Hash{}, most)
		if err != nil {
			return 0, err
		}
		n += len(records)
	}
	return min(n, most), nil
}

// StepReceipt is what is known of the receipt for the message of a step to a device.
type StepReceipt struct {
	Job     queued.Ruled // what the rules know of its job
	Message uuid.UUID
	Target  string // the hash of the destination
	Shown   bool   // the device has shown it; false if it did not confirm that in time
}

// NoteReceipt notes whether a device has confirmed the message of a step. If none of the
// step's destinations has the message, the next step begins.
func (i *Incidents) NoteReceipt(ctx context.Context, r StepReceipt) error {
	_, err := i.change(ctx, r.Job.Incident, func(c *incidentChange) (stays bool) {
		if c.incident != nil && c.incident.ID == r.Job.Opening {
			c.incident.Confirmed(c.now, r.Message, r.Target, r.Job.Step, r.Shown)
		}
		return c.incident != nil
	})
	return err
}

// tell emits the event for a change of an incident. by is who made it, or "".
func (i *Incidents) tell(conf *outbox.Configuration, what string, x *rules.Incident, by string) {
	if x.Source == site.SourceOwnEvent {
		return // a message about an event causes no other
	}
	key := conf.NameOfIncident(context.Background(), x)
	conf.Emit(event.Incident, func() map[string]any {
		return map[string]any{
			"change": what, "key": key, "source": x.Source, "incident": x.Name, "type": string(x.Type),
			"round": x.Escalation.Round, "step": x.Escalation.Step, "by": by,
		}
	})
	if what == event.IncidentExhausted {
		i.outbox.Log.Warn("nobody has acknowledged an incident, and no further step follows; what is told of it from now on begins with the "+
			"first step",
			zap.String("key", key), zap.String("incident", x.Name), zap.Int("rounds", x.Escalation.Round))
	}
}

// StoredIncident is an incident that was found, for the methods that change it.
type StoredIncident struct {
	name     queue.Hash      // of its record
	Incident *rules.Incident // as it was when it was read
}

// page returns at most n incidents in a stage of the key with a place, by the names of their
// records, after the record with the name after. more reports whether others follow after the
// record last.
func (i *Incidents) page(ctx context.Context, place string, stage notifier.IncidentState, after queue.Hash, n int) (out []StoredIncident,
	last queue.Hash, more bool, err error,
) {
	records, err := i.outbox.Queue.Records.Group(ctx, i.records.incidentGroup(place, stage), after, n)
	if err != nil {
		return nil, after, false, err
	}
	last = after
	for _, r := range records {
		last = r.Name
		if x := incidentRecords.Decode(r.Data); x != nil {
			out = append(out, StoredIncident{r.Name, x})
		}
	}
	return out, last, len(records) == n, nil
}

// State reports whether the incident of a message is open, and whether it is acknowledged. Only
// incidents of keys with rules are known.
func (i *Incidents) State(ctx context.Context, d *dispatch.Delivery) (open, acknowledged bool) {
	x := i.open(ctx, d.Place(), d.Message.Incident.ID)
	return x != nil, x != nil && x.IsAcknowledged()
}

// OpenFor returns how long the incident with an ID has been open in a place; 0 if it is not,
// or if that is not known.
func (i *Incidents) OpenFor(ctx context.Context, place, id string) time.Duration {
	x := i.open(ctx, place, id)
	if x == nil {
		return 0
	}
	return max(i.outbox.Queue.Now().Sub(x.Opened), 1)
}

// open returns the incident with an ID in a place if it is open, or nil.
func (i *Incidents) open(ctx context.Context, place, id string) *rules.Incident {
	b, err := i.outbox.Queue.Records.Get(ctx, i.records.incidentName(place, id))
	x := incidentRecords.Decode(b)
	if err != nil || x == nil || !x.IsOpen() {
		return nil
	}
	return x
}

// ByID returns the incident with a public ID, or [ErrNoIncident]. The ID of an earlier
// opening is none.
func (i *Incidents) ByID(ctx context.Context, id string) (*StoredIncident, error) {
	known := rules.IsIncidentID(id)
	b, err := i.outbox.Queue.Records.Get(ctx, i.records.incidentIDName(id))
	if err != nil {
		return nil, err
	}
	var name queue.Hash // an unknown ID is looked up like a known one, so that it takes as long
	if len(b) == 1+len(name) && outbox.KindOf(b) == KindIncidentID {
		copy(name[:], b[1:])
	}
	if b, err = i.outbox.Queue.Records.Get(ctx, name); err != nil {
		return nil, err
	}
	x := incidentRecords.Decode(b)
	if !known || x == nil || x.ID != id {
		return nil, ErrNoIncident
	}
	return &StoredIncident{name, x}, nil
}

// Find returns the incident with a public ID, if it belongs to a key of the site s. The error is a
// [*message.Error]: [ErrNoIncident] if there is none.
func (i *Incidents) Find(ctx context.Context, id string, s *site.Site, siteID string) (*StoredIncident, error) {
	x, err := i.ByID(ctx, id)
	if err == nil && !BelongsTo(ctx, x.Incident, s, siteID) {
		err = ErrNoIncident
	}
	return x, outbox.QueueError(err)
}

// BelongsTo reports whether an incident belongs to a key of the site s. It does not if saved keys
// cannot be read.
func BelongsTo(ctx context.Context, x *rules.Incident, s *site.Site, siteID string) bool {
	k, err := s.KeyAt(ctx, site.Place{Home: x.Home, Key: x.Key}, siteID)
	return err == nil && k != nil
}

// OfMessage returns the incident that a message of the queue is about, or nil if
// there is none, if it is forgotten, or if it was opened anew later.
func (i *Incidents) OfMessage(ctx context.Context, m *queue.Message) *rules.Incident {
	var s queued.Summary
	if s.Decode(m.Summary) != nil || s.Known == "" {
		return nil
	}
	b, err := i.outbox.Queue.Records.Get(ctx, i.outbox.Queue.Hash("incident\x00"+s.Known))
	if err != nil {
		return nil // the message can be shown without it
	}
	if x := incidentRecords.Decode(b); x != nil && !m.Created.Before(x.Opened) {
		return x
	}
	return nil
}

// dueID removes the record that maps a public ID when its incident is gone.
func (i *Incidents) dueID(ctx context.Context, name queue.Hash, data []byte) error {
	var incident queue.Hash
	copy(incident[:], data[1:])
	return i.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name, incident}, Decide: func(tx *queue.Tx) error {
		x := incidentRecords.Get(tx, incident)
		if x == nil || i.records.incidentIDName(x.ID) != name {
			tx.Delete(name)
			return nil
		}
		due := i.outbox.Queue.Now().Add(i.outbox.Queue.Keep())
		tx.Put(name, incidentIDRecord(incident, i.records.subjectGroup(PlaceOfIncident(x)), due))
		return nil
	}})
}
