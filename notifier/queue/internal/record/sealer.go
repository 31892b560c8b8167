package record

import (
	"fmt"
	"iter"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The places in a store that records are bound to.
const (
	Heads   = "messages"
	Bodies  = "bodies"
	Jobs    = "jobs"
	Records = "records"
)

// Sealer seals and opens the records of a store, and reports those that are damaged.
type Sealer struct {
	*seal.Sealer
	Log *zap.Logger
}

// DestinationHash is [queue.Store.Hash].
func (s *Sealer) DestinationHash(text string) queue.Hash { return s.Hash("destination", text) }

// KeyHash returns the hash of an idempotency key, or the zero value if there is none.
func (s *Sealer) KeyHash(key string) (h seal.Hash) {
	if key != "" {
		h = s.Hash("idempotency key", key)
	}
	return h
}

// Damaged logs that a record is damaged, and returns a [*queue.DamagedError].
func (s *Sealer) Damaged(what string) error {
	err := &queue.DamagedError{What: what}
	s.Log.Error(err.Error())
	return err
}

// DamagedJob does what Damaged does for a job.
func (s *Sealer) DamagedJob(id queue.JobID) error {
	return s.Damaged(fmt.Sprintf("delivery %d of message %s", id.Index+1, id.Message))
}

// OpenJob opens the record of a job, which is bound to a place of the store, and returns the
// size of its entry with it.
func (s *Sealer) OpenJob(place string, id queue.JobID, sealed []byte) (*queue.Job, int64, error) {
	plain, err := s.Open(sealed, place, JobKey(id))
	if err != nil {
		return nil, 0, err
	}
	return DecodeJob(id, plain)
}

// OpenHead opens the record of a message. It logs nothing.
func (s *Sealer) OpenHead(id uuid.UUID, sealed []byte) (*Message, error) {
	plain, err := s.Open(sealed, Heads, id[:])
	if err != nil {
		return nil, err
	}
	return DecodeMessage(id, plain)
}

// OpenMessage opens the record of a message and its body. It returns the sizes of its files.
func (s *Sealer) OpenMessage(id uuid.UUID, head, body []byte) (*queue.Message, []int64, error) {
	r, err := s.openHead(id, head)
	if err != nil {
		return nil, nil, err
	}
	m := r.message(id)
	if m.Body, err = s.Open(body, Bodies, id[:]); err != nil {
		return nil, nil, s.Damaged("the text of message " + id.String())
	}
	return m, r.Files, nil
}

// OpenEntry opens the record of a message, and returns it with its jobs: the ones in the record,
// and jobs, which are stored separately. A missing job is Lost.
func (s *Sealer) OpenEntry(id uuid.UUID, head []byte, jobs iter.Seq[*queue.Job]) (*queue.Entry, error) {
	r, err := s.openHead(id, head)
	if err != nil {
		return nil, err
	}
	e := &queue.Entry{Message: r.message(id), Jobs: make([]queue.Job, r.Jobs)}
	e.Message.StoredSize = r.Size
	set := func(j *queue.Job) {
		if j.Index < len(e.Jobs) {
			e.Jobs[j.Index] = *j
		}
	}
	for i := range r.Done {
		set(&r.Done[i])
	}
	for j := range jobs {
		set(j)
	}
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Status == 0 {
			*j = queue.Job{JobID: queue.JobID{Message: id, Index: i}, Status: queue.Lost}
			_ = s.DamagedJob(j.JobID)
		}
	}
	return e, nil
}

// OpenBatch returns the summary of a batch of results. It reports false if the batch is damaged.
func (s *Sealer) OpenBatch(id uuid.UUID, head []byte) (summary []byte, ok bool) {
	r, err := s.OpenHead(id, head)
	if err != nil {
		_ = s.Damaged("the batch of results " + id.String())
		return nil, false
	}
	return r.Summary, true
}

// OpenHealth opens the state of a destination, which is bound to a place of the store. It
// returns nil if there is none, or if it is damaged: then the next attempt stores it again.
func (s *Sealer) OpenHealth(place string, hash, sealed []byte) *queue.Health {
	plain, err := s.Open(sealed, place, hash)
	if err != nil {
		return nil
	}
	h, err := DecodeHealth(seal.Hash(hash), plain)
	if err != nil {
		return nil
	}
	return h
}

func (s *Sealer) openHead(id uuid.UUID, sealed []byte) (*Message, error) {
	m, err := s.OpenHead(id, sealed)
	if err != nil {
		return nil, s.Damaged("the record of message " + id.String())
	}
	return m, nil
}

// message returns the message without its body and files.
func (m *Message) message(id uuid.UUID) *queue.Message {
	return &queue.Message{ID: id, Created: m.Created, Summary: m.Summary, Request: m.Request}
}
