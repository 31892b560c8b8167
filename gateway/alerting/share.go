package alerting

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// What rules remember of a key has a share of max_size, so that one key cannot take the
// room of all. Beyond it, what was heard of least recently is forgotten: incidents about
// which nothing is under way, and what destinations know of incidents and texts.

// The bounds of what is remembered of a key.
const (
	KeyShare    = 8 // of max_size, as a divisor
	ShareEvery  = 10 * time.Second
	shareAgain  = time.Second // between two looks while the queue is full
	ShareTime   = 30 * time.Second
	shareSample = 100  // records of a group by which its size is estimated
	sharePage   = 1000 // records that are read at once
	shareBatch  = 50   // records that are removed in one transaction
	shareAtOnce = 5000 // records that are removed while other work waits

	recordOverhead = 180     // of a record in the store, about
	maxRecord      = 4 << 10 // size of a large record
)

// keyShares is when what is remembered of keys was last compared with their share. The zero
// value is ready for use.
type keyShares struct {
	mu   sync.Mutex // one caller looks at a time
	next time.Time

	looked, found time.Time // when the last look for room ended, and the last one that found some
}

// subjectGroup returns the group of the records of what destinations of the key with a place
// know.
func (q *Engine) subjectGroup(place string) queue.Hash { return q.Queue.Hash("subjects\x00" + place) }

// rememberedGroups returns the groups of the records that count for the share of the key with
// a place.
func (q *Engine) rememberedGroups(place string) []queue.Hash {
	groups := []queue.Hash{q.subjectGroup(place)}
	for _, stage := range rules.Stages {
		groups = append(groups, q.IncidentGroup(place, stage))
	}
	return groups
}

// WatchShares keeps keys within their shares. The queue calls it each second.
func (q *Engine) WatchShares(ctx context.Context) {
	q.shares.mu.Lock()
	defer q.shares.mu.Unlock()
	if now := time.Now(); now.Before(q.shares.next) && !now.Before(q.shares.next.Add(-ShareEvery)) {
		return
	}
	n, err := q.keepShares(ctx, shareAtOnce)
	if err != nil && ctx.Err() == nil {
		q.Log.Debug("what rules remember cannot be compared with the share of each key", zap.Error(err))
	}
	if q.shares.next = time.Now(); n < shareAtOnce { // else it goes on a second later
		q.shares.next = q.shares.next.Add(ShareEvery)
	}
}

// MakeRoom forgets what keys remember beyond their share, because the queue was full at a
// time. It reports whether there may be room since then.
func (q *Engine) MakeRoom(ctx context.Context, full time.Time) bool {
	q.shares.mu.Lock()
	defer q.shares.mu.Unlock()
	if since := time.Since(q.shares.looked); since < 0 || since >= shareAgain {
		ctx, cancel := context.WithTimeout(ctx, ShareTime)
		defer cancel()
		n, _ := q.keepShares(ctx, math.MaxInt)
		if q.shares.looked = time.Now(); n > 0 {
			q.shares.found = q.shares.looked
		}
	}
	return q.shares.found.After(full)
}

// keepShares forgets what keys remember beyond their share, about most records at most, and
// returns how many they were. The caller holds the lock of the shares.
func (q *Engine) keepShares(ctx context.Context, most int) (forgotten int, err error) {
	app := q.App.Load()
	share := app.QueueSettings.MaxSize / KeyShare
	stats, err := q.Queue.Stats(ctx)
	if err != nil || stats.Records <= share {
		return 0, err
	}
	sizes, err := q.Queue.CallersGroupSizes(ctx)
	if err != nil {
		return 0, err
	}
	places, _ := Places(ctx, &app.Directory, "") // without saved keys if they cannot be listed now
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		size, err := q.rememberedSize(ctx, place, sizes, share)
		if err != nil {
			return forgotten, err
		}
		if size <= share {
			continue
		}
		n, err := q.forgetOldest(ctx, place, share, most-forgotten)
		if forgotten += n; err != nil || forgotten >= most {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// rememberedSize estimates the size of what is remembered of a key, if it can be more than
// the share. sizes are the sizes of groups.
func (q *Engine) rememberedSize(ctx context.Context, place string, sizes map[queue.Hash]int, share int64) (size int64, err error) {
	groups := q.rememberedGroups(place)
	n := 0
	for _, g := range groups {
		n += sizes[g]
	}
	if int64(n)*maxRecord <= share {
		return 0, nil
	}
	for _, g := range groups {
		if sizes[g] == 0 {
			continue
		}
		sample, err := q.Queue.CallersGroup(ctx, g, queue.Hash{}, shareSample) // their names are hashes
		if err != nil {
			return 0, err
		}
		sum := int64(0)
		for _, r := range sample {
			sum += remembersSize(r.Data)
		}
		size += sum * int64(sizes[g]) / int64(max(len(sample), 1))
	}
	return size, nil
}

// remembersSize returns the size of a record with these data in the store, with that of the
// record of its public ID if it is one of an incident.
func remembersSize(data []byte) int64 {
	n := int64(recordOverhead + len(data))
	if len(data) > 0 && data[0] == outbox.KindIncident {
		n += recordOverhead + 1 + int64(len(queue.Hash{}))
	}
	return n
}

// remembered is a record that may be forgotten.
type remembered struct {
	name queue.Hash
	id   string    // the public ID of an incident; "" for what a destination knows
	at   time.Time // when something was heard of it last
	size int64
}

// forgetOldest forgets what a key remembers until a tenth of its share is free, the oldest
// first and about most records at most, and returns how many they were.
func (q *Engine) forgetOldest(ctx context.Context, place string, share int64, most int) (n int, err error) {
	var all []remembered
	var total int64
	var w *waiting
	key := ""
	for _, g := range q.rememberedGroups(place) {
		err := q.eachOf(ctx, g, func(r queue.NamedRecord) (err error) {
			size := remembersSize(r.Data)
			total += size
			x := decodeIncident(r.Data)
			if x == nil {
				all = append(all, remembered{r.Name, "", decodeSubject(r.Data).LastTime(), size})
				return nil
			}
			key = x.Key
			if w == nil {
				if w, err = q.whatWaits(ctx, x); err != nil {
					return err
				}
			}
			if w.quiet(x) {
				all = append(all, remembered{r.Name, x.ID, x.Changed, size})
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	slices.SortFunc(all, func(a, b remembered) int { return a.at.Compare(b.at) })
	aim, incidents := share-share/10, 0
	for batch := range slices.Chunk(all, shareBatch) {
		if total <= aim || n >= most {
			break
		}
		gone, err := q.forgetRecords(ctx, batch)
		if err != nil {
			return n, err
		}
		for _, r := range gone {
			total -= r.size
			if n++; r.id != "" {
				incidents++
			}
		}
	}
	if n > 0 {
		q.Log.Warn("what rules remember of a key has reached its share of max_size, so that the oldest is forgotten: incidents of which nothing is under way, and what destinations know",
			zap.String("key", key), zap.Int("incidents", incidents), zap.Int("others", n-incidents), zap.Int64("share", share))
	}
	return n, nil
}

// eachOf calls f with each record of a group, until it returns an error.
func (q *Engine) eachOf(ctx context.Context, group queue.Hash, f func(queue.NamedRecord) error) error {
	var after queue.Hash
	for {
		page, err := q.Queue.CallersGroup(ctx, group, after, sharePage)
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
	q        *Engine
	now      time.Time
	silences rules.Silences
	key      *site.Key       // nil if it is gone
	held     map[string]bool // the subjects of messages that rules hold
}

// whatWaits returns what is under way about incidents of the key of x.
func (q *Engine) whatWaits(ctx context.Context, x *rules.Incident) (w *waiting, err error) {
	w = &waiting{q: q, now: q.Queue.Now(), held: map[string]bool{}}
	place := PlaceOfIncident(x)
	if w.silences, err = q.SilencesAt(ctx, place); err != nil {
		return nil, err
	}
	if w.key, _, err = q.App.Load().KeyOfIncident(ctx, x); err != nil || w.key == nil {
		return w, err
	}
	for _, t := range w.key.Targets {
		b, err := q.Queue.CallersRecord(ctx, q.laneName(place+t.Policy().Key(), site.DestinationName(t, w.key.Limits)))
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
	if !IsQuiet(x) || x.IsOpen() && w.silences.MatchIncident(w.now, x, x.Tags) != nil {
		return false
	}
	return len(w.held) == 0 || w.key == nil || !slices.ContainsFunc(w.q.subjectsOf(x, w.key), func(name queue.Hash) bool { return w.held[string(name[:])] })
}

// IsQuiet reports whether the record of an incident says that no step of it is under way,
// and that nobody takes care of it.
func IsQuiet(x *rules.Incident) bool {
	return !x.Lasts() && len(x.Escalation.Waiting)+len(x.Escalation.Sent) == 0
}

// subjectsOf returns the names of the records of what the destinations of a key know of an
// incident.
func (q *Engine) subjectsOf(x *rules.Incident, k *site.Key) (names []queue.Hash) {
	for _, t := range k.Targets {
		names = append(names, q.subjectName(PlaceOfIncident(x)+t.Policy().Key(), incidentSubject(x.Derived), site.DestinationName(t, k.Limits)))
	}
	return names
}

// forgetRecords forgets those of the records of which nothing has been heard since they were
// read, and about which nothing is under way. It returns them.
func (q *Engine) forgetRecords(ctx context.Context, batch []remembered) (gone []remembered, err error) {
	var names []queue.Hash
	for _, r := range batch {
		names = append(names, r.name)
	}
	for _, r := range batch {
		if r.id != "" {
			names = append(names, q.incidentIDName(r.id))
		}
	}
	err = q.Queue.Apply(ctx, &queue.Ruled{Names: names, Decide: func(old [][]byte, status func([]queue.JobID) ([]queue.Status, error)) (*queue.RuledChange, error) {
		gone = gone[:0]
		c := &queue.RuledChange{Records: make([]queue.Record, len(names))}
		id := len(batch)
		for i, r := range batch {
			var forgets bool
			if r.id == "" {
				s := decodeSubject(old[i])
				waits, err := anyWaits(status, s.Next.Job, s.Way.Job)
				if err != nil {
					return nil, err
				}
				if forgets = !waits && s.Silenced == (uuid.UUID{}) && !s.LastTime().After(r.at); !forgets {
					c.Records[i] = keepSubject(old[i])
				}
			} else {
				x := decodeIncident(old[i])
				if forgets = x == nil || x.ID == r.id && IsQuiet(x) && !x.Changed.After(r.at); !forgets {
					c.Records[i] = q.incidentRecord(x)
					c.Records[id] = incidentIDRecord(r.name, x.Forget)
				}
				id++
			}
			if forgets && len(old[i]) > 0 {
				gone = append(gone, r)
			}
		}
		return c, nil
	}})
	return gone, err
}

// anyWaits reports whether one of the jobs is not final. The zero value is none.
func anyWaits(status func([]queue.JobID) ([]queue.Status, error), jobs ...queue.JobID) (bool, error) {
	jobs = slices.DeleteFunc(jobs, func(j queue.JobID) bool { return j == queue.JobID{} })
	if len(jobs) == 0 {
		return false, nil
	}
	statuses, err := status(jobs)
	return slices.ContainsFunc(statuses, queue.Status.Waits), err
}

// Forgotten counts incidents that somebody has asked to forget.
type Forgotten struct {
	Forgotten int  `json:"forgotten"`
	Kept      int  `json:"kept"` // something about them is under way
	More      bool `json:"more"` // there may be others; the request can be sent again
}

// maxForgotten is the maximum number of incidents that one request forgets.
const maxForgotten = 2000

// ErrUnderWay is returned for an incident that cannot be forgotten now.
var ErrUnderWay = api.Errorf(http.StatusConflict, "people are being told of this incident, or somebody takes care of it; resolve it first, and forget it then")

// ForgetIncident forgets an incident, and what destinations know of it, unless people are
// being told of it or somebody takes care of it. Nobody is told.
func (q *Engine) ForgetIncident(ctx context.Context, at *StoredIncident) error {
	k, _, err := q.App.Load().KeyOfIncident(ctx, at.Incident)
	if err != nil {
		return err
	}
	gone, err := q.forgetRecords(ctx, q.recordsOf(at, k))
	if err == nil && !slices.ContainsFunc(gone, func(r remembered) bool { return r.name == at.name }) {
		return ErrUnderWay
	}
	return err
}

// recordsOf returns the records of an incident and of what the destinations of its key know
// of it. k is the key, or nil if it is gone.
func (q *Engine) recordsOf(x *StoredIncident, k *site.Key) []remembered {
	records := []remembered{{name: x.name, id: x.ID, at: x.Changed}}
	if k != nil && x.Derived != "" {
		for _, name := range q.subjectsOf(x.Incident, k) {
			records = append(records, remembered{name: name, at: q.Queue.Now()})
		}
	}
	return records
}

// ForgetIncidents forgets the incidents of keys with these places about which nothing is
// under way, or those of them in a stage.
func (q *Engine) ForgetIncidents(ctx context.Context, places []string, stage notifier.IncidentState) (out Forgotten, err error) {
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		var found []StoredIncident
		var w *waiting
		for _, s := range rules.Stages {
			if stage != "" && s != stage {
				continue
			}
			err := q.eachOf(ctx, q.IncidentGroup(place, s), func(r queue.NamedRecord) (err error) {
				x := decodeIncident(r.Data)
				if x == nil {
					return nil
				}
				if w == nil {
					if w, err = q.whatWaits(ctx, x); err != nil {
						return err
					}
				}
				switch {
				case !w.quiet(x):
					out.Kept++
				case out.Forgotten+len(found) >= maxForgotten:
					out.More = true
				default:
					found = append(found, StoredIncident{r.Name, x})
				}
				return nil
			})
			if err != nil {
				return out, err
			}
		}
		for some := range slices.Chunk(found, shareBatch/2) {
			var batch []remembered
			for i := range some {
				batch = append(batch, q.recordsOf(&some[i], w.key)...)
			}
			for part := range slices.Chunk(batch, 2*shareBatch) {
				gone, err := q.forgetRecords(ctx, part)
				if err != nil {
					return out, err
				}
				for _, r := range gone {
					if r.id != "" {
						out.Forgotten++
					}
				}
			}
		}
	}
	return out, nil
}
