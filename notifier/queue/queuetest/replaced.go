package queuetest

import (
	"sync"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// deadReplaced checks that a job which becomes dead can take the place of another dead one that no
// rule and no incident knows, also if many changes meet in one transaction and somebody retries the
// jobs meanwhile.
func (s *suite) deadReplaced() {
	name := s.Hash("kept")
	each := racetest.Amount(30, 10)
	const writers = 4
	var mu sync.Mutex
	var ids []uuid.UUID
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				e := s.entry("a")
				e.Jobs[0].Status = queue.Sending
				s.must(s.Accept(s.Context(), noLimit, e))
				j := e.Jobs[0]
				t := &queue.Settlement{Job: &j, Update: &queue.Update{
					Names: []queue.Hash{name},
					Decide: func(tx *queue.Tx) error {
						j.Status, j.Updated = queue.Dead, s.now
						kept := tx.Get(name)
						tx.Put(name, queue.Record{Data: j.Message[:], Due: s.now})
						if len(kept) == 0 {
							return nil
						}
						before := queue.JobID{Message: uuid.UUID(kept)}
						status, err := tx.StatusOf(before)
						if status == queue.Dead {
							tx.Change(before, func(x *queue.Job) { x.Status, x.By, x.Updated = queue.Failed, j.JobID, s.now })
						}
						return err
					},
				}}
				s.must(s.Settle(s.Context(), t))
				mu.Lock()
				ids = append(ids, e.Message.ID)
				mu.Unlock()
			}
		})
		all.Go(func() {
			for range each {
				mu.Lock()
				var id uuid.UUID
				if len(ids) > 0 {
					id = ids[len(ids)-1]
				}
				mu.Unlock()
				if id != (uuid.UUID{}) {
					_, err := Retry(s.Context(), s, id, s.now, s.now)
					s.must(err)
				}
			}
		})
	}
	all.Wait()
	var queued, dead, replaced int
	for _, id := range ids {
		switch j := s.get(id).Jobs[0]; {
		case j.Status == queue.Queued:
			queued++
		case j.Status == queue.Dead:
			dead++
		case j.Status == queue.Failed && j.By != (queue.JobID{}):
			replaced++
		default:
			s.Errorf("a job is %s, replaced by %v", j.Status, j.By)
		}
	}
	if dead > 1 || queued+dead+replaced != writers*each {
		s.Errorf("%d jobs are dead, %d wait and %d were replaced, of %d", dead, queued, replaced, writers*each)
	}
	s.counts(queued, 0, dead)
	s.reopenStore()
	s.counts(queued, 0, dead)
}
