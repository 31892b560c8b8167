package queuetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// desk is what destinations were told, by destination and incident.
type desk struct {
	mu      sync.Mutex
	fails   bool
	sending map[string]int
	told    map[string]int // the number of the last message
	errs    []string
}

// deliver notes a message whose text is a number, with a + before it if it adds
// something to its incident.
func (d *desk) deliver(_ context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	to := j.Destination + " of " + j.Incident
	d.mu.Lock()
	if d.sending[to]++; d.sending[to] > 1 {
		d.errs = append(d.errs, "two deliveries at once to "+to)
	}
	d.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sending[to]--
	if n := rand.IntN(10); d.fails && n < 4 {
		if n == 0 {
			return queue.Outcome{Status: queue.Dead, Reason: "it fails"}
		}
		return queue.Outcome{Status: queue.Queued, Reason: "it fails for now"}
	}
	var n int
	if _, err := fmt.Sscan(string(m.Body), &n); err != nil {
		d.errs = append(d.errs, err.Error())
	}
	if n < d.told[to] {
		d.errs = append(d.errs, fmt.Sprintf("%s: %d was told after %d", to, n, d.told[to]))
	}
	d.told[to] = n
	return queue.Outcome{Status: queue.Delivered}
}

// order checks that each destination is told the present state of each incident
// last, whatever fails meanwhile, and that no two deliveries of an incident to a
// destination run at once.
func (s *suite) order() { s.runOrder(s.Store) }

// sharedOrder is order with several handles. They are closed one after the other while they
// deliver.
func (s *suite) sharedOrder() { s.runOrder(s.Store, s.handle(), s.handle()) }

func (s *suite) runOrder(handles ...queue.Store) {
	d := &desk{fails: true, sending: map[string]int{}, told: map[string]int{}}
	queues := make([]*queue.Queue, len(handles))
	for i, h := range handles {
		queues[i] = queue.New(h, queue.Options{Deliver: d.deliver})
		queues[i].Start()
	}
	var mu sync.Mutex // of queues
	closeAll := sync.OnceFunc(func() {
		for _, q := range queues {
			if err := q.Close(context.WithoutCancel(s.Context())); err != nil {
				s.Error(err)
			}
		}
	})
	defer closeAll()
	destinations := []string{"a", "b"}
	incidents, each := 8, racetest.Amount(60, 20)
	last := make([]int, incidents)
	var wg sync.WaitGroup
	for i := range incidents {
		wg.Go(func() {
			for n := 1; n <= each; n++ {
				text := fmt.Sprint(n)
				if n < each && rand.IntN(3) == 0 {
					text = "+" + text
				}
				mu.Lock()
				q := queues[rand.IntN(len(queues))]
				err := q.Accept(s.Context(), s.alert(text, fmt.Sprint("incident ", i), destinations...))
				mu.Unlock()
				if err != nil {
					s.Error(err)
					return
				}
				last[i] = n
				time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			}
		})
	}
	accepted := make(chan struct{})
	go func() { wg.Wait(); close(accepted) }()
	for done := false; ; {
		select {
		case <-accepted:
			if done {
				break
			}
			done = true
			d.mu.Lock()
			d.fails = false
			d.mu.Unlock()
			if len(queues) > 1 { // the others deliver what it has claimed
				mu.Lock()
				s.must(queues[0].Close(context.WithoutCancel(s.Context())))
				queues = queues[1:]
				mu.Unlock()
			}
		case <-time.After(20 * time.Millisecond):
		}
		mu.Lock()
		q := queues[len(queues)-1]
		mu.Unlock()
		for _, to := range destinations {
			if _, err := q.RetryDestinations(s.Context(), q.Hash(to)); err != nil {
				s.Fatal(err)
			}
		}
		dead, err := q.List(s.Context(), queue.JobID{}, 1000, queue.Dead)
		s.must(err)
		for _, j := range dead {
			if done {
				_, err := q.Retry(s.Context(), j.Message)
				s.must(err)
			}
		}
		if st, err := q.Stats(s.Context()); err != nil {
			s.Fatal(err)
		} else if done && len(dead)+st.Queued+st.Sending == 0 {
			break
		}
		if s.Failed() {
			return
		}
	}
	closeAll()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.errs {
		s.Error(e)
	}
	for i := range incidents {
		for _, to := range destinations {
			if got := d.told[fmt.Sprintf("%s of incident %d", to, i)]; got != last[i] {
				s.Errorf("%s was told %d of incident %d last, want %d", to, got, i, last[i])
			}
		}
	}
}
