package sealed

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// The places that only this package seals.
const (
	placeBatch  = "batches" // without an ID, because [queue.Store.Batches] returns none
	placeHealth = "health"
)

// sealEntry returns an entry as the other store gets it.
func (s *Store) sealEntry(e *queue.Entry, lenient bool) *queue.Entry {
	m := e.Message
	summary := s.sealSummary(e) // first: if the secret changes meanwhile, isOld finds the older one
	out := &queue.Entry{
		Message: &queue.Message{
			ID: m.ID, Created: m.Created, Body: s.sealer.Seal(m.Body, record.Bodies, m.ID[:]), Summary: summary,
			Key: s.pseudonym("idempotency key", m.Key), EarlierKey: s.pseudonym("idempotency key", m.EarlierKey),
		},
		Jobs: make([]queue.Job, len(e.Jobs)), Untrusted: e.Untrusted, Unlimited: e.Unlimited,
	}
	if len(m.Request) > 0 {
		h := s.sealer.Hash("request", string(m.Request)) // the store compares it
		out.Message.Request = h[:]
	}
	for i, f := range m.Files {
		out.Message.Files = append(out.Message.Files,
			queue.File{Size: seal.SealedSize(f.Size), ReaderAt: s.sealer.SealReader(f, f.Size, record.FileKey(m.ID, i))})
	}
	s.sealJobs(e, out)
	out.Update = s.sealUpdate(e.Update, lenient, func() { s.sealJobs(e, out) })
	return out
}

func (s *Store) sealJobs(e, out *queue.Entry) {
	for i := range e.Jobs {
		s.sealJob(&e.Jobs[i], &out.Jobs[i])
	}
}

// sealSummary seals the summary of a message, and with it the size of the entry and the hash of the
// request.
func (s *Store) sealSummary(e *queue.Entry) []byte {
	m := e.Message
	plain := binary.AppendUvarint(binary.AppendVarint(nil, e.Size()), uint64(len(m.Request)))
	plain = append(append(plain, m.Request...), m.Summary...)
	place, id := summaryPlace(m.ID)
	return s.sealer.Seal(plain, place, id)
}

// summaryPlace returns the place of the summary of a message, or of a batch with the zero ID.
func summaryPlace(id uuid.UUID) (place string, at []byte) {
	if id == (uuid.UUID{}) || queue.IsBatch(id) {
		return placeBatch, nil
	}
	return record.Heads, id[:]
}

// openSummary sets what sealSummary has sealed. It reports false if that cannot be opened.
func (s *Store) openSummary(m *queue.Message, sealed []byte) bool {
	place, at := summaryPlace(m.ID)
	plain, err := s.sealer.Open(sealed, place, at)
	if err != nil {
		return false
	}
	var used int
	if m.StoredSize, used = binary.Varint(plain); used <= 0 {
		return false
	}
	plain = plain[used:]
	n, used := binary.Uvarint(plain)
	if used <= 0 || n > uint64(len(plain)-used) {
		return false
	}
	if plain = plain[used:]; n > 0 {
		m.Request = plain[:n]
	}
	m.Summary = plain[n:]
	return true
}

// openMessage returns a message of the other store without its body and files.
func (s *Store) openMessage(ctx context.Context, m *queue.Message) (*queue.Message, error) {
	out := &queue.Message{ID: m.ID, Created: m.Created}
	if !s.openSummary(out, m.Summary) {
		return nil, s.unreadable(ctx, "the record of message "+m.ID.String())
	}
	return out, nil
}

// openEntry returns an entry of the other store. Jobs that are damaged are Lost.
func (s *Store) openEntry(ctx context.Context, e *queue.Entry) (*queue.Entry, error) {
	m, err := s.openMessage(ctx, e.Message)
	if err != nil {
		return nil, err
	}
	out := &queue.Entry{Message: m, Jobs: make([]queue.Job, len(e.Jobs))}
	for i := range e.Jobs {
		if j, ok := s.openJob(&e.Jobs[i]); ok {
			out.Jobs[i] = *j
		} else {
			out.Jobs[i] = queue.Job{JobID: e.Jobs[i].JobID, Status: queue.Lost}
		}
	}
	return out, nil
}

// present is the content of Ruled of a job of the other store that rules know.
var present = []byte{1}

// sealJob sets out to a job as the other store gets it: what it needs to know is there, and
// Result is the whole job, sealed.
func (s *Store) sealJob(j, out *queue.Job) {
	*out = queue.Job{
		JobID: j.JobID, Status: j.Status, Destination: s.pseudonym("destination", j.Destination), Host: s.pseudonym("destination", j.Host),
		Client: j.Client, OwnAttempts: j.OwnAttempts, Text: j.Text, Attempts: j.Attempts, Due: j.Due, NotBefore: j.NotBefore,
		Expires: j.Expires, Spared: j.Spared, UnknownSince: j.UnknownSince, Updated: j.Updated,
		Incident: s.pseudonym("incident", j.Incident), NewState: j.NewState, By: j.By,
		Result: s.sealer.Seal(record.AppendJob(nil, j, 0), record.Jobs, record.JobKey(j.JobID)),
	}
	if len(j.Ruled) > 0 {
		out.Ruled = present
	}
}

// openJob returns a job of the other store. It reports false if the job cannot be opened.
func (s *Store) openJob(j *queue.Job) (*queue.Job, bool) {
	out, _, err := s.sealer.OpenJob(record.Jobs, j.JobID, j.Result)
	if err != nil {
		return nil, false
	}
	out.Status, out.Due, out.NotBefore, out.Updated = j.Status, j.Due, j.NotBefore, j.Updated
	return out, true
}

// sealHealth returns states of destinations as the other store gets them: About is the whole
// state, sealed.
func (s *Store) sealHealth(states []queue.Health) (all []queue.Health) {
	for i := range states {
		h := states[i]
		h.About = base64.StdEncoding.EncodeToString(s.sealer.Seal(record.AppendHealth(nil, &h), placeHealth, h.Destination[:]))
		h.Host, h.LastError = s.pseudonym("destination", h.Host), ""
		all = append(all, h)
	}
	return all
}

// openHealth returns the state of a destination, or nil if it is damaged.
func (s *Store) openHealth(h *queue.Health) *queue.Health {
	sealed, err := base64.StdEncoding.DecodeString(h.About)
	if err != nil {
		return nil
	}
	return s.sealer.OpenHealth(placeHealth, h.Destination[:], sealed)
}

// sealUpdate returns an update as the other store gets it, or nil. It calls after when u is decided.
// If a record cannot be opened, Decide returns errUnread or, if lenient is set, takes it for missing.
func (s *Store) sealUpdate(u *queue.Update, lenient bool, after func()) *queue.Update {
	if u == nil {
		return nil
	}
	out := *u
	out.Size += seal.Overhead * len(u.Names)
	out.Decide = func(tx *queue.Tx) error {
		old := make([][]byte, len(u.Names))
		for i, name := range u.Names {
			sealed := tx.Get(name)
			if sealed == nil {
				continue
			}
			plain, err := s.sealer.Open(sealed, record.Records, name[:])
			if err != nil && !lenient {
				return errUnread
			}
			old[i] = plain
		}
		decided, err := u.Run(old, func(ids []queue.JobID) ([]queue.Status, error) { return tx.Status(ids...) })
		if err != nil {
			return err
		}
		for i, name := range u.Names {
			if r, ok := decided.Changed(i); ok {
				tx.Put(name, s.sealRecord(name, r))
			}
		}
		for _, r := range decided.Owned() {
			tx.PutOwned(r.Name, s.sealRecord(r.Name, r.Record))
		}
		for _, c := range decided.Jobs() {
			tx.Change(c.ID, func(j *queue.Job) { s.changeJob(j, c.Apply) })
		}
		after()
		return nil
	}
	return &out
}

// sealRecord returns a record as the other store gets it.
func (s *Store) sealRecord(name queue.Hash, r queue.Record) queue.Record {
	if len(r.Data) > 0 {
		r.Data = s.sealer.Seal(r.Data, record.Records, name[:])
	}
	return r
}

// changeJob changes a job of the other store. One that cannot be opened keeps what is sealed.
func (s *Store) changeJob(j *queue.Job, apply func(*queue.Job)) {
	open, ok := s.openJob(j)
	if !ok {
		sealed := j.Result
		apply(j)
		j.Result = sealed
		return
	}
	apply(open)
	s.sealJob(open, j)
}
