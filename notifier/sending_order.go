package notifier

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// maxTurns is the maximum number of messages that add to an incident and wait for their turn. A
// further one replaces the oldest.
const maxTurns = 50

// incidentOrder makes the deliveries of one incident to a destination follow one another, in the
// order in which they began. A message with a new state replaces waiting ones. The zero value is
// ready for use.
type incidentOrder struct {
	mu    sync.Mutex
	lines map[incidentLine]*[]*turn // the waiting deliveries by the line of the one under way
}

// incidentLine is one incident at one destination.
type incidentLine struct{ incident, destination string }

// turn is a delivery that waits for another one.
type turn struct {
	message    *Message
	ready      chan struct{} // closed when the turn has come, or never will
	superseded bool          // a newer message reports it
	missed     Missed        // missed before it
}

// enter lets a delivery begin and returns nil, or returns the turn that it has to wait for. leave
// must be called after the delivery.
func (o *incidentOrder) enter(line incidentLine, m *Message) *turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.lines[line]
	if waiting == nil {
		if o.lines == nil {
			o.lines = map[incidentLine]*[]*turn{}
		}
		o.lines[line] = new([]*turn)
		return nil
	}
	t := &turn{message: m, ready: make(chan struct{})}
	additions := 0
	for _, old := range *waiting {
		if !old.message.Incident.newState() {
			additions++
		}
	}
	*waiting = slices.DeleteFunc(*waiting, func(old *turn) bool {
		replaces := m.Incident.newState() || additions >= maxTurns && !old.message.Incident.newState()
		if !replaces || old.message == m { // two URLs of the message are equal
			return false
		}
		additions--
		old.superseded = true
		close(old.ready)
		t.missed = t.missed.plus(old.missed).plus(missedOf(old.message, false))
		return true
	})
	*waiting = append(*waiting, t)
	return t
}

// leave ends a delivery. If it has failed, the next one reports it.
func (o *incidentOrder) leave(line incidentLine, m *Message, before Missed, r *Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.lines[line]
	if len(*waiting) == 0 {
		delete(o.lines, line)
		return
	}
	next := (*waiting)[0]
	*waiting = (*waiting)[1:]
	if r.Err != nil && next.message != m {
		next.missed = before.plus(missedOf(m, r.Unclear)).plus(next.missed)
	}
	close(next.ready)
}

// newState reports whether a message has another state of the incident, rather than an addition.
func (i *Incident) newState() bool { return i.State == Open || i.State == Resolved }

func missedOf(m *Message, unclear bool) Missed {
	return Missed{Messages: []MissedMessage{{m.Incident.State, m.Time, unclear}}}
}

// plus returns m with later messages.
func (m Missed) plus(later Missed) Missed {
	all := slices.Concat(m.Messages, later.Messages)
	omitted := m.Omitted + later.Omitted
	if n := len(all) - maxMissedMessages; n > 0 {
		all, omitted = all[n:], omitted+n
	}
	return Missed{Messages: all, Omitted: omitted, Repeats: m.Repeats + later.Repeats, Since: cmp.Or(m.Since, later.Since)}
}

const maxMissedMessages = 20

// startOrdered is start for a message about an incident. Each delivery waits for its
// turn, and has its own timeout from then on.
func (x *sending) startOrdered(ctx context.Context, targets []Target) {
	places := make([]place, len(targets))
	free := true
	for i, t := range targets {
		p := &places[i]
		p.line = incidentLine{x.message.Incident.ID, t.Hash()}
		p.turn = x.sender.order.enter(p.line, x.message)
		free = free && p.turn == nil
	}
	if free {
		x.options.Observers = append(slices.Clip(x.options.Observers), Observer{End: func(_ context.Context, i int, r Result) {
			x.sender.order.leave(places[i].line, x.message, targets[i].Missed, &r)
		}})
		x.start(ctx, targets)
		return
	}
	x.ctx, x.cancel, x.done = ctx, func() {}, make(chan struct{})
	go func() {
		defer close(x.done)
		x.chains = x.runOrdered(ctx, targets, places)
	}()
}

// place is the place of a delivery in its line. It has no turn to wait for if it is the first.
type place struct {
	line incidentLine
	turn *turn
}

func (x *sending) runOrdered(ctx context.Context, targets []Target, places []place) *Report {
	report := &Report{Results: make([]Result, len(targets))}
	var mu sync.Mutex // of report.Records
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			var one *Report
			if turn := places[i].turn; turn != nil {
				<-turn.ready
				if turn.superseded {
					one = x.superseded(ctx, i, t)
				} else {
					t.Missed = t.Missed.plus(turn.missed)
				}
			}
			if one == nil {
				one = x.sendOne(ctx, i, t, func(r *Result) { x.sender.order.leave(places[i].line, x.message, t.Missed, r) })
			}
			report.Results[i] = one.Results[0]
			mu.Lock()
			defer mu.Unlock()
			report.Records = append(report.Records, one.Records...)
		})
	}
	wg.Wait()
	slices.SortStableFunc(report.Records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return report
}

// sendOne sends to one of the targets, and calls end before the observers.
func (x *sending) sendOne(ctx context.Context, i int, t Target, end func(r *Result)) *Report {
	options := x.options
	options.Observers = []Observer{{End: func(_ context.Context, _ int, r Result) { end(&r) }}}
	for _, o := range x.options.Observers {
		options.Observers = append(options.Observers, o.of(i))
	}
	y := &sending{
		sender: x.sender, message: x.message, options: options, slots: x.slots,
		requests: x.requests, bodies: x.bodies,
	}
	y.texts.m = x.message
	y.start(ctx, []Target{t})
	return y.wait(nil)
}

// of returns o as the observer of a message that goes to the i-th target alone.
func (o Observer) of(i int) (out Observer) {
	if o.Begin != nil {
		out.Begin = func(ctx context.Context, _ int, t Target) context.Context { return o.Begin(ctx, i, t) }
	}
	if o.End != nil {
		out.End = func(ctx context.Context, _ int, r Result) { o.End(ctx, i, r) }
	}
	return out
}

// superseded returns the report on a delivery that a newer message has replaced.
func (x *sending) superseded(ctx context.Context, i int, t Target) *Report {
	r := Result{
		Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(),
		Tags: t.Tags, Optional: t.Optional(), Status: Skipped, Rule: RuleSuperseded,
	}
	for _, o := range x.options.Observers {
		ctx := ctx
		if o.Begin != nil {
			ctx = o.Begin(ctx, i, t)
		}
		if o.End != nil {
			o.End(ctx, i, r)
		}
	}
	return &Report{
		Results: []Result{r},
		Records: []Record{{
			Time: time.Now(), Level: LevelInfo,
			Text: "No " + r.Service + " notification was needed: a newer message about the incident replaces it.",
		}},
	}
}
