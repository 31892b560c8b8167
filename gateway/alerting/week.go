package alerting

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// WeekDays is how many days a [Week] has.
const WeekDays = 7

// Day counts the incidents that were opened on a day. Each is counted once.
type Day struct {
	Begin     time.Time // in the server's zone
	Escalated int       // somebody after the first was told
	Failures  int       // failures that did not escalate
	Others    int
}

// Opened returns the number of all.
func (d Day) Opened() int { return d.Escalated + d.Failures + d.Others }

// Week counts the incidents of the last seven days, today last, by the day on which they were opened
// last.
type Week struct {
	Days [WeekDays]Day
	Cut  bool // there are more than are read
}

// Bounds of what is read for a [Week]: the records of a key are in no order of time.
const (
	weekFresh  = 1000   // a key with more incidents is read once a minute
	weekMost   = 20_000 // and at most so many of them
	weekForget = time.Minute
)

// weeks remembers the weeks of keys with many incidents for a while.
type weeks struct {
	mu  sync.Mutex
	all map[string]placeWeek // by place
}

type placeWeek struct {
	week Week
	read time.Time
}

// get returns the week of a place, if it is fresh.
func (w *weeks) get(place string, now time.Time, today time.Time) (Week, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x, ok := w.all[place]
	age := now.Sub(x.read)
	return x.week, ok && 0 <= age && age < weekForget && x.week.Days[WeekDays-1].Begin.Equal(today)
}

// put remembers the week of a place, and forgets those that are not fresh.
func (w *weeks) put(place string, now time.Time, week *Week) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.all, func(_ string, x placeWeek) bool { return now.Sub(x.read) >= weekForget })
	if w.all == nil {
		w.all = map[string]placeWeek{}
	}
	w.all[place] = placeWeek{*week, now}
}

// newWeek returns the week that ends with the day of now.
func newWeek(now time.Time) (w Week) {
	y, m, d := now.Local().Date()
	for i := range w.Days {
		w.Days[i].Begin = time.Date(y, m, d-WeekDays+1+i, 0, 0, 0, 0, time.Local)
	}
	return w
}

// add counts an incident.
func (w *Week) add(x *rules.Incident) {
	for i := len(w.Days) - 1; i >= 0; i-- {
		switch d := &w.Days[i]; {
		case x.Opened.Before(d.Begin):
			continue
		case len(x.Begun) > 1:
			d.Escalated++
		case x.Type == notifier.Failure:
			d.Failures++
		default:
			d.Others++
		}
		return
	}
}

// Week counts the incidents that the keys with these places have opened in the last seven days.
func (i *Incidents) Week(ctx context.Context, places []string) (Week, error) {
	now := i.outbox.Queue.Now()
	sum := newWeek(now)
	sizes, err := i.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return sum, err
	}
	for _, place := range slices.Compact(slices.Sorted(slices.Values(places))) {
		size := 0
		for _, stage := range rules.Stages {
			size += sizes[i.records.incidentGroup(place, stage)]
		}
		if size == 0 {
			continue
		}
		week, known := i.weeks.get(place, now, sum.Days[WeekDays-1].Begin)
		if !known || size <= weekFresh {
			if week, err = i.weekOf(ctx, place, now); err != nil {
				return sum, err
			}
		}
		if !known && size > weekFresh {
			i.weeks.put(place, now, &week)
		}
		for d := range sum.Days {
			day := &sum.Days[d]
			day.Escalated += week.Days[d].Escalated
			day.Failures += week.Days[d].Failures
			day.Others += week.Days[d].Others
		}
		sum.Cut = sum.Cut || week.Cut
	}
	return sum, nil
}

// weekOf reads the incidents of the key with a place: those that are not over first.
func (i *Incidents) weekOf(ctx context.Context, place string, now time.Time) (Week, error) {
	w, read := newWeek(now), 0
	for _, stage := range rules.Stages {
		var last queue.Hash
		for more := true; more; {
			var page []StoredIncident
			var err error
			if page, last, more, err = i.page(ctx, place, stage, last, listPage); err != nil {
				return w, err
			}
			for _, x := range page {
				w.add(x.Incident)
			}
			if read += len(page); read >= weekMost && more {
				w.Cut = true
				return w, nil
			}
		}
	}
	return w, nil
}
