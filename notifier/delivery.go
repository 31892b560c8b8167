package notifier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// delivery is the sending of one message to one destination.
type delivery struct {
	sender   *Sender
	index    int // of the target
	target   Target
	message  *Message
	texts    *renderings
	options  Options
	slots    []slots
	requests *requestCounter
	progress *Progress

	mu      sync.Mutex
	ended   bool // the result is known, and later records are dropped
	records []Record
	result  Result

	skipped bool // set by the worker before it returns
}

// record adds a record after masking the destination's secrets in its text.
func (d *delivery) record(level Level, text string) { d.add(level, d.masked(text)) }

// text returns the text of err for clients: without what it tells about this
// machine and with the destination's secrets masked.
func (d *delivery) text(err error) string { return d.masked(errs.PublicText(err)) }

// masked returns text with the destination's secrets masked, cut to
// maxErrorText.
func (d *delivery) masked(text string) string {
	return markup.TruncateBytes(d.target.redact(text), maxErrorText)
}

// add is like record for a text that cannot contain a secret.
func (d *delivery) add(level Level, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.records = append(d.records, Record{time.Now(), level, text, d.target.Optional()})
	}
}

// abandonAfter is how long a service may run after its time is over. Then the
// delivery ends without it.
const abandonAfter = 2 * time.Second

// run delivers and reports to the observers.
func (d *delivery) run(ctx context.Context) {
	for _, o := range d.options.Observers {
		if o.Begin != nil {
			ctx = o.Begin(ctx, d.index, d.target)
		}
	}
	d.deliver(ctx)
	for _, o := range d.options.Observers {
		if o.End != nil {
			o.End(ctx, d.index, d.result)
		}
	}
}

// deliver ends within the timeout, even if the service ignores its context.
func (d *delivery) deliver(ctx context.Context) {
	start := time.Now()
	d.progress = d.target.Progress
	if d.progress == nil {
		d.progress = new(Progress)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.options.Timeout, fmt.Errorf("not done within %s (timeout)", d.options.Timeout))
	defer cancel()
	leave, ok := takeSlots(ctx, d.slots)
	if !ok {
		d.finish(start, 0, errors.New("the gateway had no room for the delivery within the timeout"))
		return
	}
	defer leave()
	var attempts int // read only after done is closed
	var err error    // as attempts
	done := make(chan struct{})
	d.sender.workers.do(func() {
		defer close(done)
		if e := protect(func() error { attempts, err = d.attempts(ctx); return nil }); e != nil {
			err = e
		}
	})
	select {
	case <-done:
		d.finish(start, attempts, err)
		return
	case <-ctx.Done():
	}
	// The time is over. A service that heeds its context is about to return.
	t := time.NewTimer(abandonAfter)
	defer t.Stop()
	select {
	case <-done:
		d.finish(start, attempts, err)
	case <-t.C:
		d.finish(start, 1, context.Cause(ctx))
	}
}

// finish sets the result and writes the records and the log entry.
func (d *delivery) finish(start time.Time, attempts int, err error) {
	t := d.target
	r := Result{
		Service: t.Service(), Destination: t.String(), Tags: t.Tags, Optional: t.Optional(),
		Status: Delivered, Attempts: attempts, Elapsed: time.Since(start),
	}
	if err != nil || t.Progress != nil {
		d.progress.release()
	}
	switch {
	case err == nil && d.skipped:
		r.Status = Skipped // the service has recorded why
	case err == nil:
		d.add(LevelInfo, "Sent "+r.Service+" notification.")
	default:
		r.Status = Failed
		r.Err = &DeliveryError{text: d.text(err), err: err}
		r.Temporary, r.RetryAfter, r.Progress = temporary(err), askedToWait(err), d.progress
		d.record(LevelError, "Failed to send "+r.Service+" notification: "+r.Err.Error())
		if r.Optional {
			d.record(LevelInfo, "Optional service "+r.Service+" failed; its failure is ignored.")
		}
	}
	d.mu.Lock()
	d.ended = true
	d.result = r
	d.mu.Unlock()
	d.log(r)
}

func (d *delivery) log(r Result) {
	if d.options.Logger == nil {
		return
	}
	level, text := zapcore.DebugLevel, "delivered"
	switch {
	case r.Status == Skipped:
		level, text = zapcore.WarnLevel, "nothing was sent"
	case r.Err != nil:
		level, text = zapcore.ErrorLevel, "delivery failed"
	}
	c := d.options.Logger.Check(level, text)
	if c == nil {
		return
	}
	fields := []zap.Field{
		zap.String("service", r.Service), zap.String("destination", r.Destination),
		zap.Int("attempts", r.Attempts), zap.Duration("elapsed", r.Elapsed),
	}
	if r.Err != nil {
		fields = append(fields, zap.String("error", r.Err.Error()))
		if cause := errs.Private(r.Err); cause != "" {
			fields = append(fields, zap.String("cause", d.masked(cause)))
		}
		if p, ok := errors.AsType[*PanicError](r.Err); ok {
			fields = append(fields, zap.String("panic", d.target.redact(p.Value)), zap.String("stack", d.target.redact(p.Stack)))
		}
	}
	c.Write(fields...)
}
