package queue_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// pager delivers the messages of incidents, as a test says.
type pager struct {
	mu     sync.Mutex
	status queue.Status             // of deliveries; zero for Delivered
	hold   map[string]chan struct{} // deliveries of a text that wait
	told   []string
	active int
	most   int // of active
}

// deliver notes the text of a message, with those that it tells after a plus.
func (p *pager) deliver(ctx context.Context, m *queue.Message, j *queue.Job) queue.Outcome {
	text := string(m.Body)
	p.mu.Lock()
	p.active++
	p.most = max(p.most, p.active)
	hold := p.hold[text]
	p.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	switch p.status {
	case queue.Queued, queue.Failed, queue.Dead:
		return queue.Outcome{Status: p.status, Reason: "it fails"}
	}
	p.told = append(p.told, strings.Join(append([]string{text}, notes(j)...), "+"))
	return queue.Outcome{Status: queue.Delivered}
}

func notes(j *queue.Job) (out []string) {
	for _, n := range j.Missed.Notes {
		out = append(out, string(n))
	}
	return out
}

func (p *pager) answer(status queue.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// holdUp makes the deliveries of a text wait until the function is called.
func (p *pager) holdUp(text string) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil {
		p.hold = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	p.hold[text] = c
	return func() {
		p.mu.Lock()
		delete(p.hold, text)
		p.mu.Unlock()
		close(c)
	}
}

// want compares what was told.
func (p *pager) want(t *testing.T, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.told, want) {
		t.Errorf("told %q, want %q", p.told, want)
	}
	if p.most > 1 {
		t.Errorf("%d deliveries at once", p.most)
	}
}

// alert returns a message about an incident. One whose text begins with + adds
// something; others tell a new state.
func alert(text, incident string, destinations ...string) *queue.Entry {
	if len(destinations) == 0 {
		destinations = []string{"pager"}
	}
	e := entry(text, destinations...)
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.Incident, j.NewState, j.Note = incident, text[0] != '+', []byte(text)
	}
	return e
}

// settled waits until nothing happens any more for a moment.
func settled() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// TestOrder checks what a destination is told of an incident.
func TestOrder(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, q *queue.Queue, p *pager){
		"one after the other": func(t *testing.T, q *queue.Queue, p *pager) {
			for _, text := range []string{"down", "+ a note", "up"} {
				accept(t, q, alert(text, "db1"))
				settled()
			}
			p.want(t, "down", "+ a note", "up")
		},
		"a newer state replaces those that wait": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			down := accept(t, q, alert("down", "db1"))
			settled()
			worse := accept(t, q, alert("worse", "db1"))
			settled()
			up := accept(t, q, alert("up", "db1"))
			settled()
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.want(t, "up+down+worse")
			for e, by := range map[*queue.Entry]*queue.Entry{down: worse, worse: up} {
				if j := get(t, q, e.Message.ID)[0]; j.Status != queue.Superseded || j.By.Message != by.Message.ID {
					t.Errorf("%s is %s by %s", e.Message.Body, j.Status, j.By.Message)
				}
			}
		},
		"what is being sent is waited for": func(t *testing.T, q *queue.Queue, p *pager) {
			release := p.holdUp("down")
			accept(t, q, alert("down", "db1"))
			settled()
			worse := accept(t, q, alert("worse", "db1"))
			settled()
			if j := get(t, q, worse.Message.ID)[0]; j.Status != queue.Held {
				t.Errorf("the second message is %s", j.Status)
			}
			accept(t, q, alert("up", "db1"))
			settled()
			release()
			settled()
			p.want(t, "down", "up+worse")
		},
		"what fails while a newer state waits is replaced": func(t *testing.T, q *queue.Queue, p *pager) {
			release := p.holdUp("down")
			p.answer(queue.Queued)
			accept(t, q, alert("down", "db1"))
			settled()
			accept(t, q, alert("up", "db1"))
			release()
			settled()
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.want(t, "up+down")
		},
		"what adds something waits for its turn": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			accept(t, q, alert("down", "db1"))
			settled()
			accept(t, q, alert("+ a note", "db1"))
			accept(t, q, alert("+ another", "db1"))
			settled()
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.want(t, "down", "+ a note", "+ another")
		},
		"a state replaces what was added before": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			accept(t, q, alert("down", "db1"))
			accept(t, q, alert("+ a note", "db1"))
			settled()
			accept(t, q, alert("up", "db1"))
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.want(t, "up+down++ a note")
		},
		"a dead one is told by the next": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Dead)
			down := accept(t, q, alert("down", "db1"))
			settled()
			p.answer(0)
			accept(t, q, alert("+ a note", "db1"))
			settled()
			accept(t, q, alert("up", "db1"))
			settled()
			p.want(t, "+ a note+down", "up+down")
			if j := get(t, q, down.Message.ID)[0]; j.Status != queue.Superseded {
				t.Errorf("the dead one is %s", j.Status)
			}
		},
		"one that the client knows has failed, too": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Failed)
			accept(t, q, alert("down", "db1"))
			settled()
			p.answer(0)
			accept(t, q, alert("up", "db1"))
			settled()
			accept(t, q, alert("down again", "db1"))
			settled()
			p.want(t, "up+down", "down again")
		},
		"incidents and destinations apart": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			accept(t, q, alert("down", "db1"))
			accept(t, q, alert("elsewhere", "db1", "other"))
			accept(t, q, alert("db2 down", "db2"))
			accept(t, q, alert("nothing", ""))
			settled()
			accept(t, q, alert("up", "db1"))
			settled()
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.mu.Lock()
			slices.Sort(p.told)
			p.most = 0
			p.mu.Unlock()
			p.want(t, "db2 down", "elsewhere", "nothing", "up+down")
		},
		"a cancelled one lets the next begin": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			down := accept(t, q, alert("down", "db1"))
			settled()
			p.answer(0)
			note := accept(t, q, alert("+ a note", "db1"))
			another := accept(t, q, alert("+ another", "db1"))
			for _, e := range []*queue.Entry{note, down} {
				if n, err := q.Cancel(t.Context(), e.Message.ID); n != 1 || err != nil {
					t.Errorf("%d cancelled, %v", n, err)
				}
			}
			settled()
			p.want(t, "+ another")
			if j := get(t, q, another.Message.ID)[0]; j.Status != queue.Delivered {
				t.Errorf("the third one is %s", j.Status)
			}
		},
		"retrying an old one sends the present state": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Dead)
			down := accept(t, q, alert("down", "db1"))
			settled()
			up := accept(t, q, alert("up", "db1"))
			settled()
			if j := get(t, q, up.Message.ID)[0]; j.Status != queue.Dead {
				t.Errorf("the second one is %s", j.Status)
			}
			p.answer(0)
			if n, err := q.Retry(t.Context(), down.Message.ID); n.Dead != 1 || err != nil {
				t.Errorf("%+v, %v", n, err)
			}
			settled()
			p.want(t, "up+down")
			if n, err := q.Retry(t.Context(), down.Message.ID); n != (queue.Retried{}) || err != nil {
				t.Errorf("%+v, %v, though the present state was told", n, err)
			}
		},
		"a dead one that is retried": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Dead)
			down := accept(t, q, alert("down", "db1"))
			settled()
			p.answer(0)
			release := p.holdUp("+ a note")
			accept(t, q, alert("+ a note", "db1"))
			settled()
			if n, err := q.Retry(t.Context(), down.Message.ID); n.Dead != 1 || err != nil {
				t.Errorf("%+v, %v", n, err)
			}
			settled()
			release()
			settled()
			p.want(t, "+ a note+down", "down")
		},
		"sent by the caller": func(t *testing.T, q *queue.Queue, p *pager) {
			down, up := alert("down", "db1", "pager", "other"), alert("up", "db1", "pager", "other")
			for _, e := range []*queue.Entry{down, up} {
				for i := range e.Jobs {
					e.Jobs[i].Status = queue.Sending
				}
				accept(t, q, e)
			}
			for i, want := range []queue.Status{queue.Held, queue.Held} {
				if got := up.Jobs[i].Status; got != want {
					t.Errorf("the caller is to send job %d: it is %s", i, got)
				}
			}
			q.Settle(&down.Jobs[0], queue.Outcome{Status: queue.Queued})
			q.Settle(&down.Jobs[1], queue.Outcome{Status: queue.Delivered})
			settled()
			p.mu.Lock()
			slices.Sort(p.told)
			p.mu.Unlock()
			p.want(t, "up", "up+down")
			again := alert("down again", "db1", "pager")
			again.Jobs[0].Status = queue.Sending
			if accept(t, q, again); again.Jobs[0].Status != queue.Sending {
				t.Errorf("the third one is %s", again.Jobs[0].Status)
			}
			q.Settle(&again.Jobs[0], queue.Outcome{Status: queue.Failed})
			last := alert("last", "db1", "pager")
			last.Jobs[0].Status = queue.Sending
			if accept(t, q, last); len(notes(&last.Jobs[0])) != 1 {
				t.Errorf("the caller does not get the note of what has failed: %q", notes(&last.Jobs[0]))
			}
			q.Settle(&last.Jobs[0], queue.Outcome{Status: queue.Delivered})
		},
		"twice to one destination": func(t *testing.T, q *queue.Queue, p *pager) {
			accept(t, q, alert("down", "db1", "pager", "pager"))
			settled()
			p.want(t, "down", "down")
		},
		"many additions": func(t *testing.T, q *queue.Queue, p *pager) {
			p.answer(queue.Queued)
			accept(t, q, alert("down", "db1"))
			settled()
			for range 100 {
				accept(t, q, alert("+", "db1"))
			}
			accept(t, q, alert("+ last", "db1"))
			settled()
			if s, err := q.Stats(t.Context()); err != nil || s.Queued > 60 {
				t.Errorf("%d wait, %v", s.Queued, err)
			}
			p.answer(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if n := len(p.told); p.told[0] != "down" || n > 60 || !strings.HasPrefix(p.told[n-1], "+ last") {
				t.Errorf("told %d: %q", n, p.told)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := new(pager)
				q := start(t, open(t, t.TempDir()), queue.Options{Deliver: p.deliver})
				run(t, q, p)
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOrderAfterRestart checks that the order of an incident outlives the process,
// and that a delivery which was under way is made again before the others.
func TestOrderAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := new(pager)
		q := start(t, open(t, dir), queue.Options{Deliver: p.deliver})
		release := p.holdUp("down")
		accept(t, q, alert("down", "db1"))
		settled()
		accept(t, q, alert("worse", "db1"))
		accept(t, q, alert("+ a note", "db1"))
		settled()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Close(ctx); err == nil {
			t.Error("the delivery under way has ended")
		}
		release()
		synctest.Wait()
		p.mu.Lock()
		p.told = nil // it was not stored
		p.mu.Unlock()
		q = start(t, open(t, dir), queue.Options{Deliver: p.deliver})
		settled()
		p.want(t, "down", "worse", "+ a note")
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOrderIsForgotten checks that a record of an incident goes when nothing of it
// waits, and that jobs are released which are held for no reason.
func TestOrderIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pager)
		s := open(t, t.TempDir())
		q := start(t, s, queue.Options{Deliver: p.deliver, MaxAge: time.Hour, Keep: time.Hour})
		records := func() int {
			names, err := s.SurplusRecords(t.Context(), 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			return len(names)
		}
		accept(t, q, alert("up", "db1"))
		settled()
		if n := records(); n != 0 {
			t.Errorf("%d records though everything was delivered", n)
		}
		p.answer(queue.Dead)
		accept(t, q, alert("down", "db2"))
		settled()
		if n := records(); n != 1 {
			t.Errorf("%d records of what is dead", n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := records(); n != 0 {
			t.Errorf("%d records of what is forgotten", n)
		}
		p.answer(0)
		e := alert("held", "db3")
		e.Message.Created, e.Jobs[0].Due, e.Jobs[0].Updated, e.Jobs[0].Expires = time.Now(), time.Now(), time.Now(), time.Now().Add(time.Hour)
		e.Jobs[0].Status, e.Jobs[0].JobID = queue.Held, queue.JobID{Message: e.Message.ID}
		if err := s.Accept(t.Context(), 1<<30, e); err != nil { // as if its record was damaged
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.want(t, "up", "held")
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOrderOfDamagedRecord checks that a record which cannot be read costs the
// order, but no message.
func TestOrderOfDamagedRecord(t *testing.T) {
	var l bytes.Buffer
	l.WriteString("\x0a\xff")
	synctest.Test(t, func(t *testing.T) {
		p := new(pager)
		s := open(t, t.TempDir())
		q := start(t, s, queue.Options{Deliver: p.deliver})
		p.answer(queue.Queued)
		accept(t, q, alert("down", "db1"))
		settled()
		names, err := s.SurplusRecords(t.Context(), 0, 1)
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := s.Update(t.Context(), &queue.Update{Names: names, Decide: func(tx *queue.Tx) error {
			tx.Put(names[0], queue.Record{Data: l.Bytes(), Due: time.Now().Add(time.Hour)})
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		p.answer(0)
		accept(t, q, alert("up", "db1"))
		time.Sleep(time.Hour)
		synctest.Wait()
		p.mu.Lock()
		slices.Sort(p.told)
		p.mu.Unlock()
		p.want(t, "down", "up")
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// sleepy is a store that sleeps once for longer than half a lease, as if the process
// was paused.
type sleepy struct {
	queue.Store
	inLoad, inAccept atomic.Bool
	loads            atomic.Int32
}

func (s *sleepy) sleep(once *atomic.Bool) {
	if once.Swap(false) {
		time.Sleep(40 * time.Second)
	}
}

func (s *sleepy) Load(ctx context.Context, id uuid.UUID) (*queue.Message, func(), error) {
	s.loads.Add(1)
	m, release, err := s.Store.Load(ctx, id)
	s.sleep(&s.inLoad)
	return m, release, err
}

func (s *sleepy) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	err := s.Store.Accept(ctx, maxSize, entries...)
	s.sleep(&s.inAccept)
	return err
}

// TestOrderAfterPause checks that a process which was paused before it sends a message
// of an incident does not send it before it has claimed it again, because another one
// may have done that.
func TestOrderAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pager)
		s := &sleepy{Store: open(t, t.TempDir())}
		q := start(t, s, queue.Options{Deliver: p.deliver})
		s.inLoad.Store(true)
		accept(t, q, alert("down", "db1"))
		time.Sleep(30 * time.Second)
		p.want(t)
		time.Sleep(30 * time.Second)
		p.want(t, "down")
		if n := s.loads.Load(); n != 2 {
			t.Errorf("the message was read %d times", n)
		}
		s.inAccept.Store(true)
		e := alert("up", "db1")
		e.Jobs[0].Status = queue.Sending
		accept(t, q, e)
		if got := e.Jobs[0].Status; got != queue.Queued {
			t.Errorf("after a pause, the status for the caller is %v", got)
		}
		settled()
		p.want(t, "down", "up")
	})
}
