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
func (m *memory) whatWaits(ctx context.Context, conf *outbox.Configuration, x *rules.Incident) (w *waiting, err error) {
	w = &waiting{memory: m, now: m.outbox.Queue.Now(), held: map[string]bool{}}
	place := PlaceOfIncident(x)
	if w.key, _, err = conf.KeyOfIncident(ctx, x); err != nil {
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
		for _, o := range laneRecords.DecodeOrNew(b).Items {
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
	return len(w.held) > 0 && w.key != nil &&
		slices.ContainsFunc(w.memory.subjectsOf(x, w.key), func(name queue.Hash) bool { return w.held[string(name[:])] })
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

// forget forgets each record of the batch unless something has been heard of it since it was read,
// or something is under way about it. It returns the records that it has forgotten.
func (m *memory) forget(ctx context.Context, batch []remembered) (gone []remembered, err error) {
	var names, ids []queue.Hash
	for _, r := range batch {
		names = append(names, r.name)
		if r.id != "" {
			ids = append(ids, m.records.incidentIDName(r.id))
		}
	}
	names = append(names, ids...)
	err = m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: names, Decide: func(tx *queue.Tx) error {
		gone = gone[:0]
		for _, r := range batch {
			keeps, err := m.keeps(tx, r)
			if err != nil {
				return err
			}
			if keeps {
				continue
			}
			if tx.Get(r.name) != nil {
				gone = append(gone, r)
			}
			if tx.Delete(r.name); r.id != "" {
				tx.Delete(m.records.incidentIDName(r.id))
			}
		}
		return nil
	}})
	return gone, err
}

// keeps reports whether a record cannot be forgotten: something has been heard of it since it was
// read, or something is under way about it.
func (m *memory) keeps(tx *queue.Tx, r remembered) (bool, error) {
	if r.id != "" {
		x := incidentRecords.Get(tx, r.name)
		return x != nil && (x.ID != r.id || !IsQuiet(x) && (!r.lasts || hasSteps(x)) || x.Changed.After(r.at)), nil
	}
	if lane := laneRecords.Get(tx, r.name); lane != nil {
		return !lane.OnlySpent() || lane.LastSpent().After(r.at), nil
	}
	s := subjectRecords.GetOrNew(tx, r.name)
	waits, err := anyWaits(tx, s.Next.Job, s.Way.Job)
	return waits || s.Silenced != (uuid.UUID{}) || s.LastTime().After(r.at), err
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
func anyWaits(tx *queue.Tx, jobs ...queue.JobID) (bool, error) {
	statuses, err := tx.Status(slices.DeleteFunc(jobs, func(j queue.JobID) bool { return j == queue.JobID{} })...)
	return slices.ContainsFunc(statuses, queue.Status.Waits), err
}

// dueSubject forgets a subject that matters no more.
func (m *memory) dueSubject(ctx context.Context, name queue.Hash, crowded bool) error {
	var forgotten *rules.Subject
	err := m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		now := m.outbox.Queue.Now()
		s := subjectRecords.GetOrNew(tx, name)
		forgotten = nil
		switch waits, err := anyWaits(tx, s.Next.Job); {
		case err != nil:
			return err
		case waits:
			s.Forget = now.Add(time.Hour)
			putSubject(tx, name, s)
		case crowded || !s.Forget.After(now):
			forgotten = s
			tx.Delete(name)
		}
		return nil
	}})
	if err == nil && forgotten != nil && forgotten.Repeats > 0 {
		m.outbox.Log.Info("repetitions that dedupe has left out are told by no message, because none has followed that says otherwise",
			zap.String("key", forgotten.Key), zap.Int("messages", forgotten.Repeats), zap.Time("since", forgotten.Since))
	}
	return err
}
