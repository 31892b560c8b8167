package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestLaneIsFull checks that the present state of each incident is held, however many
// messages come in, and that the others are counted.
func TestLaneIsFull(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &Rules{Digest: &Digest{Every: time.Hour}}
	l := new(Lane)
	subjects := map[string]*Subject{}
	held := map[queue.JobID]bool{}
	last := map[string]queue.JobID{}
	counted := 0
	const total = 2000
	for i := range total {
		x := Item{Job: queue.JobID{Message: uuid.Must(uuid.NewV7())}, Type: notifier.Info, Time: now.Add(time.Duration(i) * time.Millisecond)}
		if i%3 > 0 {
			x.Subject, x.Type, x.State = fmt.Sprint("incident ", i%7), notifier.Warning, notifier.Open
			if i%2 == 0 {
				x.Type, x.State = notifier.Success, notifier.Resolved
			}
			last[x.Subject] = x.Job
		}
		s := subjects[x.Subject]
		if s == nil {
			s = new(Subject)
			subjects[x.Subject] = s
		}
		v := r.Arrive(Arrival{Now: x.Time, Lane: l, Subject: s, Item: x, Waits: func(id queue.JobID) bool { return held[id] }, NewID: uuid.New})
		switch v.Outcome {
		case Held:
			held[x.Job] = true
		case Counted:
			counted++
		default:
			t.Fatalf("%+v", v)
		}
		for _, e := range v.Evicted {
			delete(held, e.Job)
			if !e.Newer {
				counted++
			} else if e.By != x.Job || e.Subject != x.Subject {
				t.Fatalf("evicted %+v for %+v", e, x)
			}
		}
	}
	if len(l.Items) != MaxItems || len(held) != MaxItems {
		t.Errorf("%d items, %d held", len(l.Items), len(held))
	}
	for subject, job := range last {
		if !held[job] {
			t.Errorf("the present state of %s is not held", subject)
		}
	}
	if n := l.More[0].Counts.Total() + l.More[1].Counts.Total(); n != counted {
		t.Errorf("%d are counted, want %d", n, counted)
	}
	back, err := decode(l.encode(), (*Lane).Fields)
	if err != nil || len(back.Items) != MaxItems || back.More != l.More {
		t.Errorf("%+v, %v", back, err)
	}
	if size := len(l.encode()); size > 64<<10 {
		t.Errorf("the record has %d bytes", size)
	}
	all := func(queue.JobID) bool { return true }
	none := func(string) bool { return false }
	g := r.Release(now.Add(time.Hour), l, Lookup{all, all, none})
	if g == nil || len(g.Items) != MaxItems || g.More.Counts.Total() != counted || g.Single() {
		t.Fatalf("released %+v", g)
	}
	if g := r.Release(now.Add(time.Hour), l, Lookup{all, all, none}); g != nil || !l.Empty(now.Add(time.Hour)) {
		t.Errorf("released once more: %+v", g)
	}
}

// TestClockSetBack checks that what was written while the clock was ahead holds nothing
// up.
func TestClockSetBack(t *testing.T) {
	ahead, now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Rules{Dedupe: &Dedupe{Window: time.Hour}, Digest: &Digest{Every: time.Minute}, Rate: []Rate{{Count: 1, Per: time.Hour}}}
	l, s := new(Lane), new(Subject)
	all := func(queue.JobID) bool { return true }
	x := Item{Job: queue.JobID{Message: uuid.UUID{1}}, Type: notifier.Info, Time: ahead, Subject: "s"}
	if v := r.Arrive(Arrival{Now: ahead, Lane: l, Subject: s, Item: x, Waits: all, NewID: uuid.New}); v.Outcome != Held {
		t.Fatalf("%+v", v)
	}
	none := func(string) bool { return false }
	if g := r.Release(now, l, Lookup{all, all, none}); g != nil {
		t.Errorf("released at once: %+v", g)
	}
	if due := l.Due(now); due.Sub(now) > time.Minute {
		t.Errorf("due at %s", due)
	}
	if g := r.Release(now.Add(time.Minute), l, Lookup{all, all, none}); g == nil {
		t.Error("not released")
	}
	s.Sent(x.Mark())
	s.Ended(x.Mark(), true)
	x.Job, x.Time = queue.JobID{Message: uuid.UUID{2}}, now
	if v := r.Arrive(Arrival{Now: now, Lane: new(Lane), Subject: s, Item: x, Waits: all, NewID: uuid.New}); v.Outcome == Suppress {
		t.Error("suppressed by a message of the future")
	}
}
