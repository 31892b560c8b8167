package queuetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A planned message has a record and one job that a rule holds. When it is due, another message
// takes its place.

// errOver is returned when a planned message was sent or cancelled meanwhile.
var errOver = errors.New("it is over")

const plannedRule = "planned"

// plan accepts a message that is held, with its record.
func (s *suite) plan(q *queue.Queue, i int, key string) *queue.Entry {
	s.Helper()
	e := s.alert(fmt.Sprint("planned", i), "", "planned")
	e.Message.Key = key
	e.Rules = &queue.Ruled{Names: []queue.Hash{s.plannedName(i)}, Decide: func(tx *queue.Tx) error {
		e.Jobs[0].Status, e.Jobs[0].Rule = queue.Held, plannedRule
		tx.Put(s.plannedName(i), queue.Record{Data: e.Message.ID[:], Due: time.Now().Add(time.Hour), Group: s.Hash("all planned")})
		return nil
	}}
	s.must(q.Accept(s.Context(), e))
	return e
}

func (s *suite) plannedName(i int) queue.Hash { return s.Hash(fmt.Sprint("planned ", i)) }

// sendPlanned accepts the message that takes the place of a planned one. It returns its ID.
func (s *suite) sendPlanned(q *queue.Queue, i int, planned uuid.UUID) (uuid.UUID, error) {
	e := s.alert(fmt.Sprint("sent", i), "", "a")
	e.Jobs[0].Status = queue.Queued
	e.Jobs[0].Due = time.Now().Add(time.Hour)
	job := queue.JobID{Message: planned}
	e.Rules = &queue.Ruled{
		Names: []queue.Hash{s.plannedName(i)},
		Decide: func(tx *queue.Tx) error {
			status, err := tx.StatusOf(job)
			if err != nil {
				return err
			}
			if tx.Get(s.plannedName(i)) == nil || status != queue.Held {
				return errOver
			}
			tx.Delete(s.plannedName(i))
			tx.Change(job, func(j *queue.Job) {
				j.Status, j.By, j.Updated = queue.Superseded, queue.JobID{Message: e.Message.ID}, time.Now()
			})
			return nil
		},
	}
	return e.Message.ID, q.Accept(s.Context(), e)
}

// planned checks that if several callers send or cancel a planned message at the same moment, one
// does, and that its idempotency key counts for as long as it waits.
func (s *suite) planned() { s.runPlanned(s.Store) }

func (s *suite) sharedPlanned() { s.runPlanned(s.Store, s.handle(), s.handle()) }

func (s *suite) runPlanned(handles ...queue.Store) {
	var queues []*queue.Queue
	for _, h := range handles {
		queues = append(queues, queue.New(h, queue.Options{}))
	}
	first := s.plan(queues[0], -1, "key")
	if _, err := s.Forget(s.Context(), time.Now().Add(24*time.Hour), 0); err != nil {
		s.Error(err)
	}
	again := s.alert("again", "", "a")
	again.Message.Key = "key"
	if d, ok := errors.AsType[*queue.DuplicateError](queues[0].Accept(s.Context(), again)); !ok || d.ID != first.Message.ID {
		s.Errorf("the idempotency key of a planned message leads to %v", d)
	}
	n := racetest.Amount(24, 8)
	entries, sent, cancelled := make([]*queue.Entry, n), make([][]uuid.UUID, n), make([]int, n)
	for i := range n {
		entries[i] = s.plan(queues[i%len(queues)], i, "")
	}
	if records, err := queues[0].Records.Group(s.Context(), s.Hash("all planned"), queue.Hash{}, 10*n); err != nil || len(records) != n+1 {
		s.Errorf("%d records, %v; want %d", len(records), err, n+1)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		id := entries[i].Message.ID
		for _, q := range append(queues, queues[0]) {
			all.Go(func() {
				by, err := s.sendPlanned(q, i, id)
				if err != nil && !errors.Is(err, errOver) {
					s.Error(err)
				}
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					sent[i] = append(sent[i], by)
				}
			})
		}
		if i%2 == 0 {
			all.Go(func() {
				k, err := queues[i%len(queues)].Cancel(s.Context(), id)
				s.must(err)
				mu.Lock()
				defer mu.Unlock()
				cancelled[i] = k
			})
		}
	}
	all.Wait()
	s.reopenStore()
	for i := range n {
		if len(sent[i])+cancelled[i] != 1 {
			s.Errorf("message %d was sent %d times and cancelled %d times", i, len(sent[i]), cancelled[i])
			continue
		}
		j := s.get(entries[i].Message.ID).Jobs[0]
		if cancelled[i] == 1 {
			if j.Status != queue.Cancelled {
				s.Errorf("a cancelled message is %s", j.Status)
			}
			continue
		}
		if j.Status != queue.Superseded || j.Rule != plannedRule || j.By.Message != sent[i][0] {
			s.Errorf("a message that was sent as %s is %s, %q by %s", sent[i][0], j.Status, j.Rule, j.By.Message)
		}
		s.statuses(sent[i][0], queue.Queued)
	}
}
