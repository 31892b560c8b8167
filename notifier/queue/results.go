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
	"google.golang.org/protobuf/encoding/protowire"

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
	some chan struct{} // signals that the first of them came
	full chan struct{} // signals that they need not wait for recordEvery

	mu      sync.Mutex
	pending encodedResults
	writing encodedResults // being stored
	spare   encodedResults // empty, with room for the next
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
// results are dropped. Of the message, only Created and Summary are stored, and of
// each job, only Status, Attempts and Result.
func (q *Queue) Record(id uuid.UUID, created time.Time, summary []byte, jobs []Job) {
	r := &q.results
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
	r.pending.data = appendJobs(r.pending.data, summary, jobs)
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
func (q *Queue) record() {
	timer := time.NewTimer(recordEvery)
	defer timer.Stop()
	for {
		select {
		case <-q.results.some:
			timer.Reset(recordEvery)
		case <-timer.C:
			q.flush()
		case <-q.results.full:
			q.flush()
		case <-q.stop:
			return // Close stores the rest
		}
	}
}

// flush stores the pending results.
func (q *Queue) flush() {
	r := &q.results
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
		o := q.options.Load()
		err := q.store.Accept(context.WithoutCancel(q.ctx), o.MaxSize, writing.batches(time.Now())...)
		q.check(err)
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
	for len(ids) > 0 {
		data, n := make([]byte, 0, batchSize+batchSize/8), 0
		var before []byte
		for n < len(ids) && len(data) < batchSize && millis(ids[n].id) <= millis(ids[0].id)+batchSpan.Milliseconds() {
			jobs := e.data[ids[n].from:ids[n].to]
			data = appendResult(data, ids[n], jobs, before)
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
func (q *Queue) recorded(ctx context.Context, id uuid.UUID) (*Entry, error) {
	batches, err := q.store.Batches(ctx, firstID(millis(id)), firstID(millis(id)+batchSpan.Milliseconds()+1))
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

// Messages returns about n messages and their jobs, without the text, the latest
// first. It begins before the position before, or with the last message if before is
// zero. next is the position before which the next messages come; it is zero if there
// are no more. Messages that came in within a second may have another order. Messages
// of which only the results are stored have jobs as [Queue.Record] keeps them.
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

// The field of a batch: a result, one for each message.
const batchResult wire.Field = 1

// The fields of a result. The jobs of messages to one destination hardly differ,
// so a result has only those bytes of the encoded jobs that differ from those of
// the result before.
const (
	resultID wire.Field = iota + 1
	resultCreated
	resultHead   // how many bytes at the beginning are the same
	resultMiddle // the bytes that differ
	resultTail   // how many bytes at the end are the same
)

// The fields of encoded jobs, which also have the summary of the message, and of a
// job.
const (
	jobsJob     wire.Field = 1 // one for each
	jobsSummary wire.Field = 2

	jobStatus   wire.Field = 1
	jobAttempts wire.Field = 2
	jobResult   wire.Field = 3
)

// appendResult appends a result to a batch. before has the jobs of the result
// before.
func appendResult(batch []byte, r encodedResult, jobs, before []byte) []byte {
	most := min(len(before), len(jobs))
	head := 0
	for head < most && before[head] == jobs[head] {
		head++
	}
	tail := 0
	for tail < most-head && before[len(before)-1-tail] == jobs[len(jobs)-1-tail] {
		tail++
	}
	b := make([]byte, 0, 64+len(jobs)-head-tail)
	b = wire.AppendText(b, resultID, r.id[:])
	b = wire.AppendTime(b, resultCreated, r.created)
	b = wire.AppendNumber(b, resultHead, head)
	b = wire.AppendText(b, resultMiddle, jobs[head:len(jobs)-tail])
	b = wire.AppendNumber(b, resultTail, tail)
	return wire.AppendItem(batch, batchResult, b)
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

// batchedResult is the result of one message in a batch.
type batchedResult struct {
	id      uuid.UUID
	created time.Time
	jobs    []byte // encoded
}

// resultsOf returns the results in a batch, up to the first damage.
func resultsOf(batch []byte) iter.Seq[batchedResult] {
	return func(yield func(batchedResult) bool) {
		var jobs []byte
		for all := wire.NewReader(batch); all.Next(); {
			if all.Field != batchResult {
				continue
			}
			var out batchedResult
			var head, tail int
			var middle []byte
			for r := wire.NewReader(all.Bytes()); r.Next(); {
				switch r.Field {
				case resultID:
					copy(out.id[:], r.Bytes())
				case resultCreated:
					out.created = r.Time()
				case resultHead:
					head = r.Int()
				case resultMiddle:
					middle = r.Bytes()
				case resultTail:
					tail = r.Int()
				}
			}
			if min(head, tail) < 0 || head > len(jobs) || tail > len(jobs)-head {
				return
			}
			jobs = slices.Concat(jobs[:head], middle, jobs[len(jobs)-tail:])
			if out.jobs = jobs; !yield(out) {
				return
			}
		}
	}
}

// appendJobs appends the encoded summary and jobs of a message.
func appendJobs(b, summary []byte, jobs []Job) []byte {
	b = wire.AppendText(b, jobsSummary, summary)
	for i := range jobs {
		j := &jobs[i]
		n := protowire.SizeTag(jobStatus)*3 + protowire.SizeVarint(uint64(j.Status)) + protowire.SizeVarint(uint64(j.Attempts)) + protowire.SizeBytes(len(j.Result))
		b = protowire.AppendVarint(protowire.AppendTag(b, jobsJob, protowire.BytesType), uint64(n))
		b = wire.AppendNumberItem(b, jobStatus, j.Status)
		b = wire.AppendNumberItem(b, jobAttempts, j.Attempts)
		b = wire.AppendItem(b, jobResult, j.Result)
	}
	return b
}

// decodeJobs is the inverse of appendJobs. It returns nil if b is not valid.
func decodeJobs(id uuid.UUID, created time.Time, b []byte) *Entry {
	e := &Entry{Message: &Message{ID: id, Created: created}, Jobs: []Job{}}
	all := wire.NewReader(b)
	for all.Next() {
		if all.Field == jobsSummary {
			e.Message.Summary = all.Bytes()
		}
		if all.Field != jobsJob {
			continue
		}
		j := Job{JobID: JobID{id, len(e.Jobs)}}
		r := wire.NewReader(all.Bytes())
		for r.Next() {
			switch r.Field {
			case jobStatus:
				j.Status = Status(r.Int())
			case jobAttempts:
				j.Attempts = r.Int()
			case jobResult:
				j.Result = r.Bytes()
			}
		}
		if r.Err() != nil {
			return nil
		}
		e.Jobs = append(e.Jobs, j)
	}
	if all.Err() != nil {
		return nil
	}
	return e
}
