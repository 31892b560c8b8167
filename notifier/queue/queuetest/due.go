package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// crowd is the number of records of one turn that are due at the same time: more than a queue
// reads at once.
const crowd = 2500

// dueWorker is the caller of queues whose records are due. The content of a record is its turn
// and its number. The turn "crowd" stands still while it is blocked.
type dueWorker struct {
	*suite
	blocked chan struct{}

	mu     sync.Mutex
	done   map[string][]string // the numbers of each turn, in the order in which they were done
	at     map[string]int      // how many of each turn are being worked on in each queue
	others chan string         // the records of other turns that are done
}

// put stores a record of each name and time.
func (w *dueWorker) put(q *queue.Queue, turn string, from, to int, due time.Time) {
	w.Helper()
	for first := from; first < to; first += 500 {
		records := map[queue.Hash]queue.Record{}
		for i := first; i < min(first+500, to); i++ {
			at := due.Add(time.Duration(i) * time.Microsecond)
			records[w.Hash(fmt.Sprint(turn, " ", i))] = queue.Record{Data: fmt.Appendf(nil, "%s %d", turn, i), Due: at}
		}
		u := putting(records)
		w.must(q.Records.Apply(w.Context(), &queue.Ruled{Names: u.Names, Decide: u.Decide}))
	}
}

func (w *dueWorker) turn(_ queue.Hash, data []byte) (string, bool) {
	turn, _ := w.numbered(data)
	return turn, turn != "unknown"
}

func (w *dueWorker) numbered(data []byte) (turn string, i int) {
	_, err := fmt.Sscan(string(data), &turn, &i)
	w.must(err)
	return turn, i
}

// due removes a record. In a crowd it also removes some that follow, so that they are gone when it
// is their turn.
func (w *dueWorker) due(q *queue.Queue, n int) func(context.Context, queue.Hash, []byte, bool) error {
	return func(ctx context.Context, name queue.Hash, data []byte, _ bool) error {
		turn, i := w.numbered(data)
		mine := fmt.Sprint(n, turn)
		w.mu.Lock()
		if w.at[mine]++; w.at[mine] > 1 {
			w.Errorf("%d records of the turn %s are worked on at once", w.at[mine], turn)
		}
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.at[mine]--
		}()
		names, texts := []queue.Hash{name}, []string{string(data)}
		if turn == "crowd" {
			<-w.blocked
			for next := i + 1; next < min(i+10, crowd); next++ {
				text := fmt.Sprint(turn, " ", next)
				names, texts = append(names, w.Hash(text)), append(texts, text)
			}
		}
		over := errors.New("another gateway has removed it")
		var removed []string
		err := q.Records.Apply(ctx, &queue.Ruled{
			Names: names,
			Decide: func(tx *queue.Tx) error {
				if tx.Get(name) == nil {
					return over
				}
				removed = removed[:0]
				for i, name := range names {
					if tx.Get(name) != nil {
						removed = append(removed, texts[i])
					}
					tx.Delete(name)
				}
				return nil
			},
		})
		if errors.Is(err, over) {
			return nil
		}
		if err == nil {
			w.mu.Lock()
			w.done[turn] = append(w.done[turn], removed...)
			w.mu.Unlock()
			if turn != "crowd" {
				w.others <- string(data)
			}
		}
		return err
	}
}

// dueInTurns checks that a turn with very many records, one of which hangs, delays no other turn:
// neither one that is due already nor one that becomes due meanwhile. The records of a turn are
// done one after the other, in their order. A record that the program does not know stays.
func (s *suite) dueInTurns() { s.runDueInTurns(s.Store) }

func (s *suite) sharedDueInTurns() { s.runDueInTurns(s.Store, s.handle()) }

func (s *suite) runDueInTurns(handles ...queue.Store) {
	const turns, each = 12, 4
	w := &dueWorker{suite: s, blocked: make(chan struct{}), done: map[string][]string{}, at: map[string]int{}}
	w.others = make(chan string, 2*turns*each)
	var queues []*queue.Queue
	for i, store := range handles {
		q := queue.New(store, queue.Options{})
		q.Configure(queue.Options{
			Due: w.due(q, i), Turn: w.turn, Punctual: func() bool { return true }, Recheck: func(context.Context, []queue.Job) {},
		})
		queues = append(queues, q)
	}
	ago := time.Now().Add(-time.Minute)
	w.put(queues[0], "crowd", 0, crowd, ago)
	w.put(queues[0], "unknown", 0, crowd, ago)
	for i := range turns {
		w.put(queues[0], fmt.Sprint("early", i), 0, each, ago.Add(time.Second))
	}
	for _, q := range queues {
		q.Start()
	}
	wait := func(what string) {
		s.Helper()
		for range turns * each {
			select {
			case <-w.others:
			case <-time.After(time.Minute):
				s.Fatalf("%s waits for a crowd", what)
			}
		}
	}
	wait("what was due at the start")
	for i := range turns {
		w.put(queues[0], fmt.Sprint("late", i), 0, each, time.Now())
	}
	wait("what has become due since then")
	close(w.blocked)
	deadline := time.Now().Add(time.Minute)
	for n := 0; n < crowd && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		n = len(w.done["crowd"])
		w.mu.Unlock()
	}
	for _, q := range queues {
		s.must(q.Close(context.WithoutCancel(s.Context())))
	}
	s.Store = s.handle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.done["crowd"]); n != crowd {
		s.Errorf("of a crowd of %d, %d are done", crowd, n)
	}
	for turn, done := range w.done {
		if turn != "crowd" && len(handles) == 1 && !slices.IsSorted(done) {
			s.Errorf("those of %s are done in the order %q", turn, done)
		}
	}
	if names := s.dueNames(time.Now(), crowd); len(names) != crowd {
		s.Errorf("%d records are left of %d that nobody knows", len(names), crowd)
	}
}
