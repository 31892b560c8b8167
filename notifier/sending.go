package notifier

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// sending is the sending of one message to all of its targets.
type sending struct {
	sender   *Sender
	message  *Message
	options  Options
	texts    renderings
	slots    []slots
	requests *requestCounter // nil for no limit
	bodies   *sharedBodies   // nil for a short message

	// The values that message, options.Limits and requests point to, unless
	// this is the sending of a chain.
	own struct {
		message  Message
		limits   Limits
		requests requestCounter
	}

	deliveries []delivery
	left       atomic.Int64  // deliveries that have not ended
	done       chan struct{} // closed when none is left
	chains     *Report       // of a message with chains, when done is closed

	ctx    context.Context // of the deliveries
	cancel context.CancelFunc
	free   func() // gives memory back at the end; nil if none was taken
}

// start delivers to all targets at once. They end soon after the timeout, even
// if services ignore their context, if the caller calls wait.
func (x *sending) start(ctx context.Context, targets []Target) {
	if len(targets) == 0 {
		x.ctx, x.cancel = ctx, func() {}
		close(x.done)
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, x.options.Timeout, timeoutError(x.options.Timeout))
	x.ctx, x.cancel = ctx, cancel
	x.deliveries = make([]delivery, len(targets))
	x.left.Store(int64(len(targets)))
	now := time.Now()
	for i, t := range targets {
		d := &x.deliveries[i]
		d.sending, d.index, d.target, d.start = x, i, t, now
		if d.progress = t.Progress; d.progress == nil {
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
		go d.run()
	}
}

// wait returns the report when the last delivery has ended, or nil if limit
// receives a value before.
func (x *sending) wait(limit <-chan time.Time) *Report {
	select {
	case <-x.done:
	case <-limit:
		return nil
	case <-x.ctx.Done():
		x.abandon(context.Cause(x.ctx))
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
	if x.left.Add(-1) == 0 {
		close(x.done)
	}
}

func (x *sending) report() *Report {
	r := &Report{Results: make([]Result, len(x.deliveries)), Records: make([]Record, 0, len(x.deliveries))}
	for i := range x.deliveries {
		d := &x.deliveries[i]
		r.Results[i] = d.result
		r.Records = append(r.Records, d.records...)
	}
	slices.SortStableFunc(r.Records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return r
}

// timeoutError is the cause of the end of a delivery whose time is over.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return fmt.Sprintf("not done within %s (timeout)", time.Duration(e))
}
