package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// The bounds of results that are not stored yet.
const (
	recordEvery = time.Second
	flushAt     = 1 << 20 // bytes that are stored without waiting for recordEvery
	maxResults  = 4 << 20 // bytes; further results are dropped
)

// results holds final results, encoded, until they are stored.
type results struct {
	full chan struct{}

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
	from, to int // in data
}

// Record stores the results of a message whose jobs are all final, so that they
// can be read by its ID. They are readable at once, and are written within a
// second; a crash before that loses them. If the store stays unavailable,
// results are dropped. Of each job, only Status, Attempts and Result are
// stored.
func (q *Queue) Record(id uuid.UUID, created time.Time, jobs []Job) {
	r := &q.results
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending.data)+len(r.writing.data) >= maxResults {
		r.dropped++
		return
	}
	from := len(r.pending.data)
	r.pending.data = appendResult(r.pending.data, id, created, jobs)
	r.pending.ids = append(r.pending.ids, encodedResult{id, from, len(r.pending.data)})
	if len(r.pending.data) >= flushAt {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// get returns a message that is not stored yet, or nil.
func (r *results) get(id uuid.UUID) *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range []*encodedResults{&r.pending, &r.writing} {
		for _, at := range e.ids {
			if at.id == id {
				return findResult(e.data[at.from:at.to], id)
			}
		}
	}
	return nil
}

// record stores results.
func (q *Queue) record() {
	ticker := time.NewTicker(recordEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-q.results.full:
		case <-q.stop:
			return // Close stores the rest
		}
		q.flush()
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
	sort.Slice(ids, func(i, j int) bool { return bytes.Compare(ids[i].id[:], ids[j].id[:]) < 0 })
	for len(ids) > 0 {
		data, n := append(make([]byte, 0, batchSize+batchSize/8), packedVersion), 0
		var before []byte
		for n < len(ids) && len(data) < batchSize && millis(ids[n].id) <= millis(ids[0].id)+batchSpan.Milliseconds() {
			data, before = packResult(data, e.data[ids[n].from:ids[n].to], before)
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
		if len(data) == 0 {
			continue
		}
		var e *Entry
		switch data[0] {
		case resultsVersion:
			e = findResult(data[1:], id)
		case packedVersion:
			e = findPacked(data[1:], id)
		} // others are written by a later version of the program
		if e != nil {
			return e, nil
		}
	}
	return nil, ErrNotFound
}

// The first byte of a batch.
const (
	resultsVersion = 1 // results follow as appendResult encodes them; no longer written
	packedVersion  = 2 // results follow as packResult encodes them
)

// packResult appends a result to a batch. The results of messages to one
// destination hardly differ, so packResult leaves out the bytes at the beginning
// and at the end that are equal to those of the result before. It returns the
// batch and what to pass with the next result.
func packResult(batch, result, before []byte) (packed, body []byte) {
	_, n := binary.Varint(result[resultHead:])
	created := result[resultHead : resultHead+n]
	body = result[resultHead+n:]
	most := min(len(before), len(body))
	head := 0
	for head < most && before[head] == body[head] {
		head++
	}
	tail := 0
	for tail < most-head && before[len(before)-1-tail] == body[len(body)-1-tail] {
		tail++
	}
	batch = append(append(batch, result[:16]...), created...)
	batch = binary.AppendUvarint(batch, uint64(head))
	batch = binary.AppendUvarint(batch, uint64(tail))
	batch = binary.AppendUvarint(batch, uint64(len(body)-head-tail))
	return append(batch, body[head:len(body)-tail]...), body
}

// findPacked returns a message from packed results, or nil.
func findPacked(b []byte, id uuid.UUID) *Entry {
	var before []byte
	for len(b) >= 16 {
		found := uuid.UUID(b[:16]) == id
		b = b[16:]
		_, n := binary.Varint(b)
		if n <= 0 {
			return nil
		}
		created := b[:n]
		b = b[n:]
		var lengths [3]int // of the head, the tail, and what is between them
		for i := range lengths {
			v, n := binary.Uvarint(b)
			if n <= 0 || v > math.MaxInt32 {
				return nil
			}
			lengths[i], b = int(v), b[n:]
		}
		head, tail, middle := lengths[0], lengths[1], lengths[2]
		if head+tail > len(before) || middle > len(b) {
			return nil
		}
		body := slices.Concat(before[:head], b[:middle], before[len(before)-tail:])
		if found {
			return decodeResult(slices.Concat(created, body), id)
		}
		before, b = body, b[middle:]
	}
	return nil
}

// resultHead is the length of the head of each result: the ID of the message,
// and the length of the rest.
const resultHead = 16 + 4

// appendResult appends the encoded results of a message.
func appendResult(b []byte, id uuid.UUID, created time.Time, jobs []Job) []byte {
	b = append(b, id[:]...)
	b = append(b, 0, 0, 0, 0)
	from := len(b)
	b = binary.AppendVarint(b, created.UnixMicro())
	b = binary.AppendUvarint(b, uint64(len(jobs)))
	for i := range jobs {
		j := &jobs[i]
		b = binary.AppendUvarint(b, uint64(j.Status))
		b = binary.AppendUvarint(b, uint64(j.Attempts))
		b = binary.AppendUvarint(b, uint64(len(j.Result)))
		b = append(b, j.Result...)
	}
	binary.BigEndian.PutUint32(b[from-4:], uint32(len(b)-from))
	return b
}

// findResult returns a message from encoded results, or nil.
func findResult(b []byte, id uuid.UUID) *Entry {
	for len(b) >= resultHead {
		n := int(binary.BigEndian.Uint32(b[16:]))
		if n > len(b)-resultHead {
			return nil
		}
		if uuid.UUID(b[:16]) == id {
			return decodeResult(b[resultHead:resultHead+n], id)
		}
		b = b[resultHead+n:]
	}
	return nil
}

// decodeResult is the inverse of appendResult, without the head. It returns nil
// if b is not valid.
func decodeResult(b []byte, id uuid.UUID) *Entry {
	ok := true
	uvarint := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > math.MaxInt32 {
			ok, b = false, nil
			return 0
		}
		b = b[n:]
		return int(v)
	}
	take := func(n int) []byte {
		if n > len(b) {
			ok, n = false, len(b)
		}
		head := b[:n]
		b = b[n:]
		return head
	}
	created, n := binary.Varint(b)
	if n <= 0 {
		return nil
	}
	b = b[n:]
	count := uvarint()
	if count > len(b) {
		return nil
	}
	e := &Entry{Message: &Message{ID: id, Created: time.UnixMicro(created)}, Jobs: make([]Job, count)}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.JobID, j.Status, j.Attempts = JobID{id, i}, Status(uvarint()), uvarint()
		j.Result = bytes.Clone(take(uvarint()))
	}
	if !ok || len(b) > 0 {
		return nil
	}
	return e
}
