package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// The bounds of results that are not stored yet.
const (
	recordEvery = time.Second
	flushAt     = 1 << 20 // bytes that are stored without waiting for recordEvery
	maxResults  = 4 << 20 // bytes; further results are dropped
)

// results holds final results, encoded, until they are stored.
type results struct {
	*core
	some chan struct{} // signals that the first of them came
	full chan struct{} // signals that they need not wait for recordEvery

	mu      sync.Mutex
	pending encodedResults
	writing encodedResults // being stored
	spare   encodedResults // empty, with room for the next
	next    recordedJobs   // being encoded
	dropped int
}

// encodedResults are the results of several messages.
type encodedResults struct {
	data []byte
	ids  []encodedResult
}

// encodedResult is the result of one message.
type encodedResult struct {
	id       uuid.UUID
	created  time.Time
	from, to int // of its summary and jobs in data
}

// Record stores the results of a message whose jobs are all final, so that they
// can be read by its ID. They are readable at once, and are written within a
// second; a crash before that loses them. If the store stays unavailable,
// results are dropped. Of the message, only Created and Summary are stored.
func (q *Queue) Record(id uuid.UUID, created time.Time, summary []byte, jobs []FinalJob) {
	r := q.results
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending.data)+len(r.writing.data) >= maxResults {
		r.dropped++
		return
	}
	if len(r.pending.ids) == 0 {
		signal(r.some)
	}
	from := len(r.pending.data)
	r.next = recordedJobs{summary, jobs}
	r.pending.data = wire.Append(r.pending.data, &r.next, (*recordedJobs).fields)
	r.next = recordedJobs{}
	r.pending.ids = append(r.pending.ids, encodedResult{id, created, from, len(r.pending.data)})
	if len(r.pending.data) >= flushAt {
		signal(r.full)
	}
}

// signal sends to a channel with room for one signal, if there is none.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// get returns a message that is not stored yet, or nil.
func (r *results) get(id uuid.UUID) *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range []*encodedResults{&r.pending, &r.writing} {
		for _, at := range e.ids {
			if at.id == id {
				return decodeJobs(id, at.created, bytes.Clone(e.data[at.from:at.to]))
			}
		}
	}
	return nil
}

// all returns the messages that are not stored yet.
func (r *results) all() (entries []*Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range []*encodedResults{&r.pending, &r.writing} {
		for _, at := range e.ids {
			entries = append(entries, decodeJobs(at.id, at.created, bytes.Clone(e.data[at.from:at.to])))
		}
	}
	return entries
}

// record stores results. Without some, it sleeps.
func (r *results) record() {
	timer := time.NewTimer(recordEvery)
	defer timer.Stop()
	for {
		select {
		case <-r.some:
			timer.Reset(recordEvery)
		case <-timer.C:
			r.flush()
		case <-r.full:
			r.flush()
		case <-r.stop:
			return // Close stores the rest
		}
	}
}

// flush stores the pending results.
func (r *results) flush() {
	for {
		r.mu.Lock()
		if len(r.writing.ids) == 0 {
			r.writing, r.pending, r.spare = r.pending, r.spare, encodedResults{}
		}
		writing, dropped := r.writing, r.dropped
		r.mu.Unlock()
		if len(writing.ids) == 0 {
			return
		}
		o := r.options.Load()
		err := r.store.Accept(context.WithoutCancel(r.ctx), o.MaxSize, writing.batches(time.Now())...)
		r.check(err)
		if _, unavailable := errors.AsType[*UnavailableError](err); unavailable || errors.Is(err, ErrClosed) {
			signal(r.some)
			return // they are stored later
		}
		r.mu.Lock()
		r.spare = encodedResults{r.writing.data[:0], r.writing.ids[:0]}
		r.writing = encodedResults{}
		r.dropped -= dropped
		r.mu.Unlock()
		if dropped > 0 {
			o.Logger.Warn("results of messages were not recorded, since the queue's store failed", zap.Int("messages", dropped))
		}
	}
}

// Results are stored in batches. A batch is a message without jobs, whose
// Summary holds the results of messages that came in within a second. Its ID
// has the time of the latest of these messages.
const (
	batchSpan = time.Second
	batchSize = 4 << 10 // bytes; a batch is full when it has more
)

// IsBatch reports whether id belongs to a batch: a message that holds the
// results of others.
func IsBatch(id uuid.UUID) bool { return id.Version() == batchVersion }

// batchVersion is the version of the ID of a batch. RFC 9562 leaves the content of
// version 8 to the application.
const batchVersion = 8

// batchID returns the ID of a batch whose latest message is last.
func batchID(last uuid.UUID) uuid.UUID {
	last[6] = batchVersion<<4 | last[6]&0x0f
	return last
}

// batches returns the entries to store.
func (e *encodedResults) batches(now time.Time) (batches []*Entry) {
	ids := slices.Clone(e.ids)
	slices.SortFunc(ids, func(a, b encodedResult) int { return bytes.Compare(a.id[:], b.id[:]) })
	result, room := new(batchedResult), []byte(nil)
	for len(ids) > 0 {
		data, n := make([]byte, 0, batchSize+batchSize/8), 0
		var before []byte
		for n < len(ids) && len(data) < batchSize && millis(ids[n].id) <= millis(ids[0].id)+batchSpan.Milliseconds() {
			jobs := e.data[ids[n].from:ids[n].to]
			*result = batchedResult{id: ids[n].id, created: ids[n].created}
			result.compare(jobs, before)
			room = wire.Append(room[:0], result, (*batchedResult).fields)
			data = wire.AppendItem(data, batchResult, room)
			before = jobs
			n++
		}
		batches = append(batches, &Entry{Message: &Message{ID: batchID(ids[n-1].id), Created: now, Summary: data}})
		ids = ids[n:]
	}
	return batches
}

// millis returns the time of an ID in milliseconds since 1970.
func millis(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) }

// firstID returns the lowest ID with a time in milliseconds since 1970.
func firstID(millis int64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(millis)<<16)
	return id
}

// recorded returns a message from the stored batches, or [ErrNotFound].
func (r *results) recorded(ctx context.Context, id uuid.UUID) (*Entry, error) {
	batches, err := r.store.Batches(ctx, firstID(millis(id)), firstID(millis(id)+batchSpan.Milliseconds()+1))
	if err != nil {
		return nil, err
	}
	for _, data := range batches {
		if e := findResult(data, id); e != nil {
			return e, nil
		}
	}
	return nil, ErrNotFound
}

// Messages returns about n messages and their jobs, without the text, the latest first. It begins
// before the position before, or with the last message if before is zero. next is the position
// before which the next messages come; it is zero if there are no more. Messages that came in
// within a second may have another order. For a message with stored results only, the jobs have the
// fields that [Queue.Record] keeps.
func (q *Queue) Messages(ctx context.Context, before uuid.UUID, n int) (entries []*Entry, next uuid.UUID, err error) {
	var recorded []*Entry
	if before == (uuid.UUID{}) {
		recorded = q.results.all()
	}
	// A batch has many messages, so that few rows of the store may be enough.
	next = before
	for read := 1; len(entries) < n; {
		var rows []*Entry
		rows, next, err = q.store.Messages(ctx, next, read)
		if err != nil {
			return nil, uuid.UUID{}, err
		}
		had := len(entries)
		for _, e := range rows {
			if !IsBatch(e.Message.ID) {
				entries = append(entries, e)
				continue
			}
			for r := range resultsOf(e.Message.Summary) {
				if x := decodeJobs(r.id, r.created, r.jobs); x != nil {
					entries = append(entries, x)
				}
			}
		}
		if next == (uuid.UUID{}) {
			break
		}
		perRow := max((len(entries)-had)/read, 1)
		read = max(min(2*read, (n-len(entries))/perRow, messagesAtOnce), 1)
	}
	entries = append(entries, recorded...)
	slices.SortFunc(entries, func(a, b *Entry) int { return bytes.Compare(b.Message.ID[:], a.Message.ID[:]) })
	same := func(a, b *Entry) bool { return a.Message.ID == b.Message.ID } // stored meanwhile
	return slices.CompactFunc(entries, same), next, nil
}

// messagesAtOnce is the maximum number of rows that Messages reads at once.
const messagesAtOnce = 64

// batchResult is the field of a batch: a result, one for each message.
const batchResult wire.Field = 1

// batchedResult is the result of one message in a batch. The jobs of messages to one destination
// hardly differ, so a result has only the bytes of its encoded jobs that differ from the previous
// result.
type batchedResult struct {
	id         uuid.UUID
	created    time.Time
	head, tail int    // how many bytes at the beginning and at the end are the same
	middle     []byte // the bytes that differ
	jobs       []byte // encoded; not stored
}

func (r *batchedResult) fields(c *wire.Codec) {
	wire.Array(c, 1, r.id[:])
	wire.Time(c, 2, &r.created)
	wire.Number(c, 3, &r.head)
	wire.Part(c, 4, &r.middle)
	wire.Number(c, 5, &r.tail)
}

// compare sets the fields to the difference between jobs and before, the jobs of the previous
// result.
func (r *batchedResult) compare(jobs, before []byte) {
	most := min(len(before), len(jobs))
	for r.head < most && before[r.head] == jobs[r.head] {
		r.head++
	}
	for r.tail < most-r.head && before[len(before)-1-r.tail] == jobs[len(jobs)-1-r.tail] {
		r.tail++
	}
	r.middle = jobs[r.head : len(jobs)-r.tail]
}

// findResult returns a message from a batch, or nil.
func findResult(batch []byte, id uuid.UUID) *Entry {
	for r := range resultsOf(batch) {
		if r.id == id {
			return decodeJobs(id, r.created, r.jobs)
		}
	}
	return nil
}

// resultsOf returns the results in a batch, up to the first damage.
func resultsOf(batch []byte) iter.Seq[batchedResult] {
	return func(yield func(batchedResult) bool) {
		var jobs []byte
		r := new(batchedResult)
		for all := wire.NewReader(batch); all.Next(); {
			if all.Field != batchResult {
				continue
			}
			*r = batchedResult{}
			err := wire.Decode(all.Bytes(), r, (*batchedResult).fields)
			if err != nil || min(r.head, r.tail) < 0 || r.head > len(jobs) || r.tail > len(jobs)-r.head {
				return
			}
			jobs = slices.Concat(jobs[:r.head], r.middle, jobs[len(jobs)-r.tail:])
			if r.jobs = jobs; !yield(*r) {
				return
			}
		}
	}
}

// FinalJob is what is stored of a job that is final when its message is recorded.
type FinalJob struct {
	Status   Status
	Attempts int
	Result   []byte // see [Job.Result]
}

// recordedJobs are the summary and the jobs of a message with stored results only.
type recordedJobs struct {
	summary []byte
	jobs    []FinalJob
}

func (r *recordedJobs) fields(c *wire.Codec) {
	wire.Part(c, 2, &r.summary)
	wire.Records(c, 1, &r.jobs, (*FinalJob).fields)
}

func (j *FinalJob) fields(c *wire.Codec) {
	wire.Number(c, 1, &j.Status)
	wire.Number(c, 2, &j.Attempts)
	wire.Part(c, 3, &j.Result)
}

// decodeJobs returns a message with recordedJobs. It returns nil if b is not valid.
func decodeJobs(id uuid.UUID, created time.Time, b []byte) *Entry {
	r := &recordedJobs{}
	if wire.Decode(b, r, (*recordedJobs).fields) != nil {
		return nil
	}
	jobs := make([]Job, len(r.jobs))
	for i, j := range r.jobs {
		jobs[i] = Job{JobID: JobID{id, i}, Status: j.Status, Attempts: j.Attempts, Result: j.Result}
	}
	return &Entry{Message: &Message{ID: id, Created: created, Summary: r.summary}, Jobs: jobs}
}
