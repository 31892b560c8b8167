package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A rule of this test holds messages until a record is due. The record has the IDs of their jobs.
// Then one message takes their place.

// holder is the caller of queues that hold messages by such a rule.
type holder struct {
	*suite
	queues []*queue.Queue
	name   queue.Hash

	mu   sync.Mutex
	told map[string]int // how often each text was delivered
}

func (h *holder) deliver(_ context.Context, m *queue.Message, _ *queue.Job) queue.Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	for text := range strings.FieldsSeq(string(m.Body)) {
		h.told[text]++
	}
	return queue.Outcome{Status: queue.Delivered}
}

// hold accepts a message that is held until a time.
func (h *holder) hold(q *queue.Queue, text string, until time.Time) *queue.Entry {
	h.Helper()
	e := h.alert(text, "", "a")
	e.Jobs[0].Ruled = []byte(text)
	e.Rules = &queue.Ruled{Names: []queue.Hash{h.name}, Decide: func(tx *queue.Tx) error {
		e.Jobs[0].Status, e.Jobs[0].Rule, e.Jobs[0].Due = queue.Held, "held", until
		tx.Put(h.name, queue.Record{Data: append(tx.Get(h.name), e.Message.ID[:]...), Due: until})
		return nil
	}}
	h.must(q.Accept(h.Context(), e))
	return e
}

// due replaces the messages that the record holds by one.
func (h *holder) due(q *queue.Queue) func(ctx context.Context, name queue.Hash, data []byte, _ bool) error {
	return func(ctx context.Context, name queue.Hash, data []byte, _ bool) error {
		if name != h.name {
			return errors.New("another record is due")
		}
		var ids []queue.JobID
		for held := range slices.Chunk(data, 16) {
			ids = append(ids, queue.JobID{Message: [16]byte(held)})
		}
		var texts []string
		for _, id := range ids {
			m, release, err := q.Load(ctx, id.Message)
			if err != nil {
				return err
			}
			texts = append(texts, string(m.Body))
			release()
		}
		e := h.alert(strings.Join(texts, " "), "", "a")
		e.Unlimited = true
		own := queue.JobID{Message: e.Message.ID}
		e.Rules = &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			if string(tx.Get(name)) != string(data) {
				return errors.New("it has changed")
			}
			statuses, err := tx.Status(ids...)
			if err != nil {
				return err
			}
			tx.Delete(name)
			for i, id := range ids {
				if statuses[i] != queue.Held {
					return fmt.Errorf("a job is %s", statuses[i])
				}
				tx.Change(id, func(j *queue.Job) {
					j.Status, j.Rule, j.By, j.Updated = queue.Superseded, "digested", own, time.Now()
				})
			}
			return nil
		}}
		return q.Accept(ctx, e)
	}
}

// rules checks that what a rule holds is sent as one message when its record is due, and
// that several handles do it once.
func (s *suite) rules() { s.runRules(s.Store) }

func (s *suite) sharedRules() { s.runRules(s.Store, s.handle(), s.handle()) }

func (s *suite) runRules(handles ...queue.Store) {
	h := &holder{suite: s, name: s.Hash("lane"), told: map[string]int{}}
	for _, store := range handles {
		q := queue.New(store, queue.Options{Deliver: h.deliver})
		q.Configure(queue.Options{
			Deliver: h.deliver, Due: h.due(q), Punctual: func() bool { return true },
			Recheck: func(context.Context, []queue.Job) {},
		})
		h.queues = append(h.queues, q)
		q.Start()
		defer func() { s.must(q.Close(context.WithoutCancel(s.Context()))) }()
	}
	until := time.Now().Add(2 * time.Second)
	var entries []*queue.Entry
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			e := h.hold(h.queues[i%len(h.queues)], fmt.Sprint("text", i), until)
			mu.Lock()
			defer mu.Unlock()
			entries = append(entries, e)
		})
	}
	wg.Wait()
	s.statuses(entries[0].Message.ID, queue.Held)
	deadline := time.Now().Add(time.Minute)
	for {
		h.mu.Lock()
		n := len(h.told)
		h.mu.Unlock()
		if n == len(entries) {
			break
		}
		if time.Now().After(deadline) {
			s.Fatalf("told %v", h.told)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if time.Now().Before(until) {
		s.Error("what is held was sent before its time")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for text, n := range h.told {
		if n != 1 {
			s.Errorf("%s was delivered %d times", text, n)
		}
	}
	for _, e := range entries {
		j := s.get(e.Message.ID).Jobs[0]
		if j.Status != queue.Superseded || j.Rule != "digested" || j.By == (queue.JobID{}) {
			s.Errorf("a message that was held: %+v", j)
		}
		s.gone(e.Message.ID)
	}
}

// ruledJobs checks that jobs which a rule holds are neither claimed nor released by the
// order of incidents, that an entry replaces the held jobs of its incident, that releasing
// restores the order, and that they can be cancelled.
func (s *suite) ruledJobs() {
	q := queue.New(s.Store, queue.Options{}) // the suite closes the store
	lane := s.Hash("lane")
	accept := func(text, incident string, held bool, release ...*queue.Entry) *queue.Entry {
		e := s.alert(text, incident, "a")
		e.Jobs[0].Ruled = []byte(text)
		e.Rules = &queue.Ruled{Names: []queue.Hash{lane}, Decide: func(tx *queue.Tx) error {
			tx.Put(lane, queue.Record{Data: append(tx.Get(lane), 'x'), Due: s.now.Add(time.Hour)})
			if held {
				e.Jobs[0].Status, e.Jobs[0].Rule, e.Jobs[0].Due = queue.Held, "held", s.now.Add(time.Hour)
			}
			for _, r := range release {
				if _, err := tx.StatusOf(r.Jobs[0].JobID); err != nil {
					return err
				}
				tx.Release(r.Jobs[0])
			}
			return nil
		}}
		s.must(q.Accept(s.Context(), e))
		return e
	}
	warning := accept("warning", "db", true)
	other := accept("other", "web", true)
	plain := accept("plain", "", true)
	if jobs := s.claim(s.now.Add(2 * time.Hour)); len(jobs) != 0 {
		s.Fatalf("claimed %+v", jobs)
	}
	s.reopenStore()
	q = queue.New(s.Store, queue.Options{})
	if j := s.get(warning.Message.ID).Jobs[0]; j.Status != queue.Held || j.Rule != "held" || string(j.Ruled) != "warning" {
		s.Errorf("a held job: %+v", j)
	}
	failure := accept("failure", "db", false, warning)
	s.statuses(failure.Message.ID, queue.Queued)
	if j := s.get(warning.Message.ID).Jobs[0]; j.Status != queue.Superseded || j.By != failure.Jobs[0].JobID || j.Rule != "" {
		s.Errorf("the job before: %+v", j)
	}
	if got := failure.Jobs[0].Missed.Notes; len(got) != 1 || string(got[0]) != "warning" {
		s.Errorf("it tells %q", got)
	}
	// Two of one incident: only the newer is sent.
	newer := accept("newer", "web", true)
	apply := func(entries ...*queue.Entry) {
		u := &queue.Ruled{Names: []queue.Hash{lane}}
		for _, e := range entries {
			u.Held = append(u.Held, s.get(e.Message.ID).Jobs[0])
		}
		u.Decide = func(tx *queue.Tx) error {
			for _, j := range u.Held {
				if got, err := tx.StatusOf(j.JobID); err != nil || got != queue.Held {
					return fmt.Errorf("%v, %w", got, err)
				}
			}
			tx.Delete(lane)
			tx.Release(u.Held...)
			return nil
		}
		s.must(q.Records.Apply(s.Context(), u))
	}
	apply(other, newer, plain)
	s.statuses(other.Message.ID, queue.Superseded)
	s.statuses(newer.Message.ID, queue.Queued)
	s.statuses(plain.Message.ID, queue.Queued)
	if j := s.get(plain.Message.ID).Jobs[0]; j.Rule != "" || j.Expires.Before(time.Now()) {
		s.Errorf("a released job: %+v", j)
	}
	if b, err := q.Records.Get(s.Context(), lane); b != nil || err != nil {
		s.Errorf("the record is %q, %v", b, err)
	}
	cancelled := accept("cancelled", "mail", true)
	if n, err := q.Cancel(s.Context(), cancelled.Message.ID); n != 1 || err != nil {
		s.Errorf("cancelled %d, %v", n, err)
	}
	s.statuses(cancelled.Message.ID, queue.Cancelled)
	s.gone(cancelled.Message.ID)
}

// joinedRules checks that joined changes are made one after the other in one transaction, also if both
// change the same record, and that none is made if one fails.
func (s *suite) joinedRules() {
	q := queue.New(s.Store, queue.Options{})
	name := s.Hash("both")
	add := func(text string, err error) *queue.Ruled {
		return &queue.Ruled{Names: []queue.Hash{name, s.Hash("of " + text)}, Decide: func(tx *queue.Tx) error {
			tx.Put(name, queue.Record{Data: append(tx.Get(name), text...), Due: s.now})
			tx.Put(s.Hash("of "+text), queue.Record{Data: []byte(text), Due: s.now})
			return err
		}}
	}
	want := func(text string) {
		s.Helper()
		if got, err := q.Records.Get(s.Context(), name); err != nil || string(got) != text {
			s.Errorf("the record is %q, %v; want %q", got, err, text)
		}
	}
	s.must(q.Records.Apply(s.Context(), queue.JoinRuled(add("first ", nil), queue.JoinRuled(nil, add("second ", nil)))))
	want("first second ")
	refuse := errors.New("no")
	s.wantErr(q.Records.Apply(s.Context(), queue.JoinRuled(add("third ", nil), add("fourth ", refuse))), refuse)
	want("first second ")
	e := s.alert("text", "", "a")
	e.Rules = queue.JoinRuled(add("third ", nil), add("fourth ", nil))
	s.must(q.Accept(s.Context(), e))
	want("first second third fourth ")
}
