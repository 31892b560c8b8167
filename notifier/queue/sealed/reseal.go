package sealed

import (
	"bytes"
	"context"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// How many records and messages are read at once.
const (
	recordsAtOnce  = 200
	messagesAtOnce = 100
)

// Reseal implements [queue.Resealer]. It seals records again. Messages, their deliveries and the
// states of destinations stay as they are until they change or are forgotten.
func (s *Store) Reseal(ctx context.Context) (old queue.OldSecrets, err error) {
	if old.Set = s.sealer.HasOld(); !old.Set {
		return old, nil
	}
	ring, err := s.Store.Record(ctx, s.ring)
	if err != nil {
		return old, err
	}
	shares, newest := s.sealer.Shares(ring, placeRing, nil)
	switch {
	case !shares:
		return old, nil
	case newest:
		err = s.resealRecords(ctx)
		if err == nil {
			err = s.resealHealth(ctx)
		}
		if err == nil {
			old.Records, err = s.oldMessages(ctx)
		}
		if err != nil {
			return old, err
		}
	}
	err = s.Store.Update(ctx, &queue.Update{Names: []queue.Hash{s.ring}, Decide: func(tx *queue.Tx) error {
		var changed []byte
		changed, old.Used = s.sealer.Tend(tx.Get(s.ring), placeRing, nil, time.Now().Add(s.later), newest && old.Records == 0)
		if changed != nil {
			tx.Put(s.ring, queue.Record{Data: changed, Due: ringDue})
		}
		return nil
	}})
	return old, err
}

// resealRecords seals records again that were sealed under an older secret.
func (s *Store) resealRecords(ctx context.Context) error {
	groups, err := s.groups(ctx)
	if err != nil {
		return err
	}
	for after, more := (queue.DuePlace{}), true; more; {
		var all []queue.DueRecord
		if all, more, err = s.Store.DueRecords(ctx, ringDue.Add(-time.Second), after, recordsAtOnce); err != nil || len(all) == 0 {
			return err
		}
		for _, r := range all {
			after = r.DuePlace
			if !s.sealer.IsOld(r.Data, record.Records, r.Name[:]) {
				continue
			}
			if err := s.resealRecord(ctx, r, groups[r.Name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// resealRecord seals a record again, if it has not changed since it was read.
func (s *Store) resealRecord(ctx context.Context, r queue.DueRecord, group queue.Hash) error {
	return s.Store.Update(ctx, &queue.Update{Names: []queue.Hash{r.Name}, Size: len(r.Data), Decide: func(tx *queue.Tx) error {
		if data := tx.Get(r.Name); bytes.Equal(data, r.Data) {
			tx.Put(r.Name, queue.Record{Data: s.sealer.Renew(data, record.Records, r.Name[:]), Due: r.Due, Group: group})
		}
		return nil
	}})
}

// groups returns the groups of all records that have one.
func (s *Store) groups(ctx context.Context) (map[queue.Hash]queue.Hash, error) {
	sizes, err := s.Store.GroupSizes(ctx)
	if err != nil {
		return nil, err
	}
	groups := map[queue.Hash]queue.Hash{}
	for group := range sizes {
		for after := (queue.Hash{}); ; {
			some, err := s.Store.Group(ctx, group, after, recordsAtOnce)
			if err != nil {
				return nil, err
			}
			for _, r := range some {
				after, groups[r.Name] = r.Name, group
			}
			if len(some) < recordsAtOnce {
				break
			}
		}
	}
	return groups, nil
}

// oldMessages returns how many messages were sealed under an older secret. The text and the files of
// a message are no older than its summary.
func (s *Store) oldMessages(ctx context.Context) (n int, err error) {
	for before := (uuid.UUID{}); ; {
		all, next, err := s.Store.Messages(ctx, before, messagesAtOnce)
		if err != nil {
			return n, err
		}
		for _, e := range all {
			if s.isOld(e) {
				n++
			}
		}
		if next == (uuid.UUID{}) {
			return n, nil
		}
		before = next
	}
}

func (s *Store) isOld(e *queue.Entry) bool {
	place, id := summaryPlace(e.Message.ID)
	if s.sealer.IsOld(e.Message.Summary, place, id) {
		return true
	}
	for i := range e.Jobs {
		if j := &e.Jobs[i]; s.sealer.IsOld(j.Result, record.Jobs, record.JobKey(j.JobID)) {
			return true
		}
	}
	return false
}

// resealHealth stores the states of destinations again. One that changes meanwhile is sealed anew,
// too, and the next attempt corrects it.
func (s *Store) resealHealth(ctx context.Context) error {
	all, err := s.Store.Health(ctx, 0)
	if err != nil {
		return err
	}
	var old []queue.Health
	for i := range all {
		sealed, _ := base64.StdEncoding.DecodeString(all[i].About)
		if h := s.openHealth(&all[i]); h != nil && s.sealer.IsOld(sealed, placeHealth, h.Destination[:]) {
			old = append(old, *h)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return s.SaveHealth(ctx, old...)
}
