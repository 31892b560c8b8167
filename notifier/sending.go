package notifier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sending is the sending of one message to all of its targets.
type sending struct {
	sender   *Sender
	message  *Message
	options  Options
	here     bool // see [Sender.start]
	texts    renderings
	slots    []slots
	requests *requestCounter // nil for no limit
	bodies   *sharedBodies   // nil for a short message

	own struct {
		report   Report
		delivery [1]delivery // most messages have one target
	}

	deliveries []delivery
	waiting    int           // deliveries that wait for a slot, under the lock of the sender's slots
	mayWait    int           // the deliveries before it do not wait, under the same lock
	left       atomic.Int64  // deliveries that have not ended
	done       chan struct{} // closed when none is left; nil if the only one has been made here
	chains     *Report       // of a message with chains, when done is closed

	ctx    context.Context // of the deliveries
	cancel context.CancelFunc
	free   func() // gives memory back at the end; nil if none was taken
}

// start delivers to all targets at once. They end soon after the timeout, even if services ignore
// their context, if the caller calls wait; only a delivery here ends when its service does. It has
// no goroutine of its own, because handing it over and waking the caller again cost a twentieth of
// a message.
func (x *sending) start(ctx context.Context, targets []Target) {
	if len(targets) == 0 {
		x.ctx, x.cancel = ctx, func() {}
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, x.options.Timeout, (*timeoutError)(&x.options.Timeout))
	x.ctx, x.cancel = ctx, cancel
	if x.deliveries = x.own.delivery[:]; len(targets) > 1 {
		x.deliveries = make([]delivery, len(targets))
	}
	x.left.Store(int64(len(targets)))
	if !x.here {
		x.done = make(chan struct{})
	}
	now := time.Now()
	for i := range targets {
		d := &x.deliveries[i]
		d.sending, d.index, d.target, d.start = x, i, &targets[i], now
		if d.progress = d.target.Progress; d.progress == nil {
			d.progress = &d.ownProgress
		}
		d.begin(ctx)
	}
	// A delivery has its slots before it has a goroutine, so that there are no
	// more goroutines than slots.
	for i := range x.deliveries {
		d := &x.deliveries[i]
		if !takeSlots(d.ctx, x.slots) {
			d.end(0, errNoRoom)
			continue
		}
		d.taken = true
		switch {
		case !x.sender.slots.begin(d): // another one begins it when it ends
		case x.here:
			d.run()
		default:
			x.sender.slots.workers.Start(d)
		}
	}
}

// wait returns the report when the last delivery has ended, or nil if limit
// receives a value before.
func (x *sending) wait(limit <-chan time.Time) *Report {
	if x.done != nil {
		select {
		case <-x.done:
		case <-limit:
			return nil
		case <-x.ctx.Done():
			x.sender.slots.giveUp(x)
			x.abandon(context.Cause(x.ctx))
		}
	}
	x.cancel()
	if x.free != nil {
		x.free()
	}
	if x.chains != nil {
		return x.chains
	}
	return x.report()
}

// abandon ends the deliveries whose services have not returned although their
// time is over. Most services obey their context and are about to return.
func (x *sending) abandon(cause error) {
	t := time.NewTimer(abandonAfter)
	defer t.Stop()
	select {
	case <-x.done:
		return
	case <-t.C:
	}
	for i := range x.deliveries {
		x.deliveries[i].end(1, cause)
	}
	<-x.done // a delivery may just have begun to end by itself
}

// ended records that a delivery has ended.
func (x *sending) ended() {
	if x.left.Add(-1) == 0 && x.done != nil {
		close(x.done)
	}
}

func (x *sending) report() *Report {
	r := &x.own.report
	if len(x.deliveries) == 1 {
		d := &x.deliveries[0]
		r.Results, r.Records = d.result[:], d.records
		return r
	}
	r.Results, r.Records = make([]Result, len(x.deliveries)), make([]Record, 0, len(x.deliveries))
	for i := range x.deliveries {
		d := &x.deliveries[i]
		r.Results[i] = d.result[0]
		r.Records = append(r.Records, d.records...)
	}
	slices.SortStableFunc(r.Records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return r
}

// timeoutError is the cause of the end of a delivery whose time is over.
type timeoutError time.Duration

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not done within %s (timeout)", time.Duration(*e))
}

// Chained reports whether [Sender.Send] may send to one of the targets only after another.
func Chained(targets []Target) bool {
	return slices.ContainsFunc(targets, func(t Target) bool { return t.Number != targets[0].Number })
}

// startChains delivers to the targets of each chain in the order of their
// numbers. See [TagExpr.Select].
func (x *sending) startChains(ctx context.Context, targets []Target) {
	x.ctx, x.cancel = ctx, func() {} // each number has its own timeout
	x.done = make(chan struct{})
	go func() {
		defer close(x.done)
		x.chains = x.runChains(ctx, targets)
	}()
}

func (x *sending) runChains(ctx context.Context, targets []Target) *Report {
	report := &Report{Results: make([]Result, len(targets))}
	var mu sync.Mutex // of report.Records
	var wg sync.WaitGroup
	for _, numbers := range Chains(targets) {
		wg.Go(func() {
			c := &chain{sending: x, targets: targets, results: report.Results}
			c.run(ctx, numbers)
			mu.Lock()
			defer mu.Unlock()
			report.Records = append(report.Records, c.records...)
		})
	}
	wg.Wait()
	slices.SortStableFunc(report.Records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return report
}

// Chains returns the indexes of the targets by chain and number, the lowest number first.
func Chains(targets []Target) [][][]int {
	order := make([]int, len(targets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(targets[a].Number, targets[b].Number) })
	var out [][][]int
	places := map[string]int{} // of the chains in out, by their names
	for _, i := range order {
		place, ok := places[targets[i].Chain]
		if !ok {
			place = len(out)
			places[targets[i].Chain] = place
			out = append(out, nil)
		}
		numbers := out[place]
		if last := len(numbers) - 1; last >= 0 && targets[numbers[last][0]].Number == targets[i].Number {
			numbers[last] = append(numbers[last], i)
			continue
		}
		out[place] = append(numbers, []int{i})
	}
	return out
}

// chain sends one message to the targets of a chain.
type chain struct {
	*sending
	targets []Target // of the message
	results []Result // of all targets; this chain sets its own
	records []Record

	mu     sync.Mutex
	failed []func() // report failures to the observers once it is known whether they count
}

// run sends to one number after the other until all targets of a number are OK.
// The failures of the numbers before it then do not count. Observers learn of a
// failure only when it is known whether it counts.
func (c *chain) run(ctx context.Context, numbers [][]int) {
	for n, group := range numbers {
		if !c.send(ctx, group) {
			continue
		}
		for _, before := range numbers[:n] {
			c.ignoreFailures(before)
		}
		c.reportFailures()
		for _, later := range numbers[n+1:] {
			c.skip(ctx, later)
		}
		return
	}
	c.reportFailures()
}

// send sends to the targets of one number at once and reports whether all are OK.
func (c *chain) send(ctx context.Context, group []int) (ok bool) {
	options := c.options
	options.Observers = nil
	for _, o := range c.options.Observers {
		options.Observers = append(options.Observers, c.observer(o, group))
	}
	x := &sending{sender: c.sender, message: c.message, options: options, slots: c.slots, requests: c.requests}
	x.texts.m = c.message
	targets := make([]Target, len(group))
	for k, i := range group {
		targets[k] = c.targets[i]
	}
	if x.message.Incident.ID != "" {
		x.startOrdered(ctx, targets)
	} else {
		x.start(ctx, targets)
	}
	report := x.wait(nil)
	for k, i := range group {
		c.results[i] = report.Results[k]
	}
	c.records = append(c.records, report.Records...)
	return report.OK()
}

// observer returns an observer of a group that calls o with the indexes of the
// message's targets. reportFailures calls o.End for failures.
func (c *chain) observer(o Observer, group []int) (out Observer) {
	if o.Begin != nil {
		out.Begin = func(ctx context.Context, k int, t Target) context.Context { return o.Begin(ctx, group[k], t) }
	}
	if o.End != nil {
		out.End = func(ctx context.Context, k int, r Result) {
			i := group[k]
			if r.OK() {
				o.End(ctx, i, r)
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.failed = append(c.failed, func() { o.End(ctx, i, c.results[i]) })
		}
	}
	return out
}

// reportFailures tells the observers about the failures so far.
func (c *chain) reportFailures() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, report := range c.failed {
		report()
	}
}

// ignoreFailures marks the failures of a number as ignored, because a later
// number has the message. A queue does not try them again.
func (c *chain) ignoreFailures(group []int) {
	for i := range c.records {
		c.records[i].Optional = c.records[i].Optional || c.records[i].Level == LevelError
	}
	for _, i := range group {
		r := &c.results[i]
		if r.OK() {
			continue
		}
		r.Optional, r.Temporary, r.RetryAfter, r.Progress = true, false, 0, nil
		c.record(r.Service + " failed; its failure is ignored, because a later number of the tag has the message.")
	}
}

// skip sets the results of a number that is not needed.
func (c *chain) skip(ctx context.Context, group []int) {
	for _, i := range group {
		t := c.targets[i]
		c.results[i] = Result{
			Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(),
			Tags: t.Tags, Optional: t.Optional(), Status: Skipped,
		}
		c.record("No " + t.Service() + " notification was needed: a lower number of the tag has the message.")
		for _, o := range c.options.Observers {
			ctx := ctx
			if o.Begin != nil {
				ctx = o.Begin(ctx, i, t)
			}
			if o.End != nil {
				o.End(ctx, i, c.results[i])
			}
		}
	}
}

func (c *chain) record(text string) {
	c.records = append(c.records, Record{Time: time.Now(), Level: LevelInfo, Text: text})
}
