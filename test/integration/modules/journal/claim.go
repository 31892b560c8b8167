package journal

import (
	"context"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// line has the queued jobs of one destination, in the order in which they are due.
type line struct {
	hash, host queue.Hash
	jobs       []*queue.Job
	turn       int // when a job was claimed last, or the line began
}

func compareJobs(a, b *queue.Job) int {
	if c := a.Due.Compare(b.Due); c != 0 {
		return c
	}
	return a.Compare(b.JobID)
}

// enqueue adds a job to the line of its destination if it is queued.
func (s *Store) enqueue(j *queue.Job) {
	if j.Status != queue.Queued {
		return
	}
	hash := s.Hash(j.Destination)
	l := s.lines[hash]
	if l == nil {
		l = &line{hash: hash, host: s.Hash(j.Host), turn: s.turn}
		s.lines[hash] = l
	}
	l.add(j)
	if j.Updated.After(s.latest) {
		s.latest = j.Updated
	}
}

func (l *line) add(j *queue.Job) {
	at, _ := slices.BinarySearchFunc(l.jobs, j, compareJobs)
	l.jobs = slices.Insert(l.jobs, at, j)
}

// dequeue is the inverse of enqueue.
func (s *Store) dequeue(j *queue.Job) {
	if j.Status != queue.Queued {
		return
	}
	hash := s.Hash(j.Destination)
	l := s.lines[hash]
	at, _ := slices.BinarySearchFunc(l.jobs, j, compareJobs)
	if l.jobs = slices.Delete(l.jobs, at, at+1); len(l.jobs) == 0 {
		delete(s.lines, hash)
	}
}

func (l *line) candidate() queue.Candidate {
	j := l.jobs[0]
	return queue.Candidate{Job: j.JobID, Destination: l.hash, Host: l.host, Client: j.Client, Text: int64(j.Text)}
}

// Claim implements [queue.Store]. It looks at all destinations with a job that is due; a store for
// very many would put those aside that have no slot.
func (s *Store) Claim(_ context.Context, c queue.Claim) (jobs []queue.Job, next time.Time, err error) {
	err = s.locked(func() error {
		jobs, next = s.claim(c)
		return nil
	})
	return jobs, next, err
}

func (s *Store) claim(c queue.Claim) (jobs []queue.Job, next time.Time) {
	s.correct(c.Now)
	type turn struct {
		*line
		own bool
	}
	var due []turn
	for _, l := range s.lines {
		if !l.jobs[0].Due.After(c.Now) {
			due = append(due, turn{l, c.Slots.HasOwn(l.candidate())})
		}
	}
	// Those with a slot of their own come first, then those whose last turn was before that of others.
	slices.SortFunc(due, func(a, b turn) int {
		switch {
		case a.own && !b.own:
			return -1
		case b.own && !a.own:
			return 1
		case a.turn != b.turn:
			return a.turn - b.turn
		}
		return compareJobs(a.jobs[0], b.jobs[0])
	})
	for len(due) > 0 {
		var again []turn
		for i, l := range due {
			if len(jobs) == c.Max {
				return jobs, c.Now
			}
			_, ok := c.Take(l.candidate())
			if !ok {
				continue
			}
			j := *l.jobs[0]
			j.Status = queue.Sending
			s.turn++
			l.turn = s.turn
			s.setJob(j)
			jobs = append(jobs, j)
			if len(l.jobs) > 0 && !l.jobs[0].Due.After(c.Now) {
				again = append(again, due[i])
			}
		}
		due = again
	}
	for _, l := range s.lines {
		if at := l.jobs[0].Due; at.After(c.Now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return jobs, next
}

// correct makes jobs due that were written when the clock was ahead.
func (s *Store) correct(now time.Time) {
	limit := now.Add(queue.ClockTolerance)
	if !s.latest.After(limit) {
		return
	}
	s.latest = time.Time{}
	for _, l := range s.lines {
		for _, j := range l.jobs {
			if j.Updated.After(limit) {
				j.Due, j.Updated = now, now
			}
			if j.Updated.After(s.latest) {
				s.latest = j.Updated
			}
		}
		slices.SortFunc(l.jobs, compareJobs)
	}
}

// Wake implements [queue.Store]. The change is only in memory.
func (s *Store) Wake(_ context.Context, w queue.Wake) (more []queue.Hash, err error) {
	err = s.locked(func() error {
		for _, hash := range w.Destinations {
			if l := s.lines[hash]; l != nil && l.wake(w) {
				more = append(more, hash)
			}
		}
		return nil
	})
	return more, err
}

// wake makes jobs due. It reports whether it would have made more due.
func (l *line) wake(w queue.Wake) (more bool) {
	defer slices.SortFunc(l.jobs, compareJobs)
	n := 0
	for _, j := range l.jobs {
		due := w.Now
		if !w.Force && j.NotBefore.After(due) {
			due = j.NotBefore
		}
		if !due.Before(j.Due) && j.Due.After(w.Now) {
			continue // it must not be sent earlier
		}
		if w.Max > 0 && n == w.Max {
			return true
		}
		if n++; due.Before(j.Due) {
			j.Due = due
		}
	}
	return false
}

// postpone makes the other jobs of a destination wait for its next turn, for which a failed attempt
// counts. The change is only in memory.
func (s *Store) postpone(of *queue.Job, f *queue.SharedFailure) {
	l := s.lines[s.Hash(of.Destination)]
	if l == nil {
		return
	}
	for _, j := range l.jobs {
		if j.OwnAttempts || j.JobID == of.JobID || j.Due.After(f.Began) || !j.Expires.After(of.Updated) {
			continue
		}
		j.Due, j.NotBefore, j.Updated = f.Until, time.Time{}, of.Updated
		if j.Expires.Before(j.Due) {
			j.Due = j.Expires
		}
	}
	slices.SortFunc(l.jobs, compareJobs)
}

// Waiting implements [queue.Store].
func (s *Store) Waiting(_ context.Context, destinations ...queue.Hash) (all []queue.Waiting, err error) {
	err = s.locked(func() error {
		for hash, l := range s.lines {
			if len(destinations) > 0 && !slices.Contains(destinations, hash) {
				continue
			}
			w := queue.Waiting{Destination: hash, Client: l.jobs[0].Client, Jobs: len(l.jobs)}
			for _, j := range l.jobs {
				if at := s.messages[j.Message].Message.Created; w.Since.IsZero() || at.Before(w.Since) {
					w.Since = at
				}
			}
			all = append(all, w)
		}
		return nil
	})
	return all, err
}
