package alerting

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// memory is what rules remember of keys: incidents, and what destinations know of them and
// of other messages. It forgets what matters no more.
type memory struct {
	outbox   *outbox.Outbox
	records  records
	silences *Silences
}

// remembered is a record that may be forgotten.
type remembered struct {
	name queue.Hash
	id   string    // the public ID of an incident; "" for what a destination knows
	at   time.Time // when something was heard of it last
	size int64

	// Somebody takes care of the incident, or it is silenced. It is forgotten all the same.
	lasts bool
}

// each calls f with each record of a group, until it returns an error.
func (m *memory) each(ctx context.Context, group queue.Hash, f func(queue.NamedRecord) error) error {
	var after queue.Hash
	for {
		page, err := m.outbox.Queue.Records.Group(ctx, group, after, sharePage)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := f(r); err != nil {
				return err
			}
		}
		if len(page) < sharePage {
			return nil
		}
		after = page[len(page)-1].Name
	}
}

// waiting is what keeps incidents of a key from being forgotten.
type waiting struct {
	memory   *memory
	now      time.Time
	silences rules.Silences
	key      *site.Key       // nil if it is gone
	held     map[string]bool // the subjects of messages that rules hold
}

// whatWaits returns what is under way about incidents of the key of x.
func (m *memory) whatWaits(ctx context.Context, x *rules.Incident) (w *waiting, err error) {
	w = &waiting{memory: m, now: m.outbox.Queue.Now(), held: map[string]bool{}}
	place := PlaceOfIncident(x)
	if w.key, _, err = m.outbox.Current().KeyOfIncident(ctx, x); err != nil {
		return nil, err
	}
	if w.silences, err = m.silences.At(ctx, place, w.key.SilenceWindows()); err != nil || w.key == nil {
		return w, err
	}
	for _, t := range w.key.Targets {
		b, err := m.outbox.Queue.Records.Get(ctx, m.records.laneName(place+t.Policy().Key(), site.DestinationName(t, w.key.Limits)))
		if err != nil {
			return nil, err
		}
		for _, o := range decodeLane(b).Items {
			w.held[o.Subject] = true
		}
	}
	return w, nil
}

// quiet reports whether nothing is under way about an incident: nobody will be told, nobody
// takes care of it, and no silence matches it.
func (w *waiting) quiet(x *rules.Incident) bool {
	return IsQuiet(x) && !(x.IsOpen() && w.silences.MatchIncident(w.now, x, x.Tags) != nil) && !w.holds(x)
}

// holds reports whether rules hold a message about an incident.
func (w *waiting) holds(x *rules.Incident) bool {
	return len(w.held) > 0 && w.key != nil && slices.ContainsFunc(w.memory.subjectsOf(x, w.key), func(name queue.Hash) bool { return w.held[string(name[:])] })
}

// subjectsOf returns the names of the records of what the destinations of a key know of an
// incident.
func (m *memory) subjectsOf(x *rules.Incident, k *site.Key) (names []queue.Hash) {
	for _, t := range k.Targets {
		names = append(names, m.records.knowledgeName(x, k, t))
	}
	return names
}

// recordsOf returns the records of an incident and of what the destinations of its key know
// of it. k is the key, or nil if it is gone.
func (m *memory) recordsOf(x *StoredIncident, k *site.Key) []remembered {
	records := []remembered{{name: x.name, id: x.Incident.ID, at: x.Incident.Changed}}
	if k != nil && x.Incident.Derived != "" {
		for _, name := range m.subjectsOf(x.Incident, k) {
			records = append(records, remembered{name: name, at: m.outbox.Queue.Now()})
		}
	}
	return records
}

// forget forgets those of the records of which nothing has been heard since they were read,
// and about which nothing is under way. It returns them.
func (m *memory) forget(ctx context.Context, batch []remembered) (gone []remembered, err error) {
	var names, ids []queue.Hash
	for _, r := range batch {
		names = append(names, r.name)
		if r.id != "" {
			ids = append(ids, m.records.incidentIDName(r.id))
		}
	}
	names = append(names, ids...)
	err = m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: names, DecideOld: func(old [][]byte, status queue.StatusFunc) (*queue.RuledChange, error) {
		gone = gone[:0]
		c := &queue.RuledChange{Records: make([]queue.Record, len(names))}
		id := len(batch)
		for i, r := range batch {
			if r.id != "" {
				c.Records[i], c.Records[id] = m.keepIncident(r, old[i])
				id++
			} else if outbox.KindOf(old[i]) == KindLane {
				c.Records[i] = m.keepLane(r, old[i])
			} else if c.Records[i], err = keepKnown(r, old[i], status); err != nil {
				return nil, err
			}
			if len(c.Records[i].Data) == 0 && len(old[i]) > 0 {
				gone = append(gone, r)
			}
		}
		return c, nil
	}})
	return gone, err
}

// keepIncident returns the records of an incident and of its public ID, if it cannot be
// forgotten; otherwise they are empty.
func (m *memory) keepIncident(r remembered, old []byte) (record, id queue.Record) {
	x := decodeIncident(old)
	if x == nil || x.ID == r.id && (IsQuiet(x) || r.lasts && !hasSteps(x)) && !x.Changed.After(r.at) {
		return record, id
	}
	return m.records.incident(x), incidentIDRecord(r.name, m.records.subjectGroup(PlaceOfIncident(x)), x.Forget)
}

// keepLane returns the record of a lane, if something was held or sent since it was read;
// otherwise it is empty.
func (m *memory) keepLane(r remembered, old []byte) queue.Record {
	lane := decodeLane(old)
	if lane.OnlySpent() && !lane.LastSpent().After(r.at) {
		return queue.Record{}
	}
	return laneRecord(lane, m.outbox.Queue.Now())
}

// keepKnown returns the record of what a destination knows, if it cannot be forgotten;
// otherwise it is empty.
func keepKnown(r remembered, old []byte, status queue.StatusFunc) (record queue.Record, err error) {
	s := decodeSubject(old)
	waits, err := anyWaits(status, s.Next.Job, s.Way.Job)
	if err != nil || !waits && s.Silenced == (uuid.UUID{}) && !s.LastTime().After(r.at) {
		return record, err
	}
	return keepSubject(old), nil
}

// countIncidents returns how many of the records are of incidents.
func countIncidents(records []remembered) (n int) {
	for _, r := range records {
		if r.id != "" {
			n++
		}
	}
	return n
}

// anyWaits reports whether one of the jobs is not final. The zero value is none.
func anyWaits(status queue.StatusFunc, jobs ...queue.JobID) (bool, error) {
	jobs = slices.DeleteFunc(jobs, func(j queue.JobID) bool { return j == queue.JobID{} })
	if len(jobs) == 0 {
		return false, nil
	}
	statuses, err := status(jobs)
	return slices.ContainsFunc(statuses, queue.Status.Waits), err
}

// dueSubject forgets a subject that matters no more.
func (m *memory) dueSubject(ctx context.Context, name queue.Hash, crowded bool) error {
	var forgotten *rules.Subject
	err := m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, DecideOld: func(old [][]byte, status queue.StatusFunc) (*queue.RuledChange, error) {
		now := m.outbox.Queue.Now()
		s := decodeSubject(old[0])
		forgotten = nil
		if next := s.Next.Job; next != (queue.JobID{}) {
			statuses, err := status([]queue.JobID{next})
			if err != nil {
				return nil, err
			}
			if statuses[0].Waits() {
				s.Forget = now.Add(time.Hour)
				return &queue.RuledChange{Records: []queue.Record{subjectRecord(s)}}, nil
			}
		}
		c := &queue.RuledChange{Records: make([]queue.Record, 1)}
		if s.Forget.After(now) && !crowded && len(old[0]) > 0 {
			c.Records[0] = subjectRecord(s)
		} else {
			forgotten = s
		}
		return c, nil
	}})
	if err == nil && forgotten != nil && forgotten.Repeats > 0 {
		m.outbox.Log.Info("repetitions that dedupe has left out are told by no message, because none has followed that says otherwise",
			zap.String("key", forgotten.Key), zap.Int("messages", forgotten.Repeats), zap.Time("since", forgotten.Since))
	}
	return err
}
